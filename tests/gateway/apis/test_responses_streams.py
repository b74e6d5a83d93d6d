"""Recall in OpenAI's Responses: the client sees one response, the model sees its calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.gateway.apis import openai_responses
from lore.gateway.apis.adapter import MAX_RECALLS, PromptAdditions
from lore.gateway.sse import EventReader
from lore.records.gateway import Plan, PromptState
from tests.gateway.apis.rewriter_driver import (
    RECALL,
    Driven,
    check_that_searching_ended,
    drive,
    openai_client,
    recalls,
    scripts,
    upstream_of,
)
from tests.upstream import Call, ModelReply, Thought
from tests.upstream.apis import check_request

Json = dict[str, Any]
upstream = upstream_of("responses")


def first_request(*, streams: bool) -> bytes:
    document: Json = {
        "model": "gpt-test",
        "store": False,
        "stream": streams,
        "reasoning": {"effort": "low"},
        "input": "How do we print?",
        "tools": [{"type": "function", "name": "Read", "parameters": {}}],
    }
    request = openai_responses.parse_request(json.dumps(document).encode())
    return openai_responses.rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
    )


def received(answer: bytes, *, streams: bool) -> Json:
    """Return the response that the official SDK makes of an answer."""
    with openai_client(answer, streams=streams) as client:
        asked: Any = {"model": "gpt-test", "input": "x"}
        if not streams:
            return dict(client.responses.create(**asked).to_dict())
        with client.responses.stream(**asked) as stream:
            return dict(stream.get_final_response().to_dict())


def next_request(done: Driven, output: list[Json]) -> bytes:
    """Return what a client sends next: results if it was asked for some, or another prompt."""
    results = [
        {"type": "function_call_output", "call_id": one["call_id"], "output": "a file"}
        for one in output
        if one["type"] == "function_call"
    ]
    document = json.loads(done.bodies[0])
    again = {"type": "message", "role": "user", "content": "And then?"}
    document["input"] += [*output, *(results or [again])]
    document["tools"] = document["tools"][:-1]
    return json.dumps(document).encode()


def bare(items: list[Json]) -> list[Json]:
    """Return items without what the SDK adds to them."""
    added = ("parsed", "parsed_arguments")
    made = []
    for item in items:
        kept = {name: value for name, value in item.items() if name not in added}
        if isinstance(kept.get("content"), list):
            kept["content"] = [
                {name: value for name, value in part.items() if name not in added}
                for part in kept["content"]
            ]
        made.append(kept)
    return made


@pytest.mark.parametrize("streams", [True, False])
@settings(max_examples=100)
@given(script=scripts(), cut=st.integers(1, 200))
def test_one_answer_for_the_client_and_all_calls_for_the_model(streams, script, cut):
    done = drive(openai_responses, first_request(streams=streams), upstream, script, cut)
    response = received(done.answer, streams=streams)
    output = bare(response["output"])
    theirs = [call for call in script[-1].calls if call.name == "Read"]
    assert [one["name"] for one in output if one["type"] == "function_call"] == [
        "Read" for _ in theirs
    ]
    assert response["id"] == "resp_a0"
    assert response["usage"]["output_tokens"] == 7 * len(script)
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 300 * len(script)

    later = openai_responses.parse_request(next_request(done, output))
    expanded = openai_responses.expand_markers(later, done.stored.get)
    sent = json.loads(
        openai_responses.rewrite_request(
            expanded, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
        )
    )
    check_request("responses", sent)
    before = json.loads(done.bodies[-1])
    assert sent["tools"] == before["tools"]
    assert sent["input"][: len(before["input"])] == before["input"]
    rest = sent["input"][len(before["input"]) :]
    calls = [one["name"] for one in rest if one["type"] == "function_call"]
    assert calls == [call.name for call in script[-1].calls]


@settings(max_examples=50)
@given(script=scripts(), cut=st.integers(1, 200))
def test_a_stream_is_spliced_alike_however_it_is_cut(script, cut):
    body = first_request(streams=True)
    whole = drive(openai_responses, body, upstream, script, 10**9)
    assert drive(openai_responses, body, upstream, script, cut).answer == whole.answer


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_without_recall_passes_byte_by_byte(streams):
    script = [ModelReply(Thought("Easy."), "No need.", Call("Read", {"path": "x"}))]
    done = drive(openai_responses, first_request(streams=streams), upstream, script)
    assert done.answer == upstream(done.bodies[0], script[0], "a0")


def test_events_and_items_are_numbered_through():
    script = [
        ModelReply(Thought("Hm."), "I look.", *recalls(2)),
        ModelReply(Thought("Found."), "On Thursdays."),
    ]
    done = drive(openai_responses, first_request(streams=True), upstream, script)
    told = [event.document() for event in EventReader().feed(done.answer)]
    assert [one["sequence_number"] for one in told] == list(range(len(told)))
    added = [one for one in told if one["type"] == "response.output_item.added"]
    assert [one["output_index"] for one in added] == list(range(6))
    names = [one["type"] for one in told]
    assert names.count("response.created") == names.count("response.completed") == 1
    assert [one["type"] for one in told[-1]["response"]["output"]] == [
        "reasoning", "message", "message", "message", "reasoning", "message",
    ]  # fmt: skip


def test_memory_is_searched_ten_times_at_most_and_the_answer_ends():
    script = [ModelReply(f"{n}", *recalls(1)) for n in range(MAX_RECALLS + 2)]
    for streams in (True, False):
        done = drive(openai_responses, first_request(streams=streams), upstream, script)
        output = bare(received(done.answer, streams=streams)["output"])
        check_that_searching_ended(done, json.dumps(output))
        request = openai_responses.parse_request(next_request(done, output))
        expanded = openai_responses.expand_markers(request, done.stored.get)
        check_request("responses", expanded.document)


def test_a_follow_up_that_fails_ends_the_answer_with_an_error():
    request = openai_responses.parse_request(first_request(streams=True))
    rewriter = openai_responses.open_rewriter(request, request.body, RECALL, lambda: "abcdefgh1")
    rewriter.feed(upstream(request.body, ModelReply(*recalls(1)), "a"))
    rewriter.end_response()
    assert rewriter.needs_follow_up
    assert rewriter.error_output(529, b"Overloaded").startswith(b"event: error")
