"""Parsing responses of Anthropic's Messages, and the gateway's own answers."""

from __future__ import annotations

import json

import pytest

from lore.gateway.apis import anthropic, entry_keys
from lore.gateway.apis.adapter import Reply as Told
from lore.records.gateway import TokenUse
from tests.gateway.apis.test_anthropic_streams import first_request, received, upstream
from tests.upstream import Call, ModelError, ModelReply, Thought
from tests.upstream.anthropic import error_document, error_event

SAID = ModelReply(Thought("Hm."), "I look.", Call("Read", {"path": "é.py"}))


def read(answer: bytes, *, streams: bool) -> Told:
    return anthropic.read_reply(answer, streams=streams)


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_is_known_again_in_the_next_request(streams):
    body = first_request(streams=streams)
    answer = upstream(body, SAID, "a")
    told = read(answer, streams=streams)
    assert told.usage == TokenUse(10, 300, 20, 0, 7)
    assert told.stop_reason == "tool_use"
    assert told.entry
    assert [block.kind for block in told.entry.blocks] == ["reasoning", "text", "call"]
    assert told.entry.blocks[2].text == '{"path":"é.py"}'
    content = received(answer, streams=streams)["content"]
    document = json.loads(body)
    document["messages"].append({"role": "assistant", "content": content})
    later = anthropic.parse_request(json.dumps(document).encode()).dialogue.entries
    assert later[-1] == told.entry


def test_what_is_said_again_has_a_key_of_its_own():
    said = {"role": "assistant", "content": "Done."}
    asked = {"role": "user", "content": "Go on."}
    body = {"model": "m", "messages": [asked, said, asked, said, asked]}
    entries = anthropic.parse_request(json.dumps(body).encode()).dialogue.entries
    told = read(upstream(first_request(streams=True), ModelReply("Done."), "a"), streams=True).entry
    assert told
    assert entry_keys.with_next_key(entries, told).key == entries[1].key + "#3"
    assert entry_keys.with_next_key(entries[:1], told).key == entries[1].key


def test_writes_for_an_hour_are_counted_apart():
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 50,
        "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30},
        "output_tokens": 2,
    }
    body = {"type": "message", "content": [{"type": "text", "text": "x"}], "usage": usage}
    told = read(json.dumps(body).encode(), streams=False)
    assert told.usage == TokenUse(1, 0, 20, 30, 2)


@pytest.mark.parametrize("streams", [True, False])
def test_a_prompt_that_is_too_long_tells_both_sizes(streams):
    message = "prompt is too long: 215,300 tokens > 200000 maximum"
    error = ModelError(400, message=message)
    answer = error_event(error) if streams else json.dumps(error_document(error)).encode()
    fault = read(answer, streams=streams).error
    assert fault
    assert (fault.is_too_long, fault.prompt_tokens, fault.limit_tokens) == (True, 215300, 200000)
    assert fault.kind == "invalid_request_error"


def test_a_stream_that_breaks_off_is_not_whole():
    answer = upstream(first_request(streams=True), SAID, "a")
    told = read(answer[: len(answer) // 2], streams=True)
    assert not told.stop_reason
    assert told.usage.cache_read_tokens == 300


def test_what_is_no_answer_at_all_is_a_fault():
    told = read(b"<html>", streams=False)
    assert told.error
    assert not told.error.is_too_long


@pytest.mark.parametrize("streams", [True, False])
def test_the_gateway_answers_as_the_model_would(streams):
    request = anthropic.parse_request(first_request(streams=streams))
    answer = anthropic.answer_with_text(request, "Lore is well.\nIndeed.")
    message = received(answer.body, streams=streams)
    assert message["content"] == [{"type": "text", "text": "Lore is well.\nIndeed."}]
    assert message["stop_reason"] == "end_turn"
    told = read(answer.body, streams=streams)
    assert told.stop_reason
    assert told.usage == TokenUse()
