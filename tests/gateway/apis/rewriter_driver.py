"""Drive a stream rewriter as the gateway does, with scripted upstreams and searches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import httpx2
from hypothesis import strategies as st
from openai import OpenAI

from lore.gateway.apis import markers
from lore.gateway.apis.adapter import MAX_RECALLS, ApiAdapter, RecallCall, Tool
from tests.clients.script import Call as Called
from tests.clients.script import Reply
from tests.clients.usage import Usage
from tests.gateway import rules

USAGE = Usage(fresh=10, written=20, read=300, output=7)

RECALL = Tool(
    "recall",
    "Search memory.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)

Json = dict[str, Any]
Upstream = Callable[[bytes, Reply, str], bytes]
"""Checks a body, and returns a reply as an answer with a name of its own."""


@dataclass
class Driven:
    """What came of a request."""

    answer: bytes
    bodies: list[bytes]
    stored: dict[str, str] = field(default_factory=dict)
    calls: list[RecallCall] = field(default_factory=list)


def upstream_of(wire: ModuleType, check: Callable[[Json, rules.Seen], None]) -> Upstream:
    """Return an upstream that speaks as a module of `tests.clients` has it."""

    def answer(body: bytes, reply: Reply, name: str) -> bytes:
        document = json.loads(body)
        check(document, rules.Seen())
        asked = wire.read(document)
        if asked.stream:
            return b"".join(wire.stream(asked, reply, USAGE, name))
        return json.dumps(wire.whole(asked, reply, USAGE, name)).encode()

    return answer


def found(call: RecallCall) -> str:
    return f"found for {call.arguments.get('query')}"


def make_ids() -> Callable[[], str]:
    numbers: Iterator[int] = iter(range(10_000))
    return lambda: f"marker{next(numbers):04d}x"


def drive(
    wire: ApiAdapter,
    body: bytes,
    upstream: Upstream,
    script: list[Reply],
    cut: int = 7,
    turn: str = "a",
) -> Driven:
    """Answer a request as the gateway does."""
    request = wire.parse_request(body)
    ids = make_ids()
    rewriter = wire.open_rewriter(request, body, RECALL, lambda: f"{turn}{ids()}")
    done = Driven(b"", [body])
    for number, reply in enumerate(script):
        answer = upstream(done.bodies[-1], reply, f"{turn}{number}")
        for at in range(0, len(answer), cut):
            done.answer += rewriter.feed(answer[at : at + cut])
        done.answer += rewriter.end_response()
        goes_on = rewriter.needs_follow_up
        done.calls += rewriter.pending_calls
        done.stored |= rewriter.add_results({
            call.id: found(call) for call in rewriter.pending_calls
        })
        if not goes_on:
            return done
        done.bodies.append(rewriter.follow_up_body())
    msg = "the script is too short"
    raise AssertionError(msg)


def openai_client(answer: bytes, *, streams: bool) -> OpenAI:
    """Return the official SDK, which gets these bytes whatever it asks."""
    sort = "text/event-stream" if streams else "application/json"
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": sort}, content=answer)
    )
    http = httpx2.Client(transport=transport)
    return OpenAI(api_key="none", base_url="http://localhost", http_client=http)


def recalls(count: int) -> tuple[Called, ...]:
    return tuple(Called("recall", {"query": f"thing {n}"}) for n in range(count))


said = st.text("abc \né", min_size=1, max_size=30).map(lambda one: f"I {one.strip()} it")


@st.composite
def scripts(draw: st.DrawFn) -> list[Reply]:
    """Draw the answers to one request: some that search, and the last."""

    def reply(calls: tuple[Called, ...], *, speaks: bool) -> Reply:
        thinking = draw(said) if draw(st.booleans()) else ""
        text = draw(said) if speaks or draw(st.booleans()) else ""
        return Reply(text=text, thinking=thinking, calls=calls)

    replies = [
        reply(recalls(draw(st.integers(1, 3))), speaks=False)
        for _ in range(draw(st.integers(0, 3)))
    ]
    theirs = tuple(Called("Read", {"path": str(n)}) for n in range(draw(st.integers(0, 2))))
    mixed = draw(st.permutations([*theirs, *recalls(draw(st.integers(0, 2)))])) if theirs else []
    return [*replies, reply(tuple(mixed), speaks=True)]


def check_that_searching_ended(done: Driven, told: str) -> None:
    """Check what a client was told of a model that would not stop searching: `told`, as JSON."""
    assert len(done.calls) == len(done.stored) == MAX_RECALLS
    assert len(done.bodies) == MAX_RECALLS + 1
    assert markers.SEARCH_LIMIT_TEXT.encode() in done.bodies[-1]
    assert markers.SEARCH_LIMIT_TEXT.encode() not in done.bodies[-2]
    assert told.count("[memory searched: ") == MAX_RECALLS
    assert told.count(json.dumps(markers.SEARCHES_EXHAUSTED_TEXT)[1:-1]) == 1
