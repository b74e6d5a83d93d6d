"""Answers of providers by the thousand: what they say, in what form, and how it comes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.llm.fakes import fact, facts
from tests.llm.provider_server import ScriptedAnswer, chat_body, messages_body, scripted_answer

Rng = random.Random
Json = dict[str, Any]

GOOD = {
    "observe": "[1] user: asked how harbor is deployed\n[2] assistant: with ops/deploy.sh",
    "condense": "Current state:\n2026-05-13 harbor deploys with ops/deploy.sh",
    "extract": facts(fact(1, "Harbor deploys with ops/deploy.sh", sources=[1, 2])),
    "overview": "Harbor is deployed with ops/deploy.sh.",
    "reflect": '{"insight": "Deploys fail on Fridays.", "from_items": [1, 2]}',
    "judge": '{"verdicts": [{"pair": 1, "verdict": "changes"}]}',
    "check": '{"verdicts": [{"fact": 1, "verdict": "overturned"}]}',
    "ask": '{"sentences": [{"text": "With ops/deploy.sh.", "from_items": [1]}]}',
}
STATUSES = (
    400,
    401,
    403,
    404,
    408,
    409,
    413,
    418,
    422,
    429,
    500,
    501,
    502,
    503,
    504,
    529,
    302,
    204,
)
KINDS = (
    "application/json",
    "text/html",
    "text/plain",
    "application/octet-stream",
    "",
    "text/event-stream",
)
RETRY_AFTER = ("0", "1", "3600", "-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "1e9", "", "9" * 60)
ODD: tuple[Any, ...] = (
    None,
    3,
    -1,
    1e308,
    "",
    "x",
    [],
    {},
    [None],
    {"a": None},
    True,
    2**70,
    "\ud800",
    "\x00\x1b[31m",
)


def truncated(rng: Rng, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def fenced(rng: Rng, text: str) -> str:
    fence = rng.choice((
        "```json\n{}\n```",
        "```\n{}```",
        "Sure!\n```JSON\n{}\n```\nBye.",
        "{} ok?",
    ))
    return fence.replace("{}", text)


def garbled(rng: Rng, text: str) -> str:
    signs = list(text)
    for _ in range(rng.randrange(1, 12)):
        signs[rng.randrange(len(signs))] = chr(rng.choice((0, 7, 27, 34, 92, 123, 0x2028, 0x1F600)))
    return "".join(signs)


def other_schema(rng: Rng, text: str) -> str:
    try:
        tree = json.loads(text)
    except ValueError:
        return json.dumps(rng.choice(ODD))
    return json.dumps(mutated(rng, tree))


def mutated(rng: Rng, tree: Any) -> Any:
    """Return a document with something in it replaced, removed or added."""
    if isinstance(tree, dict) and tree and rng.random() < 0.8:
        key = rng.choice(list(tree))
        change = rng.randrange(4)
        if change == 0:
            return {name: value for name, value in tree.items() if name != key}
        if change == 1:
            return {**tree, "extra": rng.choice(ODD)}
        return {**tree, key: mutated(rng, tree[key])}
    if isinstance(tree, list) and tree and rng.random() < 0.8:
        return [mutated(rng, tree[0]), *tree[1:]] * rng.randrange(3)
    return rng.choice(ODD)


def endless(rng: Rng, text: str) -> str:
    return text * rng.choice((200, 4_000))


TEXTS: tuple[Callable[[Rng, str], str], ...] = (
    lambda _, text: text, fenced, truncated, garbled, other_schema, endless, lambda *_: "",
    lambda *_: "I cannot help with that.",
)  # fmt: skip


def whole(rng: Rng, wire: str, text: str) -> Json:
    """Return an answer in the form of a wire, sometimes with another end or another shape."""
    changed: Json = {}
    if rng.random() < 0.2:
        name = "stop_reason" if wire == "anthropic" else "finish_reason"
        ends = ("max_tokens", "refusal", "length", "content_filter", "tool_use", None, "new_end")
        changed[name] = rng.choice(ends)
    body = messages_body(text, **changed) if wire == "anthropic" else chat_body(text, **changed)
    return mutated(rng, body) if rng.random() < 0.15 else body


def document(rng: Rng, wire: str, question: str) -> bytes:
    """Return the bytes of an answer."""
    draw = rng.random()
    if draw < 0.04:
        return b""
    if draw < 0.08:
        return rng.randbytes(rng.randrange(1, 2_000))
    if draw < 0.10:
        return b"[" * rng.choice((10, 100_000))
    if draw < 0.12:
        return b" " * rng.choice((1_000, 9_000_000))
    text = rng.choice(TEXTS)(rng, GOOD[question])
    raw = json.dumps(whole(rng, wire, text)).encode()
    return raw[: rng.randrange(len(raw))] if rng.random() < 0.08 else raw


def answer(rng: Rng, wire: str, question: str) -> ScriptedAnswer:
    """Return what a provider sends to one question."""
    raw = document(rng, wire, question)
    status = rng.choice(STATUSES) if rng.random() < 0.25 else 200
    kind = rng.choice(KINDS) if rng.random() < 0.2 else KINDS[0]
    headers: list[tuple[str, str]] = []
    if rng.random() < 0.3:
        headers.append((rng.choice(("retry-after", "retry-after-ms")), rng.choice(RETRY_AFTER)))
    if rng.random() < 0.03:
        headers.append(("Content-Encoding", rng.choice(("gzip", "br", "nonsense"))))
    if rng.random() < 0.05:
        headers.append(("Location", "http://127.0.0.1:9/elsewhere"))
    return delivered(rng, raw, status, kind, tuple(headers))


def delivered(
    rng: Rng, raw: bytes, status: int, kind: str, headers: tuple[tuple[str, str], ...]
) -> ScriptedAnswer:
    """Return an answer as it goes over the line: whole, in pieces, slowly, or not to its end."""
    draw = rng.random()
    if draw < 0.05:
        broken = ScriptedAnswer((), reset=rng.random() < 0.5), ScriptedAnswer((rng.randbytes(200),))
        return ScriptedAnswer((), hold_s=30) if draw < 0.01 else rng.choice(broken)
    made = scripted_answer(raw, status, headers, kind=kind)
    if draw < 0.08:
        return scripted_answer(
            raw, status, headers, kind=kind, length=len(raw) + 50, reset=draw < 0.06
        )
    if draw < 0.09:
        head, body = made.pieces
        return ScriptedAnswer(
            (head, *(body[at : at + 1] for at in range(min(len(body), 600)))), 0.05
        )
    if draw < 0.12:
        return ScriptedAnswer((made.pieces[0] + raw[: len(raw) // 2], raw[len(raw) // 2 :]), 0.01)
    return made
