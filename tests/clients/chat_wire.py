"""OpenAI Chat Completions: reading and checking a request, writing a reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.responses_wire import error, text_of
from tests.clients.script import Asked, Refused, Reply, Result, Turn
from tests.clients.usage import Usage

PIECE = 12
"""Characters per delta; small, so that every client has to put pieces together."""

Json = dict[str, Any]


def read(body: Json) -> Asked:
    """Read a request; raise Refused where the real service would answer 400."""
    for name in ("model", "messages"):
        if name not in body:
            raise Refused(f"Missing required parameter: '{name}'.")
    check_roles(body["messages"])
    system, turns = [], []
    for message in body["messages"]:
        text = text_of(message.get("content"))
        if message["role"] in ("system", "developer"):
            system.append(text)
        elif message["role"] == "tool":
            turns.append(Turn("user", (), (Result(message["tool_call_id"], text),)))
        else:
            turns.append(Turn(message["role"], (text,)))
    blocks = (
        json.dumps(body.get("tools") or []),
        *(json.dumps(message, sort_keys=True) for message in body["messages"]),
    )
    return Asked(
        wire="chat",
        model=body["model"],
        stream=bool(body.get("stream")),
        system="\n".join(system),
        turns=tuple(turns),
        blocks=blocks,
        breakpoints=tuple(range(len(blocks))),
        thinking=True,
        usage_wanted=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def check_roles(messages: list[Json]) -> None:
    """Tool messages follow the call they answer, and no call stays without one."""
    waiting: set[str] = set()
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise Refused(f"Invalid value: '{role}' at messages[{place}].role.")
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                problem = "messages with role 'tool' must be a response to a preceding call."
                raise Refused(problem)
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise Refused(f"tool_call_ids without response messages: {', '.join(sorted(waiting))}")
        waiting = {call["id"] for call in message.get("tool_calls") or []}
    if waiting:
        raise Refused(f"tool_call_ids without response messages: {', '.join(sorted(waiting))}")


def tool_calls(reply: Reply, name: str) -> list[Json]:
    return [
        {
            "id": f"call_{name}{place}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.input))},
        }
        for place, call in enumerate(reply.calls)
    ]


def write_usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.read},
    }


def envelope(asked: Asked, name: str, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{name}",
        "object": kind,
        "created": 1_790_000_000,
        "model": asked.model,
    }


def whole(asked: Asked, reply: Reply, usage: Usage, name: str) -> Json:
    """Write a reply as one document."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = tool_calls(reply, name)
    finish = "tool_calls" if reply.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        **envelope(asked, name, "chat.completion"),
        "choices": [choice],
        "usage": write_usage(usage),
    }


def said(reply: Json) -> Json:
    """Tell what a reply says, in the words of every wire."""
    message = reply["choices"][0]["message"]
    functions = [(call["id"], call["function"]) for call in message.get("tool_calls") or []]
    return {
        "thinking": message.get("reasoning_content", ""),
        "text": message["content"] or "",
        "calls": [
            {"id": call_id, "name": one["name"], "input": json.loads(one["arguments"])}
            for call_id, one in functions
        ],
    }


def stream(asked: Asked, reply: Reply, usage: Usage, name: str) -> Iterator[bytes]:
    """Write a reply as server-sent events, the usage last when it was asked for."""
    head = envelope(asked, name, "chat.completion.chunk")
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in pieces(reply.thinking)]
    deltas += [{"content": piece} for piece in pieces(reply.text)]
    for place, call in enumerate(tool_calls(reply, name)):
        function = call["function"]
        begun = {**call, "index": place, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}
            for piece in pieces(function["arguments"])
        ]
    for delta in deltas:
        yield event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    finish = "tool_calls" if reply.calls else "stop"
    yield event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if asked.usage_wanted:
        yield event({**head, "choices": [], "usage": write_usage(usage)})
    yield b"data: [DONE]\n\n"


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def event(data: Json) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def error_event(status: int, message: str, name: str) -> bytes:
    """Write an error that comes when the stream has begun."""
    return event(error(status, message, name))
