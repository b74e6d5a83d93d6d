"""Recall in Chat Completions: the client sees one response, the model sees its calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.gateway.apis import openai_chat
from lore.gateway.apis.adapter import MAX_RECALLS, PromptAdditions
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
upstream = upstream_of("chat")


def first_request(*, streams: bool) -> bytes:
    document: Json = {
        "model": "gpt-test",
        "messages": [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "How do we print?"},
        ],
        "tools": [{"type": "function", "function": {"name": "Read", "parameters": {}}}],
    }
    if streams:
        document |= {"stream": True, "stream_options": {"include_usage": True}}
    request = openai_chat.parse_request(json.dumps(document).encode())
    return openai_chat.rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
    )


def received(answer: bytes, *, streams: bool) -> Json:
    """Return the completion that the official SDK makes of an answer."""
    with openai_client(answer, streams=streams) as client:
        asked: Any = {"model": "gpt-test", "messages": [{"role": "user", "content": "x"}]}
        if not streams:
            return dict(client.chat.completions.create(**asked).to_dict())
        with client.chat.completions.stream(**asked) as stream:
            return dict(stream.get_final_completion().to_dict())


def next_request(done: Driven, message: Json) -> bytes:
    """Return what a client sends next: results if it was asked for some, or another prompt."""
    calls = message.get("tool_calls") or []
    results = [
        {"role": "tool", "tool_call_id": one["id"], "content": f"file {one['id']}"} for one in calls
    ]
    given = ("content", "reasoning_content", "tool_calls")
    said = {"role": "assistant", **{name: message[name] for name in given if message.get(name)}}
    said.setdefault("content", None)
    if calls:
        names = ("id", "type", "function")
        said["tool_calls"] = [{name: one[name] for name in names} for one in calls]
        for one in said["tool_calls"]:
            one["function"] = {name: one["function"][name] for name in ("name", "arguments")}
    document = json.loads(done.bodies[0])
    document["messages"] += [said, *(results or [{"role": "user", "content": "And then?"}])]
    document["tools"] = document["tools"][:-1]
    return json.dumps(document).encode()


@pytest.mark.parametrize("streams", [True, False])
@settings(max_examples=100)
@given(script=scripts(), cut=st.integers(1, 200))
def test_one_answer_for_the_client_and_all_calls_for_the_model(streams, script, cut):
    done = drive(openai_chat, first_request(streams=streams), upstream, script, cut)
    completion = received(done.answer, streams=streams)
    choice = completion["choices"][0]
    message = choice["message"]
    theirs = [call for call in script[-1].calls if call.name == "Read"]
    assert [one["function"]["name"] for one in message.get("tool_calls") or []] == [
        "Read" for _ in theirs
    ]
    assert choice["finish_reason"] == ("tool_calls" if theirs else "stop")
    assert completion["usage"]["completion_tokens"] == 7 * len(script)
    assert completion["usage"]["prompt_tokens_details"]["cached_tokens"] == 300 * len(script)

    later = openai_chat.parse_request(next_request(done, message))
    expanded = openai_chat.expand_markers(later, done.stored.get)
    sent = json.loads(
        openai_chat.rewrite_request(
            expanded, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
        )
    )
    check_request("chat", sent)
    before = json.loads(done.bodies[-1])
    assert sent["tools"] == before["tools"]
    assert sent["messages"][: len(before["messages"])] == before["messages"]
    answered = sent["messages"][len(before["messages"])]
    assert answered.get("content") == script[-1].text
    calls = [one["function"]["name"] for one in answered.get("tool_calls") or []]
    assert calls == [call.name for call in script[-1].calls]
    assert answered.get("reasoning_content", "") == script[-1].thinking


@settings(max_examples=50)
@given(script=scripts(), cut=st.integers(1, 200))
def test_a_stream_is_spliced_alike_however_it_is_cut(script, cut):
    body = first_request(streams=True)
    whole = drive(openai_chat, body, upstream, script, 10**9)
    assert drive(openai_chat, body, upstream, script, cut).answer == whole.answer


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_without_recall_passes_byte_by_byte(streams):
    script = [ModelReply(Thought("Easy."), "No need.", Call("Read", {"path": "x"}))]
    done = drive(openai_chat, first_request(streams=streams), upstream, script)
    assert done.answer == upstream(done.bodies[0], script[0], "a0")


def test_a_completion_has_one_id_and_one_end():
    script = [ModelReply("I look.", *recalls(2)), ModelReply("On Thursdays.")]
    done = drive(openai_chat, first_request(streams=True), upstream, script)
    assert done.answer.count(b"[DONE]") == 1
    assert done.answer.count(b"chatcmpl-a0") == done.answer.count(b"data: {")
    said = received(done.answer, streams=True)["choices"][0]["message"]["content"]
    assert said.startswith("I look.\n\n[memory searched: lore-recall-")
    assert said.endswith("]\n\nOn Thursdays.")


def test_memory_is_searched_ten_times_at_most_and_the_answer_ends():
    script = [ModelReply(f"{n}", *recalls(1)) for n in range(MAX_RECALLS + 2)]
    for streams in (True, False):
        done = drive(openai_chat, first_request(streams=streams), upstream, script)
        choice = received(done.answer, streams=streams)["choices"][0]
        check_that_searching_ended(done, json.dumps(choice["message"]))
        assert choice["finish_reason"] == "stop"
        request = openai_chat.parse_request(next_request(done, choice["message"]))
        check_request("chat", openai_chat.expand_markers(request, done.stored.get).document)


def test_a_follow_up_that_fails_ends_the_answer_with_an_error():
    request = openai_chat.parse_request(first_request(streams=True))
    rewriter = openai_chat.open_rewriter(request, request.body, RECALL, lambda: "abcdefgh1")
    rewriter.feed(upstream(request.body, ModelReply(*recalls(1)), "a"))
    rewriter.end_response()
    assert rewriter.needs_follow_up
    assert rewriter.error_output(529, b"Overloaded").endswith(b"[DONE]\n\n")
