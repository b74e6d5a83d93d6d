"""What passes of a stream before it names the recall tool, however it is chunked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway import sse
from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.stream_rewriter import StreamRewriter
from tests.gateway.apis.rewriter_driver import RECALL, make_ids

Json = dict[str, Any]
ASKED: Json = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hm?"}]}


def opened(wire: str = "anthropic") -> StreamRewriter:
    more = {"store": False, "input": "Hm?"} if wire == "responses" else {}
    path = "/v1beta/models/m:streamGenerateContent?alt=sse" if wire == "gemini" else ""
    if wire == "gemini":
        more = {"contents": [{"role": "user", "parts": [{"text": "Hm?"}]}]}
    body = json.dumps({**ASKED, **more}).encode()
    return ADAPTERS[wire].open_rewriter(
        ADAPTERS[wire].parse_request(body, path), body, RECALL, make_ids()
    )


def event(end: str, **told: object) -> bytes:
    return f"event: {told['type']}{end}data: {json.dumps(told)}{end}{end}".encode()


def searching(end: str) -> bytes:
    """Return an answer that says something, and then searches memory."""
    call = {"type": "tool_use", "id": "t1", "name": "recall", "input": {}}
    said = {"type": "text_delta", "text": "Let me look."}
    return b"".join([
        event(end, type="message_start", message={"id": "m", "usage": {}}),
        event(end, type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event(end, type="content_block_delta", index=0, delta=said) + end.encode(),
        event(end, type="content_block_stop", index=0),
        event(end, type="content_block_start", index=1, content_block=call),
        event(end, type="content_block_stop", index=1),
        event(end, type="message_delta", delta={"stop_reason": "tool_use"}, usage={}),
        event(end, type="message_stop"),
    ])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_what_has_passed_is_not_said_again_when_reading_begins(end):
    stream = searching(end)
    rewriter = opened()
    whole = rewriter.feed(stream) + rewriter.end_response()
    for cut in range(len(stream)):
        rewriter = opened()
        passed = rewriter.feed(stream[:cut]) + rewriter.feed(stream[cut:]) + rewriter.end_response()
        assert passed == whole


def test_an_event_that_comes_in_many_pieces_is_looked_through_once():
    rewriter = opened("responses")
    size, piece = 4_000_000, 4_096
    stream = sse.write({"type": "response.x", "picture": "A" * size}, "response.x")
    passed = [rewriter.feed(stream[at : at + piece]) for at in range(0, len(stream), piece)]
    assert b"".join(passed) == stream
    assert len([one for one in passed if one]) == 1


@pytest.mark.parametrize("wire", list(ADAPTERS))
@pytest.mark.parametrize("come", [{"id": "m", "content": []}, {"error": {"message": "Too late."}}])
def test_a_document_in_the_place_of_a_stream_ends_the_answer_with_an_error(wire, come):
    rewriter = opened(wire)
    rewriter.feed(FIRST[wire])
    rewriter.end_response()
    assert rewriter.needs_follow_up
    rewriter.add_results({})
    rewriter.follow_up_body()
    document = json.dumps(come).encode()
    told = rewriter.feed(document) + rewriter.end_response()
    assert not told.startswith(b"{")
    assert all(line[:5] in (b"data:", b"event", b"") for line in told.split(b"\n"))
    assert any("error" in one for one in map(json.dumps, sse.documents(told)))
    assert not rewriter.needs_follow_up


def _first_chat() -> bytes:
    call = {"index": 0, "id": "c1", "function": {"name": "recall", "arguments": "{}"}}
    delta: Json = {"tool_calls": [call]}
    chunks = [
        {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return b"".join(map(sse.write, chunks))


def _first_responses() -> bytes:
    call = {"type": "function_call", "call_id": "c1", "name": "recall", "arguments": "{}"}
    told = {"id": "r", "status": "completed", "output": [call]}
    return sse.write({"type": "response.completed", "response": told}, "response.completed")


def _first_gemini() -> bytes:
    part = {"functionCall": {"name": "recall", "args": {}}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return sse.write({"candidates": [candidate]})


FIRST = {
    "anthropic": searching("\n"),
    "chat": _first_chat(),
    "responses": _first_responses(),
    "gemini": _first_gemini(),
}


@pytest.mark.parametrize("wire", sorted(ADAPTERS))
def test_a_stream_that_does_not_name_the_tool_is_followed_by_nothing(wire):
    rewriter = opened(wire)
    passed = rewriter.feed(b'data: {"type": "ping"}\n\ndata: {"ty')
    assert rewriter.is_unchanged
    assert passed + rewriter.end_response() == b'data: {"type": "ping"}\n\ndata: {"ty'
    assert (rewriter.pending_calls, rewriter.needs_follow_up, rewriter.add_results({})) == (
        (),
        False,
        {},
    )


def test_a_stream_that_names_the_tool_has_to_be_read():
    rewriter = opened()
    rewriter.feed(searching("\n"))
    assert not rewriter.is_unchanged
