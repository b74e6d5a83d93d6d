"""OpenAI Chat Completions: the rules for a request, and a reply as a document or a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.upstream import prompt_cache
from tests.upstream.script import (
    History,
    Json,
    ModelError,
    Prompt,
    ReceivedRequest,
    Response,
    Result,
    Turn,
    data_event,
    require,
    split_text,
)

ID_PREFIX = "chatcmpl-"


def parse_prompt(document: Mapping[str, Any]) -> Prompt:
    """Read the prompt of a request."""
    system, turns = [], []
    for message in document["messages"]:
        text = text_of(message.get("content"))
        if message["role"] in ("system", "developer"):
            system.append(text)
        elif message["role"] == "tool":
            turns.append(Turn("user", (), (Result(message["tool_call_id"], text),)))
        else:
            turns.append(Turn(message["role"], (text,)))
    return Prompt("\n".join(system), tuple(turns))


def text_of(content: object) -> str:
    """Return the text of a content that is a text, a list of parts, or null."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def prompt_text(document: Mapping[str, Any]) -> str:
    """Return a prompt as one text, in the order in which it is read."""
    parts = [document.get("tools"), *document["messages"]]
    return "".join(prompt_cache.canonical(part) for part in parts if part)


def sends_thoughts(_document: Mapping[str, Any]) -> bool:
    """Return whether the model shows its thoughts."""
    return True


def headers(request: ReceivedRequest) -> dict[str, str]:
    """Return the headers of a successful response."""
    return {"x-request-id": f"req_{request.number:08}", "x-ratelimit-remaining-tokens": "149984"}


def _usage_document(response: Response) -> Json:
    return {
        "prompt_tokens": response.usage.total,
        "completion_tokens": response.output_tokens,
        "total_tokens": response.usage.total + response.output_tokens,
        "prompt_tokens_details": {"cached_tokens": response.usage.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _tool_calls(response: Response) -> list[Json]:
    return [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
        }
        for call_id, call in response.calls
    ]


def _envelope(response: Response, kind: str) -> Json:
    return {
        "id": response.id,
        "object": kind,
        "created": 1_790_000_000,
        "model": response.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _finish_reason(response: Response) -> str:
    return response.stop or ("tool_calls" if response.calls else "stop")


def response_document(response: Response) -> Json:
    """Write a reply as one document; thoughts as compatible providers send them."""
    message: Json = {"role": "assistant", "content": response.text or None}
    if response.thinking:
        message["reasoning_content"] = response.thinking
    if response.calls:
        message["tool_calls"] = _tool_calls(response)
    reason = _finish_reason(response)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    envelope = _envelope(response, "chat.completion")
    return {**envelope, "choices": [choice], "usage": _usage_document(response)}


def response_events(response: Response) -> Iterator[bytes]:
    """Write a reply as server-sent events, the usage last when it was asked for."""
    envelope = _envelope(response, "chat.completion.chunk")
    no_usage = {"usage": None} if response.with_usage else {}

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return data_event({**envelope, "choices": [choice], **no_usage})

    yield chunk({"role": "assistant", "content": ""})
    for piece in split_text(response.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in split_text(response.text):
        yield chunk({"content": piece})
    for number, call in enumerate(_tool_calls(response)):
        function = call["function"]
        start = {**call, "index": number, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [start]})
        for piece in split_text(function["arguments"]):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, _finish_reason(response))
    if response.with_usage:
        yield data_event({**envelope, "choices": [], "usage": _usage_document(response)})
    yield b"data: [DONE]\n\n"


def error_document(error: ModelError) -> Json:
    """Write an error, as both APIs of OpenAI do."""
    kinds = {429: "rate_limit_exceeded", 500: "server_error"}
    kind = error.kind or kinds.get(error.status, "invalid_request_error")
    return {"error": {"message": error.message, "type": kind, "param": None, "code": None}}


def error_event(error: ModelError) -> bytes:
    """Write an error that comes after the stream has begun."""
    return data_event(error_document(error))


def too_long_message(tokens: int, limit: int) -> str:
    return (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted"
        f" in {tokens} tokens."
    )


def remember(response: Response, history: History) -> None:
    """Do nothing: this API does not check thoughts."""


def check_request(document: Mapping[str, Any], _history: History) -> None:
    """Check a request to /v1/chat/completions."""
    require(document.get("model"), "you must provide a model parameter")
    messages = document.get("messages")
    require(isinstance(messages, list) and messages, "[] is too short - 'messages'")
    assert isinstance(messages, list)
    waiting: list[str] = []
    for number, message in enumerate(messages):
        role = message.get("role")
        allowed = ("system", "developer", "user", "assistant", "tool", "function")
        require(role in allowed, f"Invalid value: '{role}' at messages[{number}].role")
        if role == "tool":
            rule = "messages with role 'tool' must be a response to a preceding 'tool_calls'"
            require(message.get("tool_call_id") in waiting, f"{rule}, messages[{number}]")
            waiting.remove(message["tool_call_id"])
            continue
        require(not waiting, _unanswered(waiting))
        _check_content(number, message)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        require(len(set(waiting)) == len(waiting), "Duplicate value for 'tool_call_id'")
    require(not waiting, _unanswered(waiting))
    options = document.get("stream_options")
    rule = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    require(options is None or document.get("stream"), rule)


def _check_content(number: int, message: Any) -> None:
    content, calls = message.get("content"), message.get("tool_calls")
    if content is None:
        rule = f"Invalid value for 'content': expected a string, got null. messages[{number}]"
        require(message["role"] == "assistant" and calls, rule)
    require(calls is None or calls, f"[] is too short - 'messages.{number}.tool_calls'")
    for call in calls or ():
        has_shape = call.get("id") and isinstance(call.get("function", {}).get("arguments"), str)
        require(has_shape, f"Invalid 'messages[{number}].tool_calls'")


def _unanswered(waiting: Sequence[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to"
        f" each 'tool_call_id'. These did not have response messages: {', '.join(waiting)}"
    )
