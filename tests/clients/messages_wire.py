"""Anthropic Messages: reading and checking a request, writing a reply as a stream or whole."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.clients.script import Asked, Refused, Reply, Result, Turn
from tests.clients.usage import Usage

PIECE = 12
"""Characters per delta; small, so that every client has to put pieces together."""

MOST_BREAKPOINTS = 4
ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}  # fmt: skip

Json = dict[str, Any]


def sign(thinking: str) -> str:
    """Make the signature that a thinking block must come back with."""
    return base64.b64encode(hashlib.sha512(thinking.encode()).digest() * 3).decode()


def blocks_of(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        problem = "messages: content must be a string or a list of blocks"
        raise Refused(problem)
    return content


def text_of(content: object) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks_of(content))


def read(body: Json) -> Asked:
    """Read a request; raise Refused where the real service would answer 400."""
    for name in ("model", "messages", "max_tokens"):
        if name not in body:
            raise Refused(f"{name}: Field required")
    check_roles(body["messages"])
    check_tools(merged(body["messages"]))
    turns = tuple(read_turn(message) for message in body["messages"] if message["role"] != "system")
    system = text_of(body.get("system", ""))
    blocks, breakpoints = cacheable(body)
    return Asked(
        wire="messages",
        model=body["model"],
        stream=bool(body.get("stream")),
        system=system,
        turns=turns,
        blocks=tuple(blocks),
        breakpoints=tuple(breakpoints),
        thinking=(body.get("thinking") or {}).get("type") in ("enabled", "adaptive"),
    )


def read_turn(message: Json) -> Turn:
    texts, results = [], []
    for block in blocks_of(message["content"]):
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "tool_result":
            content = block.get("content") or ""
            results.append(
                Result(block["tool_use_id"], text_of(content), bool(block.get("is_error")))
            )
    return Turn(message["role"], tuple(texts), tuple(results))


def check_roles(messages: list[Json]) -> None:
    if not messages:
        problem = "messages: at least one message is required"
        raise Refused(problem)
    for place, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant", "system"):
            raise Refused(f"messages.{place}.role: unexpected value")
        for at, block in enumerate(blocks_of(message.get("content"))):
            if block.get("type") == "text" and not block.get("text"):
                raise Refused(f"messages.{place}.content.{at}: text must be non-empty")
            if block.get("type") == "thinking" and block["signature"] != sign(block["thinking"]):
                raise Refused(f"messages.{place}.content.{at}: Invalid `signature` in `thinking`")
    if messages[0]["role"] != "user":
        problem = 'messages: first message must use the "user" role'
        raise Refused(problem)


def merged(messages: list[Json]) -> list[tuple[str, list[Json]]]:
    """Join neighbours of one role, as the service does before it checks the tools."""
    joined: list[tuple[str, list[Json]]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        if joined and joined[-1][0] == message["role"]:
            joined[-1][1].extend(blocks_of(message["content"]))
        else:
            joined.append((message["role"], list(blocks_of(message["content"]))))
    return joined


def check_tools(messages: list[tuple[str, list[Json]]]) -> None:
    """Every call is answered in the very next message, and every answer has its call."""
    open_calls: list[str] = []
    seen: set[str] = set()
    for place, (role, blocks) in enumerate(messages):
        answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        missing = set(open_calls) - set(answered)
        if missing:
            raise Refused(
                f"messages.{place}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(sorted(missing))}"
            )
        for call_id in answered:
            if call_id not in open_calls:
                raise Refused(
                    f"messages.{place}: unexpected `tool_use_id` found in `tool_result` "
                    f"blocks: {call_id}"
                )
        open_calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        if open_calls and role != "assistant":
            raise Refused(f"messages.{place}: `tool_use` blocks can only be in assistant messages")
        if len(set(open_calls)) < len(open_calls) or seen & set(open_calls):
            raise Refused(f"messages.{place}: `tool_use` ids must be unique")
        seen.update(open_calls)
    if open_calls:
        raise Refused(f"messages: `tool_use` ids without `tool_result`: {', '.join(open_calls)}")


def cacheable(body: Json) -> tuple[list[str], list[int]]:
    """List tools, system and messages as texts, and the places of the breakpoints."""
    texts: list[str] = []
    breakpoints: list[int] = []

    def add(block: Json, prefix: str = "") -> None:
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        if block.get("cache_control"):
            breakpoints.append(len(texts))
        texts.append(prefix + json.dumps(plain, sort_keys=True))

    for tool in body.get("tools") or []:
        add(tool)
    for block in blocks_of(body.get("system", "")):
        add(block)
    for message in body["messages"]:
        for block in blocks_of(message["content"]):
            add(block, message["role"])
    if len(breakpoints) > MOST_BREAKPOINTS:
        raise Refused(
            f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {len(breakpoints)}."
        )
    return texts, breakpoints


def answer_blocks(asked: Asked, reply: Reply, name: str) -> list[Json]:
    blocks: list[Json] = []
    if reply.thinking and asked.thinking:
        blocks.append({
            "type": "thinking",
            "thinking": reply.thinking,
            "signature": sign(reply.thinking),
        })
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for place, call in enumerate(reply.calls):
        call_id = f"toolu_{name}{place}"
        blocks.append({
            "type": "tool_use",
            "id": call_id,
            "name": call.name,
            "input": dict(call.input),
        })
    return blocks


def write_usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


def whole(asked: Asked, reply: Reply, usage: Usage, name: str) -> Json:
    """Write a reply as one document."""
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": answer_blocks(asked, reply, name),
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": write_usage(usage),
    }


def said(reply: Json) -> Json:
    """Tell what a reply says, in the words of every wire."""
    blocks = reply["content"]
    return {
        "thinking": "".join(b["thinking"] for b in blocks if b["type"] == "thinking"),
        "text": "".join(b["text"] for b in blocks if b["type"] == "text"),
        "calls": [
            {"id": b["id"], "name": b["name"], "input": b["input"]}
            for b in blocks
            if b["type"] == "tool_use"
        ],
    }


def stream(asked: Asked, reply: Reply, usage: Usage, name: str) -> Iterator[bytes]:
    """Write a reply as server-sent events."""
    done = whole(asked, reply, usage, name)
    begun = {**done, "content": [], "stop_reason": None, "usage": write_usage(usage)}
    begun["usage"]["output_tokens"] = 1
    yield event({"type": "message_start", "message": begun})
    yield event({"type": "ping"})
    for place, block in enumerate(done["content"]):
        empty, deltas = in_pieces(block)
        yield event({"type": "content_block_start", "index": place, "content_block": empty})
        for delta in deltas:
            yield event({"type": "content_block_delta", "index": place, "delta": delta})
        yield event({"type": "content_block_stop", "index": place})
    yield event({
        "type": "message_delta",
        "delta": {"stop_reason": done["stop_reason"], "stop_sequence": None},
        "usage": done["usage"],
    })
    yield event({"type": "message_stop"})


def in_pieces(block: Json) -> tuple[Json, list[Json]]:
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        return {"type": "text", "text": ""}, deltas
    if block["type"] == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])
        ]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    deltas = [
        {"type": "input_json_delta", "partial_json": piece}
        for piece in ["", *pieces(json.dumps(block["input"]))]
    ]
    return {**block, "input": {}}, deltas


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def error(status: int, message: str, name: str) -> Json:
    """Write an error in the form of this wire."""
    kind = ERROR_TYPES.get(status, "api_error")
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": f"req_{name}",
    }


def error_event(status: int, message: str, name: str) -> bytes:
    """Write an error that comes when the stream has begun."""
    return event(error(status, message, name))


def models() -> Json:
    """List the models on offer."""
    names = ["claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5-20251001"]
    data = [
        {"type": "model", "id": one, "display_name": one, "created_at": "2026-02-01T00:00:00Z"}
        for one in names
    ]
    return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
