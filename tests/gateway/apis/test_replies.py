"""Parsing responses of OpenAI and Google, and the gateway's own answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.adapter import Reply as Told
from lore.gateway.apis.json_values import Json
from lore.gateway.apis.openai_chat import streams as chat_replies
from lore.gateway.apis.openai_responses import streams as responses_replies
from lore.records.gateway import TokenUse
from tests.gateway.apis import test_chat_streams, test_gemini_streams, test_responses_streams
from tests.upstream import Call, ModelReply, Thought

SAID = ModelReply(Thought("Hm."), "I look.", Call("Read", {"path": "é.py"}))
TOO_LONG: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "chat": (
        {
            "error": {
                "message": "This model's maximum context length is 128000 tokens. However, your"
                " messages resulted in 130500 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        },
        (130500, 128000),
    ),
    "responses": (
        {
            "error": {
                "message": "Your input exceeds the context window of this model.",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        },
        (0, 0),
    ),
    "gemini": (
        {
            "error": {
                "code": 400,
                "status": "INVALID_ARGUMENT",
                "message": "The input token count (1200345) exceeds the maximum number of tokens"
                " allowed (1048576).",
            }
        },
        (1200345, 1048576),
    ),
}
PATHS = {"gemini": test_gemini_streams.STREAM}
both = pytest.mark.parametrize("streams", [True, False])
each = pytest.mark.parametrize("name", list(TOO_LONG))


def answered(name: str, *, streams: bool) -> tuple[bytes, bytes]:
    """Return a request, and an answer to it."""
    if name == "gemini":
        body = test_gemini_streams.first_request()
        return body, test_gemini_streams.upstream_of(streams=streams)(body, SAID, "a")
    module: Any = {"chat": test_chat_streams, "responses": test_responses_streams}[name]
    body = module.first_request(streams=streams)
    return body, module.upstream(body, SAID, "a")


def read(name: str, answer: bytes, *, streams: bool) -> Told:
    return ADAPTERS[name].read_reply(answer, streams=streams)


@both
@each
def test_an_answer_tells_what_was_said_and_what_it_took(name, streams):
    _, answer = answered(name, streams=streams)
    told = read(name, answer, streams=streams)
    assert told.usage.cache_read_tokens == 300
    assert told.usage.output_tokens == 7
    assert told.usage.cache_write_tokens == 0
    assert told.usage.input_tokens == (310 if name == "gemini" else 330)
    assert told.entry
    assert [block.kind for block in told.entry.blocks] == ["reasoning", "text", "call"]
    assert json.loads(told.entry.blocks[2].text) == {"path": "é.py"}
    assert told.stop_reason


@both
@each
def test_a_prompt_that_is_too_long_tells_its_size_where_it_is_told(name, streams):
    document, sizes = TOO_LONG[name]
    answer = json.dumps(document).encode()
    fault = read(name, b"data: " + answer + b"\n\n" if streams else answer, streams=streams).error
    if name == "responses" and streams:
        failed = {"type": "response.failed", "response": {**document, "status": "failed"}}
        answer = json.dumps(failed).encode()
        fault = read(name, b"data: " + answer + b"\n\n", streams=True).error
    assert fault
    assert fault.is_too_long
    assert (fault.prompt_tokens, fault.limit_tokens) == sizes


@each
def test_a_stream_that_breaks_off_is_not_whole(name):
    _, answer = answered(name, streams=True)
    assert not read(name, answer[: len(answer) // 2], streams=True).stop_reason


@each
def test_what_is_no_answer_at_all_is_a_fault(name):
    told = read(name, b"<html>", streams=False)
    assert told.error
    assert not told.error.is_too_long


@both
@each
def test_the_gateway_answers_as_the_model_would(name, streams):
    body, _ = answered(name, streams=streams)
    request = ADAPTERS[name].parse_request(body, PATHS.get(name, "") if streams else "")
    answer = ADAPTERS[name].answer_with_text(request, "Lore is well.\nIndeed.")
    joined = answer.body
    told = read(name, joined, streams=streams)
    assert told.entry
    assert [block.text for block in told.entry.blocks] == ["Lore is well.\nIndeed."]
    assert told.stop_reason
    assert told.usage == TokenUse()
    received: Any
    if name == "chat":
        received = test_chat_streams.received(joined, streams=streams)
        assert received["choices"][0]["message"]["content"] == "Lore is well.\nIndeed."
    if name == "responses":
        received = test_responses_streams.received(joined, streams=streams)
        assert received["output"][0]["content"][0]["text"] == "Lore is well.\nIndeed."


def test_a_stream_of_gemini_without_events_is_a_list_of_its_pieces():
    _, answer = answered("gemini", streams=False)
    told = read("gemini", b"[" + answer + b"]", streams=False)
    assert told.entry
    assert told.usage.cache_read_tokens == 300


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, 2),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 20}, 10),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 3}, 2),
        ({"prompt_tokens": 10, "completion_tokens": 2}, 2),
        ({"completion_tokens": 2, "total_tokens": 20}, 2),
    ],
)
def test_what_only_the_sum_of_a_completion_tells_was_thought(usage: Json, said: int):
    assert chat_replies.parse_usage(usage).output_tokens == said


QUEUED: Json = {"status": "queued", "background": True, "output": [], "usage": None}


@pytest.mark.parametrize(
    ("response", "goes_on"),
    [
        (QUEUED, True),
        ({**QUEUED, "status": "in_progress"}, True),
        ({**QUEUED, "status": "completed"}, False),
        ({**QUEUED, "status": "cancelled"}, False),
    ],
)
def test_a_response_in_the_background_goes_on(response: Json, goes_on: bool):
    assert responses_replies.parse_reply(json.dumps(response).encode()).in_background is goes_on


@pytest.mark.parametrize("background", [True, False])
def test_a_stream_in_the_background_goes_on_when_nobody_listens(background: bool):
    begun = {"type": "response.created", "response": {**QUEUED, "background": background}}
    ended = {"type": "response.completed", "response": {**QUEUED, "status": "completed"}}
    for told, goes_on in (([begun], background), ([begun, ended], False)):
        stream = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in told)
        reply = responses_replies.read_reply(stream, streams=True)
        assert reply.in_background is goes_on
