"""Recall in Gemini's generateContent: the client sees one response, the model its calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.gateway.apis import gemini
from lore.gateway.apis.adapter import MAX_RECALLS, ApiAdapter, PromptAdditions, Request
from lore.gateway.sse import EventReader
from lore.records.gateway import Plan, PromptState
from tests.gateway.apis.rewriter_driver import (
    RECALL,
    Driven,
    check_that_searching_ended,
    drive,
    recalls,
    scripts,
)
from tests.upstream import Call, ModelReply, Thought
from tests.upstream.apis import check_request, respond
from tests.upstream.gemini import content_parts, response_document, response_events
from tests.upstream.prompt_cache import PromptUsage
from tests.upstream.script import Response

Json = dict[str, Any]
STREAM = "/v1beta/models/gemini-test:streamGenerateContent?alt=sse"


class Streaming:
    """The adapter for a client that names the stream in its path."""

    def __getattr__(self, name: str) -> Any:
        return getattr(gemini, name)

    def parse_request(self, body: bytes, path: str = STREAM) -> Request:
        return gemini.parse_request(body, path)


def adapter_of(*, streams: bool) -> ApiAdapter:
    return Streaming() if streams else gemini


def response_to(reply: ModelReply, name: str) -> Response:
    usage = PromptUsage(fresh=10, read=300)
    return respond("gemini", reply, {}, id=name, model="gemini-test", usage=usage, output_tokens=7)


def upstream_of(*, streams: bool) -> Any:
    def upstream(body: bytes, reply: ModelReply, name: str) -> bytes:
        check_request("gemini", json.loads(body))
        response = response_to(reply, name)
        if streams:
            return b"".join(response_events(response))
        return json.dumps(response_document(response)).encode()

    return upstream


def first_request() -> bytes:
    document = {
        "contents": [{"role": "user", "parts": [{"text": "How do we print?"}]}],
        "tools": [{"functionDeclarations": [{"name": "Read"}]}],
    }
    request = gemini.parse_request(json.dumps(document).encode())
    return gemini.rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
    )


def received(answer: bytes, *, streams: bool) -> tuple[list[Json], Json, str]:
    """Return parts, usage and end of an answer; texts in a row are one, as clients have them."""
    told = (
        [event.document() for event in EventReader().feed(answer)]
        if streams
        else [json.loads(answer)]
    )
    parts: list[Json] = []
    stops = []
    for one in told:
        candidate = one["candidates"][0]
        stops += [candidate["finishReason"]] if "finishReason" in candidate else []
        for part in candidate["content"]["parts"]:
            if parts and part.keys() == parts[-1].keys() and "text" in part:
                parts[-1]["text"] += part["text"]
            else:
                parts.append(part)
    (stop,) = stops
    return parts, told[-1]["usageMetadata"], stop


def next_request(done: Driven, parts: list[Json]) -> bytes:
    """Return what a client sends next: results if it was asked for some, or another prompt."""
    results: list[Json] = [
        {"functionResponse": {"name": one["functionCall"]["name"], "response": {"output": "file"}}}
        for one in parts
        if "functionCall" in one
    ]
    document = json.loads(done.bodies[0])
    again: list[Json] = results or [{"text": "And then?"}]
    document["contents"] += [
        {"role": "model", "parts": parts},
        {"role": "user", "parts": again},
    ]
    document["tools"] = document["tools"][:-1]
    return json.dumps(document).encode()


@pytest.mark.parametrize("streams", [True, False])
@settings(max_examples=100)
@given(script=scripts(), cut=st.integers(1, 200))
def test_one_answer_for_the_client_and_all_calls_for_the_model(streams, script, cut):
    upstream = upstream_of(streams=streams)
    done = drive(adapter_of(streams=streams), first_request(), upstream, script, cut)
    parts, usage, stop = received(done.answer, streams=streams)
    theirs = [call for call in script[-1].calls if call.name == "Read"]
    names = [one["functionCall"]["name"] for one in parts if "functionCall" in one]
    assert names == ["Read" for _ in theirs]
    assert stop == "STOP"
    assert usage["cachedContentTokenCount"] == 300 * len(script)

    later = gemini.parse_request(next_request(done, parts))
    expanded = gemini.expand_markers(later, done.stored.get)
    sent = json.loads(
        gemini.rewrite_request(
            expanded, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
        )
    )
    check_request("gemini", sent)
    before = json.loads(done.bodies[-1])
    assert sent["tools"] == before["tools"]
    assert sent["contents"][: len(before["contents"])] == before["contents"]
    answered = sent["contents"][len(before["contents"])]
    assert answered["parts"] == content_parts(response_to(script[-1], "x"))


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_without_recall_passes_byte_by_byte(streams):
    script = [ModelReply(Thought("Easy."), "No need.", Call("Read", {"path": "x"}))]
    upstream = upstream_of(streams=streams)
    done = drive(adapter_of(streams=streams), first_request(), upstream, script)
    assert done.answer == upstream(done.bodies[0], script[0], "a0")


@settings(max_examples=50)
@given(script=scripts(), cut=st.integers(1, 200))
def test_a_stream_is_spliced_alike_however_it_is_cut(script, cut):
    wire, upstream = adapter_of(streams=True), upstream_of(streams=True)
    whole = drive(wire, first_request(), upstream, script, 10**9)
    assert drive(wire, first_request(), upstream, script, cut).answer == whole.answer


@pytest.mark.parametrize("streams", [True, False])
def test_memory_is_searched_ten_times_at_most_and_the_answer_ends(streams):
    script = [ModelReply(f"{n}", *recalls(1)) for n in range(MAX_RECALLS + 2)]
    done = drive(adapter_of(streams=streams), first_request(), upstream_of(streams=streams), script)
    parts, _, _ = received(done.answer, streams=streams)
    check_that_searching_ended(done, json.dumps(parts))
    request = gemini.parse_request(next_request(done, parts))
    check_request("gemini", gemini.expand_markers(request, done.stored.get).document)
