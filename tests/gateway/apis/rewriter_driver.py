"""Drive a stream rewriter as the gateway does, with scripted upstreams and searches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
from hypothesis import strategies as st
from openai import OpenAI

from lore.gateway.apis import markers
from lore.gateway.apis.adapter import MAX_RECALLS, ApiAdapter, RecallCall, Tool
from tests.upstream import Call, ModelReply, Thought
from tests.upstream.apis import APIS, check_request, respond
from tests.upstream.prompt_cache import PromptUsage
from tests.upstream.script import ApiName, Response

USAGE = PromptUsage(fresh=10, read=300, written_5m=20)

RECALL = Tool(
    "recall",
    "Search memory.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)

Json = dict[str, Any]
Upstream = Callable[[bytes, ModelReply, str], bytes]
"""Checks a body, and returns a reply as an answer with a name of its own."""


@dataclass
class Driven:
    """What came of a request."""

    answer: bytes
    bodies: list[bytes]
    stored: dict[str, str] = field(default_factory=dict)
    calls: list[RecallCall] = field(default_factory=list)


def upstream_of(api: ApiName) -> Upstream:
    """Return an upstream that serves an API."""

    def answer(body: bytes, reply: ModelReply, name: str) -> bytes:
        document = json.loads(body)
        check_request(api, document)
        response = response_to(api, document, reply, name)
        if document.get("stream"):
            return b"".join(APIS[api].response_events(response))
        return json.dumps(APIS[api].response_document(response)).encode()

    return answer


def response_to(api: ApiName, document: Json, reply: ModelReply, name: str) -> Response:
    """Return the response of an upstream to a request."""
    response_id = APIS[api].ID_PREFIX + name
    model = document["model"]
    return respond(api, reply, document, id=response_id, model=model, usage=USAGE, output_tokens=7)


def found(call: RecallCall) -> str:
    return f"found for {call.arguments.get('query')}"


def make_ids() -> Callable[[], str]:
    numbers: Iterator[int] = iter(range(10_000))
    return lambda: f"marker{next(numbers):04d}x"


def drive(
    wire: ApiAdapter,
    body: bytes,
    upstream: Upstream,
    script: list[ModelReply],
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


def recalls(count: int) -> tuple[Call, ...]:
    return tuple(Call("recall", {"query": f"thing {n}"}) for n in range(count))


said = st.text("abc \né", min_size=1, max_size=30).map(lambda one: f"I {one.strip()} it")


@st.composite
def scripts(draw: st.DrawFn) -> list[ModelReply]:
    """Draw the answers to one request: some that search, and the last."""

    def reply(calls: tuple[Call, ...], *, speaks: bool) -> ModelReply:
        thoughts = [Thought(draw(said))] if draw(st.booleans()) else []
        texts = [draw(said)] if speaks or draw(st.booleans()) else []
        return ModelReply(*thoughts, *texts, *calls)

    replies = [
        reply(recalls(draw(st.integers(1, 3))), speaks=False)
        for _ in range(draw(st.integers(0, 3)))
    ]
    theirs = tuple(Call("Read", {"path": str(n)}) for n in range(draw(st.integers(0, 2))))
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
