"""OpenAI Responses: reading and checking a request, writing a reply as a stream or whole."""

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

CALL_TYPES = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
}

Json = dict[str, Any]


def seal(thinking: str) -> str:
    """Make the encrypted form that a reasoning item must come back with."""
    return "gAAAAA" + base64.urlsafe_b64encode(hashlib.sha512(thinking.encode()).digest()).decode()


def items_of(body: Json) -> list[Json]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list):
        problem = "Missing required parameter: 'input'."
        raise Refused(problem)
    return given


def text_of(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def read(body: Json) -> Asked:
    """Read a request; raise Refused where the real service would answer 400."""
    if "model" not in body:
        problem = "Missing required parameter: 'model'."
        raise Refused(problem)
    items = items_of(body)
    check_pairs(items)
    system = [str(body.get("instructions") or "")]
    turns = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] in ("system", "developer"):
            system.append(text_of(item["content"]))
        elif kind == "message":
            turns.append(Turn(item["role"], (text_of(item["content"]),)))
        elif kind in CALL_TYPES.values():
            turns.append(Turn("user", (), (Result(item["call_id"], text_of(item["output"])),)))
    head = json.dumps(body.get("tools") or []) + str(body.get("instructions") or "")
    blocks = (head, *(json.dumps(item, sort_keys=True) for item in items))
    return Asked(
        wire="responses",
        model=body["model"],
        stream=bool(body.get("stream")),
        system="\n".join(system),
        turns=tuple(turns),
        blocks=blocks,
        breakpoints=tuple(range(len(blocks))),
        thinking=body.get("reasoning") is not None,
    )


def check_pairs(items: list[Json]) -> None:
    """Every call has its output somewhere after it, and every output its call."""
    waiting: dict[str, str] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind in CALL_TYPES:
            waiting[item["call_id"]] = CALL_TYPES[kind]
        elif kind in CALL_TYPES.values() and waiting.pop(item["call_id"], "") != kind:
            raise Refused(f"No tool call found for output with call_id {item['call_id']}.")
        elif kind == "reasoning" and item.get("encrypted_content"):
            check_seal(item)
    if waiting:
        raise Refused(f"No tool output found for function call {next(iter(waiting))}.")


def check_seal(item: Json) -> None:
    summary = "\n".join(part["text"] for part in item.get("summary") or [])
    if item["encrypted_content"] != seal(summary):
        problem = "The encrypted content could not be verified."
        raise Refused(problem)


def output_items(asked: Asked, reply: Reply, name: str) -> list[Json]:
    items: list[Json] = []
    if reply.thinking and asked.thinking:
        items.append({
            "type": "reasoning",
            "id": f"rs_{name}",
            "summary": [{"type": "summary_text", "text": reply.thinking}],
            "encrypted_content": seal(reply.thinking),
        })
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        items.append({
            "type": "message",
            "id": f"msg_{name}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        })
    for place, call in enumerate(reply.calls):
        made = {"call_id": f"call_{name}{place}", "name": call.name, "status": "completed"}
        if call.freeform:
            made |= {"type": "custom_tool_call", "id": f"ctc_{name}{place}"}
            made["input"] = call.freeform
        else:
            made |= {"type": "function_call", "id": f"fc_{name}{place}"}
            made["arguments"] = json.dumps(dict(call.input))
        if call.namespace:
            made["namespace"] = call.namespace
        items.append(made)
    return items


def write_usage(usage: Usage, reply: Reply) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": len(reply.thinking) // 4},
        "total_tokens": usage.input + usage.output,
    }


def whole(asked: Asked, reply: Reply, usage: Usage, name: str) -> Json:
    """Write a reply as one document."""
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "error": None,
        "model": asked.model,
        "output": output_items(asked, reply, name),
        "parallel_tool_calls": True,
        "usage": write_usage(usage, reply),
    }


def said(reply: Json) -> Json:
    """Tell what a reply says, in the words of every wire."""
    items = reply["output"]
    calls = []
    for item in items:
        if item["type"] in CALL_TYPES:
            given = item["input"] if "input" in item else json.loads(item["arguments"])
            calls.append({"id": item["call_id"], "name": item["name"], "input": given})
    return {
        "thinking": "".join(i["summary"][0]["text"] for i in items if i["type"] == "reasoning"),
        "text": "".join(i["content"][0]["text"] for i in items if i["type"] == "message"),
        "calls": calls,
    }


def stream(asked: Asked, reply: Reply, usage: Usage, name: str) -> Iterator[bytes]:
    """Write a reply as server-sent events with their sequence numbers."""
    done = whole(asked, reply, usage, name)
    begun = {**done, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for place, item in enumerate(done["output"]):
        events += [{**one, "output_index": place} for one in item_events(item)]
    events.append({"type": "response.completed", "response": done})
    for number, one in enumerate(events):
        data = json.dumps({**one, "sequence_number": number})
        yield f"event: {one['type']}\ndata: {data}\n\n".encode()


def item_events(item: Json) -> Iterator[Json]:
    kind = item["type"]
    empty: dict[str, Json] = {
        "message": {"content": [], "status": "in_progress"},
        "reasoning": {"summary": []},
        "function_call": {"arguments": "", "status": "in_progress"},
        "custom_tool_call": {"input": "", "status": "in_progress"},
    }
    yield {"type": "response.output_item.added", "item": {**item, **empty[kind]}}
    if kind == "message":
        part = item["content"][0]
        at = {"item_id": item["id"], "content_index": 0}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        yield from deltas("response.output_text", part["text"], "text", {**at, "logprobs": []})
        yield {"type": "response.content_part.done", **at, "part": part}
    elif kind == "reasoning":
        part = item["summary"][0]
        at = {"item_id": item["id"], "summary_index": 0}
        empty_part = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": empty_part}
        yield from deltas("response.reasoning_summary_text", part["text"], "text", at)
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    elif kind == "function_call":
        at = {"item_id": item["id"]}
        yield from deltas("response.function_call_arguments", item["arguments"], "arguments", at)
    else:
        at = {"item_id": item["id"]}
        yield from deltas("response.custom_tool_call_input", item["input"], "input", at)
    yield {"type": "response.output_item.done", "item": item}


def deltas(kind: str, text: str, name: str, at: Json) -> Iterator[Json]:
    for start in range(0, len(text), PIECE):
        yield {"type": f"{kind}.delta", **at, "delta": text[start : start + PIECE]}
    yield {"type": f"{kind}.done", **at, name: text}


def error(status: int, message: str, name: str) -> Json:
    """Write an error in the form of this wire."""
    kinds = {401: "invalid_request_error", 429: "rate_limit_exceeded", 500: "server_error"}
    kind = kinds.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def error_event(status: int, message: str, name: str) -> bytes:
    """Write an error that comes when the stream has begun."""
    told = {"type": "error", **error(status, message, name)["error"]}
    return f"event: error\ndata: {json.dumps(told)}\n\n".encode()
