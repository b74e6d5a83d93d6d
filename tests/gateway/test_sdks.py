"""The official SDKs through the gateway, with memory behind it: nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.sdk_gateway import CLAUDE, Behind, behind
from tests.upstream import Call, ModelError, ModelReply, RawResponse, Text, Thought
from tests.upstream.anthropic import MODELS
from tests.waiting import eventually

GPT = "gpt-5.2"
THINKING: Any = {"type": "enabled", "budget_tokens": 2_000}
WEATHER: Any = {
    "name": "weather",
    "description": "Tells the weather.",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}},
}
FUNCTION: Any = {
    "type": "function",
    "function": {"name": "weather", "parameters": WEATHER["input_schema"]},
}
FLAT: Any = {"type": "function", "name": "weather", "parameters": WEATHER["input_schema"]}


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Behind]:
    with behind(tmp_path) as held:
        yield held
        assert [one.problem for one in held.up.rejected] == []


def test_complete_response_of_claude_is_recorded(talk):
    talk.up.reply_with(ModelReply("We keep ten."))
    told = talk.ask("How many do we keep?")
    assert told.content[0].text == "We keep ten."
    assert told.usage.input_tokens > 0
    eventually(lambda: talk.stored() == ["How many do we keep?", "We keep ten."])


def test_claude_streams(talk):
    talk.up.reply_with(ModelReply("We keep ten, as was decided in spring.", chunk_bytes=1))
    with talk.claude.messages.stream(
        model=CLAUDE, max_tokens=100, messages=[{"role": "user", "content": "How many?"}]
    ) as stream:
        pieces = list(stream.text_stream)
        whole = stream.get_final_message()
    assert len(pieces) > 1
    assert whole.content[0].text == "".join(pieces) == "We keep ten, as was decided in spring."
    assert whole.stop_reason == "end_turn"


def test_claude_calls_tools_and_thinks(talk):
    talk.up.reply_with(
        ModelReply(Thought("It depends on the place."), Call("weather", {"place": "Kiel"})),
        ModelReply(Thought("Rain, then."), Text("It rains.")),
    )
    messages: list[Any] = [{"role": "user", "content": "Does it rain in Kiel?"}]
    first = talk.ask(messages=messages, tools=[WEATHER], thinking=THINKING)
    thought, call = first.content
    assert (thought.type, call.type, call.input) == ("thinking", "tool_use", {"place": "Kiel"})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "rain"}
    messages += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    second = talk.ask(messages=messages, tools=[WEATHER], thinking=THINKING)
    assert second.content[-1].text == "It rains."
    eventually(lambda: talk.stored()[-1:] == ["It rains."])
    assert talk.stored().count("Does it rain in Kiel?") == 1


def test_recall_of_claude_is_one_message_with_total_usage(talk):
    talk.memory.remember("The staging port is 5436")
    talk.up.reply_with(
        ModelReply(Text("Let me see."), Call("recall", {"query": "staging port"})),
        ModelReply("It is 5436."),
    )
    with talk.claude.messages.stream(
        model=CLAUDE, max_tokens=100, messages=[{"role": "user", "content": "Which port?"}]
    ) as stream:
        whole = stream.get_final_message()
    assert "It is 5436." in whole.content[-1].text
    assert {block.type for block in whole.content} == {"text"}
    first, second = (one.usage for one in talk.up.requests)
    used = whole.usage
    read = (used.cache_read_input_tokens or 0) + (used.cache_creation_input_tokens or 0)
    assert used.input_tokens + read == first.total + second.total


def test_unknown_fields_are_forwarded(talk):
    talk.ask(
        extra_headers={"anthropic-beta": "of-tomorrow-2027-01-01", "x-other": "kept"},
        extra_body={"of_tomorrow": {"deep": [1, None]}},
        extra_query={"beta": "true"},
    )
    assert talk.last.header("anthropic-beta") == "of-tomorrow-2027-01-01"
    assert talk.last.header("x-other") == "kept"
    assert talk.last.json["of_tomorrow"] == {"deep": [1, None]}
    assert talk.last.target.endswith("?beta=true")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.RequestTooLargeError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.OverloadedError),
    ],
)
def test_claude_errors_raise_sdk_exceptions(talk, status, error):
    talk.up.reply_with(ModelError(status, "an_error", "Because.", {"retry-after": "7"}))
    with pytest.raises(error) as caught:
        talk.ask()
    assert caught.value.status_code == status
    assert "Because." in str(caught.value)
    assert caught.value.response.headers["retry-after"] == "7"


def test_error_within_a_stream_reaches_the_sdk(talk):
    event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    body = f"event: error\ndata: {json.dumps(event)}\n\n".encode()
    talk.up.reply_with(RawResponse(200, {"content-type": "text/event-stream"}, body))
    with (
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
        talk.claude.messages.stream(
            model=CLAUDE, max_tokens=100, messages=[{"role": "user", "content": "Hello?"}]
        ) as stream,
    ):
        stream.get_final_message()


def test_bearer_token_is_forwarded_and_not_stored(talk):
    told = talk.bearer.messages.create(
        model=CLAUDE, max_tokens=10, messages=[{"role": "user", "content": "Hello?"}]
    )
    assert told.content
    assert talk.last.header("authorization") == "Bearer of a client"
    eventually(lambda: len(talk.stored()) == 2)
    assert not any("of a client" in text for text in talk.stored())


def test_token_counts_and_model_lists_come_from_upstream(talk):
    counted = talk.claude.messages.count_tokens(
        model=CLAUDE, messages=[{"role": "user", "content": "Hello?"}]
    )
    assert counted.input_tokens > 0
    assert [model.id for model in talk.claude.models.list()] == list(MODELS)
    assert [model.id for model in talk.gpt.models.list()] == list(MODELS)
    assert talk.stored() == []


def test_too_long_prompt_error_is_forwarded(tmp_path):
    with (
        behind(tmp_path, window_tokens=50) as talk,
        pytest.raises(anthropic.BadRequestError, match="prompt is too long"),
    ):
        talk.ask("Hello? " * 200)


def test_chat_response_is_complete_or_streamed(talk):
    talk.up.reply_with(ModelReply("Ten."), ModelReply("Ten, as I said before."))
    messages: Any = [{"role": "user", "content": "How many?"}]
    told = talk.gpt.chat.completions.create(model=GPT, messages=messages)
    assert told.choices[0].message.content == "Ten."
    messages += [{"role": "assistant", "content": "Ten."}, {"role": "user", "content": "Sure?"}]
    chunks = list(
        talk.gpt.chat.completions.create(
            model=GPT, messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    said = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert said == "Ten, as I said before."
    assert chunks[-1].usage.prompt_tokens > 0
    eventually(lambda: talk.stored() == ["How many?", "Ten.", "Sure?", "Ten, as I said before."])


def test_chat_calls_client_tools_and_recall(talk):
    talk.memory.remember("The staging port is 5436")
    talk.up.reply_with(
        ModelReply(Text("Let me see."), Call("recall", {"query": "staging port"})),
        ModelReply(Call("weather", {"place": "Kiel"})),
        ModelReply("It rains at 5436."),
    )
    messages: list[Any] = [{"role": "user", "content": "Port and weather?"}]
    with talk.gpt.chat.completions.stream(model=GPT, messages=messages, tools=[FUNCTION]) as stream:
        told = stream.get_final_completion().choices[0].message
    (call,) = told.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "weather", {"place": "Kiel"},
    )  # fmt: skip
    assert "5436" in json.dumps(talk.up.requests[1].json["messages"])
    messages += [
        told.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}),
        {"role": "tool", "tool_call_id": call.id, "content": "rain"},
    ]
    talk.gpt.chat.completions.create(model=GPT, messages=messages, tools=[FUNCTION])
    before = talk.up.requests[1].json["messages"]
    assert talk.last.json["messages"][: len(before)] == before
    eventually(lambda: talk.stored()[-1:] == ["It rains at 5436."])


def test_responses_api_is_complete_or_streamed_with_tools(talk):
    talk.up.reply_with(
        ModelReply(Thought("Where is that?"), Call("weather", {"place": "Kiel"})),
        ModelReply("It rains."),
    )
    said: list[Any] = [{"role": "user", "content": "Does it rain in Kiel?"}]
    options: Any = {"include": ["reasoning.encrypted_content"], "store": False, "tools": [FLAT]}
    first = talk.gpt.responses.create(model=GPT, input=said, **options)
    (call,) = [item for item in first.output if item.type == "function_call"]
    said += [item.model_dump(exclude_none=True) for item in first.output]
    said.append({"type": "function_call_output", "call_id": call.call_id, "output": "rain"})
    with talk.gpt.responses.stream(model=GPT, input=said, **options) as stream:
        second = stream.get_final_response()
    assert second.output_text == "It rains."
    assert second.usage.input_tokens > 0
    eventually(lambda: talk.stored()[-1:] == ["It rains."])


def test_recall_in_the_responses_api_is_one_response(talk):
    talk.memory.remember("The staging port is 5436")
    talk.up.reply_with(
        ModelReply(Text("Let me see."), Call("recall", {"query": "staging port"})),
        ModelReply("It is 5436."),
    )
    with talk.gpt.responses.stream(model=GPT, input="Which port?", store=False) as stream:
        told = stream.get_final_response()
    assert told.output_text.endswith("It is 5436.")
    assert {item.type for item in told.output} == {"message"}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
def test_openai_errors_raise_sdk_exceptions(talk, status, error):
    talk.up.reply_with(
        ModelError(status, "an_error", "Because."), ModelError(status, "an_error", "Because.")
    )
    with pytest.raises(error, match="Because"):
        talk.gpt.chat.completions.create(model=GPT, messages=[{"role": "user", "content": "?"}])
    with pytest.raises(error, match="Because"):
        talk.gpt.responses.create(model=GPT, input="?")


def test_stored_response_is_forwarded(talk):
    first = talk.gpt.responses.create(model=GPT, input="Hello?")
    talk.gpt.responses.create(model=GPT, input="And then?", previous_response_id=first.id)
    assert talk.last.json["previous_response_id"] == first.id
