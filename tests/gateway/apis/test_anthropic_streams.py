"""Recall in Anthropic's Messages: the client sees one response, the model sees its calls."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.gateway import sse
from lore.gateway.apis import anthropic
from lore.gateway.apis.adapter import MAX_RECALLS, PromptAdditions
from lore.gateway.sse import EventReader
from lore.records.gateway import Plan, PromptState
from tests.gateway.apis.rewriter_driver import (
    RECALL,
    Driven,
    check_that_searching_ended,
    drive,
    make_ids,
    recalls,
    response_to,
    scripts,
    upstream_of,
)
from tests.upstream import Call, ModelError, ModelReply, Thought
from tests.upstream.anthropic import content_blocks, error_event
from tests.upstream.apis import check_request

Json = dict[str, Any]
upstream = upstream_of("anthropic")


def first_request(*, streams: bool, messages: list[Json] | None = None) -> bytes:
    document = {
        "model": "claude-test",
        "max_tokens": 1000,
        "stream": streams,
        "thinking": {"type": "adaptive"},
        "messages": messages or [{"role": "user", "content": "How do we print?"}],
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
    }
    request = anthropic.parse_request(json.dumps(document).encode())
    return anthropic.rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
    )


def received(answer: bytes, *, streams: bool) -> Json:
    """Return the message that the official SDK makes of an answer."""
    sort = "text/event-stream" if streams else "application/json"
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": sort}, content=answer)
    )
    http = httpx2.Client(transport=transport)
    with Anthropic(api_key="none", base_url="http://localhost", http_client=http) as client:
        asked: Any = {
            "model": "claude-test",
            "max_tokens": 5,
            "messages": [{"role": "user", "content": "x"}],
        }
        if streams:
            with client.messages.stream(**asked) as stream:
                return dict(stream.get_final_message().to_dict())
        return dict(client.messages.create(**asked).to_dict())


def next_request(done: Driven, message: Json, *, streams: bool) -> bytes:
    """Return what a client sends next: results if it was asked for some, or another prompt."""
    ids = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": one, "content": f"file {one}"} for one in ids]
    client = json.loads(done.bodies[0])["messages"]
    content: Any = results or "And then?"
    said = {"role": "assistant", "content": message["content"]}
    document = {**json.loads(done.bodies[0]), "messages": [*client, said]}
    document["messages"].append({"role": "user", "content": content})
    document["tools"] = document["tools"][:-1]
    return json.dumps(document).encode()


def kinds(content: list[Json]) -> list[str]:
    return [block["type"] for block in content]


@pytest.mark.parametrize("streams", [True, False])
@settings(max_examples=100)
@given(script=scripts(), cut=st.integers(1, 200))
def test_one_answer_for_the_client_and_all_calls_for_the_model(streams, script, cut):
    done = drive(anthropic, first_request(streams=streams), upstream, script, cut)
    message = received(done.answer, streams=streams)
    assert not any(block.get("name") == "recall" for block in message["content"])
    assert message["usage"]["output_tokens"] == 7 * len(script)
    assert message["usage"]["cache_read_input_tokens"] == 300 * len(script)
    theirs = [call for call in script[-1].calls if call.name == "Read"]
    assert message["stop_reason"] == ("tool_use" if theirs else "end_turn")
    texts = [one["text"] for one in message["content"] if one["type"] == "text"]
    assert [one for one in texts if "lore-recall-" not in one] == [
        one.text for one in script if one.text
    ]

    later = anthropic.parse_request(next_request(done, message, streams=streams))
    expanded = anthropic.expand_markers(later, done.stored.get)
    sent = json.loads(
        anthropic.rewrite_request(
            expanded, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
        )
    )
    check_request("anthropic", sent)
    before = json.loads(done.bodies[-1])
    assert sent["tools"] == before["tools"]
    assert sent["messages"][: len(before["messages"])] == before["messages"]
    answered = sent["messages"][len(before["messages"])]
    response = response_to("anthropic", before, script[-1], f"a{len(script) - 1}")
    wanted = content_blocks(response)
    assert answered["content"] == wanted


@settings(max_examples=50)
@given(script=scripts(), cut=st.integers(1, 200))
def test_a_stream_is_spliced_alike_however_it_is_cut(script, cut):
    body = first_request(streams=True)
    whole = drive(anthropic, body, upstream, script, 10**9)
    assert drive(anthropic, body, upstream, script, cut).answer == whole.answer


def test_a_stream_without_recall_passes_byte_by_byte():
    script = [ModelReply(Thought("Easy."), "No need.", Call("Read", {"path": "x"}))]
    done = drive(anthropic, first_request(streams=True), upstream, script)
    assert done.answer == upstream(done.bodies[0], script[0], "a0")
    whole = drive(anthropic, first_request(streams=False), upstream, script)
    assert whole.answer == upstream(whole.bodies[0], script[0], "a0")


def test_a_word_of_the_answer_that_is_the_name_of_our_tool_passes():
    script = [ModelReply('Say "recall", or {"name": "recall"}.')]
    done = drive(anthropic, first_request(streams=True), upstream, script)
    assert done.answer == upstream(done.bodies[0], script[0], "a0")


def test_what_is_complete_passes_at_once_and_the_rest_with_its_end():
    request = anthropic.parse_request(first_request(streams=True))
    rewriter = anthropic.open_rewriter(request, request.body, RECALL, lambda: "abcdefgh1")
    assert rewriter.feed(b"data: {}\n\ndata: ") == b"data: {}\n\n"
    assert rewriter.feed(b"{}\n") == b""
    assert rewriter.feed(b"\n") == b"data: {}\n\n"
    assert rewriter.feed(b"data: {}") == b""
    assert rewriter.end_response() == b"data: {}"


def test_blocks_are_numbered_through_and_the_message_begins_and_ends_once():
    script = [
        ModelReply(Thought("Hm."), "I look.", *recalls(2)),
        ModelReply(Thought("Found."), "On Thursdays."),
    ]
    done = drive(anthropic, first_request(streams=True), upstream, script)
    told = [event.document() for event in EventReader().feed(done.answer)]
    names = [one["type"] for one in told]
    assert [names.count(one) for one in ("message_start", "message_delta", "message_stop")] == [
        1, 1, 1,
    ]  # fmt: skip
    starts = [one["index"] for one in told if one["type"] == "content_block_start"]
    assert starts == list(range(len(starts)))
    message = received(done.answer, streams=True)
    assert kinds(message["content"]) == ["thinking", "text", "text", "text", "thinking", "text"]
    usage = next(one["usage"] for one in told if one["type"] == "message_delta")
    assert [one["output_tokens"] for one in usage["iterations"]] == [7, 7]
    assert [call.arguments for call in done.calls] == [{"query": "thing 0"}, {"query": "thing 1"}]


def test_beside_calls_of_the_client_ours_is_answered_with_its_results():
    calls = (Call("Read", {"path": "x"}), Call("recall", {"query": "y"}))
    script = [ModelReply(Thought("Hm."), "Both.", *calls)]
    done = drive(anthropic, first_request(streams=True), upstream, script)
    assert len(done.bodies) == 1
    message = received(done.answer, streams=True)
    assert kinds(message["content"]) == ["thinking", "text", "tool_use", "text"]
    later = anthropic.parse_request(next_request(done, message, streams=True))
    expanded = anthropic.expand_markers(later, done.stored.get)
    assert [one["role"] for one in expanded.document["messages"]] == ["user", "assistant", "user"]
    said, results = expanded.document["messages"][1:]
    assert kinds(said["content"]) == ["thinking", "text", "tool_use", "tool_use"]
    assert kinds(results["content"]) == ["tool_result", "tool_result"]
    tools = [block.tool for one in expanded.dialogue.entries for block in one.blocks if block.tool]
    assert tools == ["Read", "recall", "recall", "Read"]


def test_a_marker_that_nobody_knows_stays_what_it_is():
    script = [ModelReply(*recalls(1)), ModelReply("Done.")]
    done = drive(anthropic, first_request(streams=True), upstream, script)
    body = next_request(done, received(done.answer, streams=True), streams=True)
    request = anthropic.parse_request(body)
    assert anthropic.expand_markers(request, lambda _: None) is request
    check_request("anthropic", json.loads(body))


def test_a_marker_in_the_words_of_anybody_else_is_a_text():
    done = drive(
        anthropic,
        first_request(streams=True),
        upstream,
        [ModelReply(*recalls(1)), ModelReply("Done.")],
    )
    sign = received(done.answer, streams=True)["content"][0]["text"]
    document = json.loads(done.bodies[0])
    document["messages"] = [
        {"role": "user", "content": sign},
        {"role": "assistant", "content": "What is that?"},
        {"role": "user", "content": [{"type": "text", "text": sign}]},
    ]
    request = anthropic.parse_request(json.dumps(document).encode())
    assert anthropic.expand_markers(request, done.stored.get) is request


def test_memory_is_searched_ten_times_at_most_and_the_answer_ends():
    script = [ModelReply(f"{n}", *recalls(1)) for n in range(MAX_RECALLS + 2)]
    for streams in (True, False):
        done = drive(anthropic, first_request(streams=streams), upstream, script)
        message = received(done.answer, streams=streams)
        check_that_searching_ended(done, json.dumps(message["content"]))
        assert message["stop_reason"] == "end_turn"
        request = anthropic.parse_request(next_request(done, message, streams=streams))
        expanded = anthropic.expand_markers(request, done.stored.get)
        check_request("anthropic", expanded.document)


def test_a_call_that_was_cut_off_leaves_nothing():
    def cut(body: bytes, reply: ModelReply, name: str) -> bytes:
        told = upstream(body, reply, name).replace(
            b'"stop_reason": "tool_use"', b'"stop_reason": "max_tokens"'
        )
        return told.replace(b'\\"}"', b'"')  # fmt: skip

    done = drive(anthropic, first_request(streams=True), cut, [ModelReply("Hm.", *recalls(1))])
    message = received(done.answer, streams=True)
    assert kinds(message["content"]) == ["text"]
    assert message["stop_reason"] == "max_tokens"
    assert done.stored == {}


def test_a_follow_up_that_fails_ends_the_answer_with_an_error():
    request = anthropic.parse_request(first_request(streams=True))
    rewriter = anthropic.open_rewriter(request, request.body, RECALL, lambda: "abcdefgh1")
    rewriter.feed(upstream(request.body, ModelReply(*recalls(1)), "a"))
    rewriter.end_response()
    assert rewriter.needs_follow_up
    assert b"event: error" in rewriter.error_output(529, b"Overloaded")


def test_faults_inside_a_stream_pass():
    request = anthropic.parse_request(first_request(streams=True))
    rewriter = anthropic.open_rewriter(request, request.body, RECALL, lambda: "abcdefgh1")
    error = error_event(ModelError(529, message="Overloaded"))
    assert rewriter.feed(error) == error
    assert not rewriter.needs_follow_up


@pytest.mark.parametrize("streams", [True, False])
def test_a_marker_stands_on_a_line_of_its_own(streams):
    script = [ModelReply("Let me look.", *recalls(1)), ModelReply("Answer 7")]
    done = drive(anthropic, first_request(streams=streams), upstream, script)
    content = received(done.answer, streams=streams)["content"]
    shown = "".join(block.get("text", "") for block in content)
    first, marker, last = shown.split("\n\n")
    assert (first, last) == ("Let me look.", "Answer 7")
    assert marker.startswith("[memory searched: lore-recall-")


@pytest.mark.parametrize("delta", [{"type": "text_delta", "text": "a"}, {"partial_json": "{}"}])
def test_what_belongs_to_no_block_passes_as_it_is_and_is_no_call(delta: Json):
    request = anthropic.parse_request(first_request(streams=True))
    rewriter = anthropic.open_rewriter(request, request.body, RECALL, lambda: "abcdefgh1")
    told: list[Json] = [
        {"type": "content_block_delta", "index": 3, "delta": delta},
        {"type": "content_block_stop", "index": 3},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
    ]
    stream = b"".join(sse.write(one, one["type"]) for one in told)
    assert rewriter.feed(stream) + rewriter.end_response() == stream
    assert rewriter.pending_calls == ()
    assert not rewriter.needs_follow_up


def event(kind: str, **told: object) -> bytes:
    return sse.write({"type": kind, **told}, kind)


def block_events(at: int, block: Json, delta: Json) -> bytes:
    return (
        event("content_block_start", index=at, content_block=block)
        + event("content_block_delta", index=at, delta=delta)
        + event("content_block_stop", index=at)
    )


ASKS = block_events(
    1,
    {"type": "tool_use", "id": "toolu_1", "name": "recall", "input": {}},
    {"type": "input_json_delta", "partial_json": "{}"},
)


def test_what_the_api_has_condensed_is_said_again_whole():
    request = anthropic.parse_request(first_request(streams=True))
    rewriter = anthropic.open_rewriter(request, request.body, RECALL, make_ids())
    delta = {"type": "compaction_delta", "content": "All that was said.", "sealed": "x"}
    told = event("message_start", message={"id": "m", "usage": {}})
    told += block_events(0, {"type": "compaction", "content": None}, delta) + ASKS
    told += event("message_delta", delta={"stop_reason": "tool_use"}, usage={})
    rewriter.feed(told + event("message_stop"))
    rewriter.end_response()
    rewriter.add_results({"toolu_1": "found"})
    content = json.loads(rewriter.follow_up_body())["messages"][-2]["content"]
    assert content[0] == {"type": "compaction", "content": "All that was said.", "sealed": "x"}


CONTAINER = {"id": "container_1", "expires_at": "2026-12-01T00:00:00Z"}
SKILLS = [{"type": "anthropic", "skill_id": "xlsx"}]


@pytest.mark.parametrize(
    ("asked", "follows"),
    [
        ({}, "container_1"),
        ({"container": "container_0"}, "container_1"),
        ({"container": {"skills": SKILLS}}, {"skills": SKILLS, "id": "container_1"}),
    ],
)
@pytest.mark.parametrize("streams", [True, False])
def test_the_container_of_a_first_answer_is_that_of_the_next_and_is_told(streams, asked, follows):
    body = json.dumps({**json.loads(first_request(streams=streams)), **asked}).encode()
    request = anthropic.parse_request(body)
    rewriter = anthropic.open_rewriter(request, body, RECALL, make_ids())
    call = {"type": "tool_use", "id": "toolu_1", "name": "recall", "input": {}}
    done = [{"type": "text", "text": "Done."}]
    if streams:
        start = event("message_start", message={"id": "m", "usage": {}})
        ends = {"stop_reason": "tool_use", "container": CONTAINER}
        first = start + ASKS + event("message_delta", delta=ends, usage={}) + event("message_stop")
        second = start + event("message_delta", delta={"stop_reason": "end_turn"}, usage={})
    else:
        whole: Json = {"type": "message", "role": "assistant", "usage": {}}
        said = {"content": [call], "stop_reason": "tool_use", "container": CONTAINER}
        first = json.dumps({**whole, **said}).encode()
        second = json.dumps({**whole, "content": done, "stop_reason": "end_turn"}).encode()
    rewriter.feed(first)
    rewriter.end_response()
    rewriter.add_results({"toolu_1": "found"})
    assert json.loads(rewriter.follow_up_body())["container"] == follows
    told = rewriter.feed(second) + rewriter.end_response()
    ended = [one["delta"] for one in sse.documents(told) if one["type"] == "message_delta"]
    assert (ended[-1] if streams else json.loads(told))["container"] == CONTAINER
