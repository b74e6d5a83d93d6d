"""Replies of a scripted upstream: said once in plain pieces, spoken in the format of each wire."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.gateway.prefixes import Use

Wire = Literal["anthropic", "chat", "responses", "gemini", "other"]

_SAID_AT_ONCE = 24
"""Characters in one event of a stream."""


@dataclass(frozen=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True)
class Thought:
    """Thinking, which comes back unchanged or not at all; signed by the upstream."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of one of the client's tools; without an id it is given one."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


Piece = Text | Thought | Call


def seal(text: str) -> str:
    """Return the signature that the upstream gives a thought, and knows again: sound base64."""
    return "sealed" + hashlib.sha256(f"thought {text}".encode()).hexdigest()[:62]


@dataclass(frozen=True)
class Spoken:
    """What one reply says, on which wire, for which request."""

    wire: Wire
    pieces: tuple[Piece, ...]
    id: str
    model: str
    use: Use
    output_tokens: int
    stop: str = ""
    """The reason to stop in the words of the wire; empty for the usual one."""
    with_usage: bool = True
    as_list: bool = False
    """Gemini streams a JSON list unless it is asked for events."""

    @property
    def calls(self) -> bool:
        return any(isinstance(piece, Call) for piece in self.pieces)

    def whole(self) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        tree: dict[str, Any] = _WHOLE[self.wire](self)
        return tree

    def events(self) -> Iterator[bytes]:
        """Yield the events of a stream, one by one."""
        yield from _EVENTS[self.wire](self)


def call_id(spoken: Spoken, number: int, call: Call) -> str:
    mark = {"anthropic": "toolu_", "chat": "call_", "responses": "call_", "gemini": "call_"}
    return call.id or f"{mark[spoken.wire]}{spoken.id[-12:]}{number}"


def anthropic_usage(use: Use, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": use.fresh,
        "cache_creation_input_tokens": use.written_5m + use.written_1h,
        "cache_read_input_tokens": use.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": use.written_5m,
            "ephemeral_1h_input_tokens": use.written_1h,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def anthropic_blocks(spoken: Spoken) -> list[dict[str, Any]]:
    return [_anthropic_block(spoken, number, piece) for number, piece in enumerate(spoken.pieces)]


def _anthropic_block(spoken: Spoken, number: int, piece: Piece) -> dict[str, Any]:
    match piece:
        case Text(text):
            return {"type": "text", "text": text}
        case Thought(text):
            return {"type": "thinking", "thinking": text, "signature": seal(text)}
        case Call(name, arguments):
            made = call_id(spoken, number, piece)
            return {"type": "tool_use", "id": made, "name": name, "input": dict(arguments)}


def _anthropic_stop(spoken: Spoken) -> str:
    return spoken.stop or ("tool_use" if spoken.calls else "end_turn")


def _anthropic_whole(spoken: Spoken) -> dict[str, Any]:
    return {
        "id": spoken.id,
        "type": "message",
        "role": "assistant",
        "model": spoken.model,
        "content": anthropic_blocks(spoken),
        "stop_reason": _anthropic_stop(spoken),
        "stop_sequence": None,
        "usage": anthropic_usage(spoken.use, spoken.output_tokens),
    }


def _anthropic_events(spoken: Spoken) -> Iterator[bytes]:
    usage = anthropic_usage(spoken.use, 1)
    begun = {**_anthropic_whole(spoken), "content": [], "stop_reason": None, "usage": usage}
    yield _event("message_start", message=begun)
    yield _event("ping")
    for number, block in enumerate(anthropic_blocks(spoken)):
        yield from _anthropic_block_events(number, block)
    stop = {"stop_reason": _anthropic_stop(spoken), "stop_sequence": None}
    ended = anthropic_usage(spoken.use, spoken.output_tokens)
    told = {key: ended[key] for key in ended if key not in ("cache_creation", "service_tier")}
    yield _event("message_delta", delta=stop, usage=told)
    yield _event("message_stop")


def _anthropic_block_events(number: int, block: dict[str, Any]) -> Iterator[bytes]:
    def delta(**said: Any) -> bytes:
        return _event("content_block_delta", index=number, delta=said)

    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
    start = {**block, **empty.get(block["type"], {"input": {}})}
    yield _event("content_block_start", index=number, content_block=start)
    if block["type"] == "text":
        for said in _split(block["text"]):
            yield delta(type="text_delta", text=said)
    elif block["type"] == "thinking":
        for said in _split(block["thinking"]):
            yield delta(type="thinking_delta", thinking=said)
        yield delta(type="signature_delta", signature=block["signature"])
    else:
        for said in _split(json.dumps(block["input"])):
            yield delta(type="input_json_delta", partial_json=said)
    yield _event("content_block_stop", index=number)


def _chat_usage(spoken: Spoken) -> dict[str, Any]:
    return {
        "prompt_tokens": spoken.use.total,
        "completion_tokens": spoken.output_tokens,
        "total_tokens": spoken.use.total + spoken.output_tokens,
        "prompt_tokens_details": {"cached_tokens": spoken.use.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _words(spoken: Spoken) -> str:
    return "".join(piece.text for piece in spoken.pieces if isinstance(piece, Text))


def _chat_calls(spoken: Spoken) -> list[dict[str, Any]]:
    return [
        {
            "id": call_id(spoken, number, piece),
            "type": "function",
            "function": {"name": piece.name, "arguments": json.dumps(dict(piece.arguments))},
        }
        for number, piece in enumerate(spoken.pieces)
        if isinstance(piece, Call)
    ]


def _chat_frame(spoken: Spoken, kind: str) -> dict[str, Any]:
    return {
        "id": spoken.id,
        "object": kind,
        "created": 1_790_000_000,
        "model": spoken.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _chat_whole(spoken: Spoken) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _words(spoken) or None}
    message |= {"tool_calls": _chat_calls(spoken)} if spoken.calls else {}
    stop = spoken.stop or ("tool_calls" if spoken.calls else "stop")
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
    frame = _chat_frame(spoken, "chat.completion")
    return {**frame, "choices": [choice], "usage": _chat_usage(spoken)}


def _chat_events(spoken: Spoken) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], stop: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
        frame = _chat_frame(spoken, "chat.completion.chunk")
        return _data({**frame, "choices": [choice], **({"usage": None} if usage else {})})

    usage = spoken.with_usage
    yield chunk({"role": "assistant", "content": ""})
    for said in _split(_words(spoken)):
        yield chunk({"content": said})
    for number, call in enumerate(_chat_calls(spoken)):
        told = call["function"]["arguments"]
        opened = {**call, "index": number, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [opened]})
        for said in _split(told):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": said}}]})
    yield chunk({}, spoken.stop or ("tool_calls" if spoken.calls else "stop"))
    if usage:
        frame = _chat_frame(spoken, "chat.completion.chunk")
        yield _data({**frame, "choices": [], "usage": _chat_usage(spoken)})
    yield b"data: [DONE]\n\n"


def responses_items(spoken: Spoken) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    frame: dict[str, Any]
    for number, piece in enumerate(spoken.pieces):
        name = f"{spoken.id[-12:]}{number}"
        match piece:
            case Text(text):
                part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
                frame = {"id": f"msg_{name}", "type": "message", "role": "assistant"}
                items.append({**frame, "status": "completed", "content": [part]})
            case Thought(text):
                summary = [{"type": "summary_text", "text": text}]
                frame = {"id": f"rs_{name}", "type": "reasoning", "summary": summary}
                items.append({**frame, "encrypted_content": seal(f"rs_{name}")})
            case Call(called, arguments):
                frame = {"id": f"fc_{name}", "type": "function_call", "status": "completed"}
                told = {"name": called, "arguments": json.dumps(dict(arguments))}
                items.append({**frame, "call_id": call_id(spoken, number, piece), **told})
    return items


def _responses_frame(spoken: Spoken) -> dict[str, Any]:
    return {
        "id": spoken.id,
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "in_progress",
        "model": spoken.model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "usage": None,
    }


def _responses_whole(spoken: Spoken) -> dict[str, Any]:
    usage = {
        "input_tokens": spoken.use.total,
        "input_tokens_details": {"cached_tokens": spoken.use.read},
        "output_tokens": spoken.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spoken.use.total + spoken.output_tokens,
    }
    frame = _responses_frame(spoken)
    return {**frame, "status": "completed", "output": responses_items(spoken), "usage": usage}


def _responses_events(spoken: Spoken) -> Iterator[bytes]:
    told = [
        ("response.created", {"response": _responses_frame(spoken)}),
        ("response.in_progress", {"response": _responses_frame(spoken)}),
    ]
    for number, item in enumerate(responses_items(spoken)):
        told += _item_events(number, item)
    told.append(("response.completed", {"response": _responses_whole(spoken)}))
    for number, (kind, said) in enumerate(told):
        yield _event(kind, sequence_number=number, **said)


def _item_events(number: int, item: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    at = {"item_id": item["id"], "output_index": number}
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
    }
    begun = {**item, **empty.get(item["type"], {"summary": []})}
    if "status" in begun:
        begun["status"] = "in_progress"
    told = [("response.output_item.added", {"output_index": number, "item": begun})]
    if item["type"] == "message":
        part = item["content"][0]
        at |= {"content_index": 0}
        told.append(("response.content_part.added", {**at, "part": {**part, "text": ""}}))
        told.extend(
            ("response.output_text.delta", {**at, "delta": said, "logprobs": []})
            for said in _split(part["text"])
        )
        told.append(("response.output_text.done", {**at, "text": part["text"], "logprobs": []}))
        told.append(("response.content_part.done", {**at, "part": part}))
    elif item["type"] == "function_call":
        told.extend(
            ("response.function_call_arguments.delta", {**at, "delta": said})
            for said in _split(item["arguments"])
        )
        done = {**at, "arguments": item["arguments"]}
        told.append(("response.function_call_arguments.done", done))
    told.append(("response.output_item.done", {"output_index": number, "item": item}))
    return told


def gemini_parts(spoken: Spoken) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for piece in spoken.pieces:
        match piece:
            case Text(text):
                parts.append({"text": text})
            case Thought(text):
                parts.append({"text": text, "thought": True})
            case Call(name, arguments):
                called: dict[str, Any] = {"name": name, "args": dict(arguments)}
                parts.append({
                    "functionCall": {**called, **({"id": piece.id} if piece.id else {})},
                    "thoughtSignature": seal(name + json.dumps(called["args"], sort_keys=True)),
                })
    return parts


def _gemini_frame(
    spoken: Spoken, parts: list[dict[str, Any]], *, last: bool = True
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    candidate |= {"finishReason": spoken.stop or "STOP"} if last else {}
    usage: dict[str, Any] = {
        "promptTokenCount": spoken.use.total,
        "candidatesTokenCount": spoken.output_tokens,
        "totalTokenCount": spoken.use.total + spoken.output_tokens,
    }
    if spoken.use.read:
        usage["cachedContentTokenCount"] = spoken.use.read
    frame = {"modelVersion": spoken.model, "responseId": spoken.id}
    return {"candidates": [candidate], "usageMetadata": usage, **frame}


def _gemini_whole(spoken: Spoken) -> dict[str, Any]:
    return _gemini_frame(spoken, gemini_parts(spoken))


def _gemini_events(spoken: Spoken) -> Iterator[bytes]:
    frames = []
    for part in gemini_parts(spoken):
        said = _split(part["text"]) if "text" in part else []
        frames += [{**part, "text": text} for text in said] if "text" in part else [part]
    for number, part in enumerate(frames):
        last = number == len(frames) - 1
        tree = json.dumps(_gemini_frame(spoken, [part], last=last)).encode()
        if spoken.as_list:
            yield (b"[" if number == 0 else b",\r\n") + tree + (b"]" if last else b"")
        else:
            yield b"data: " + tree + b"\r\n\r\n"


def _split(text: str) -> list[str]:
    return [text[at : at + _SAID_AT_ONCE] for at in range(0, len(text), _SAID_AT_ONCE)]


def _event(kind: str, **said: Any) -> bytes:
    return f"event: {kind}\n".encode() + _data({"type": kind, **said})


def _data(tree: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(tree).encode() + b"\n\n"


_WHOLE: dict[str, Any] = {
    "anthropic": _anthropic_whole,
    "chat": _chat_whole,
    "responses": _responses_whole,
    "gemini": _gemini_whole,
}
_EVENTS: dict[str, Any] = {
    "anthropic": _anthropic_events,
    "chat": _chat_events,
    "responses": _responses_events,
    "gemini": _gemini_events,
}
