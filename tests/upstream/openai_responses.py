"""OpenAI Responses: the rules for a request, and a reply as a document or a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.upstream import openai_chat, prompt_cache
from tests.upstream.script import (
    Call,
    History,
    Json,
    ModelError,
    Prompt,
    Response,
    Result,
    Text,
    Thought,
    Turn,
    named_event,
    require,
    sign,
    split_text,
)

ID_PREFIX = "resp_"
OUTPUT_KINDS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
}
"""The item that answers each kind of call."""

headers = openai_chat.headers
error_document = openai_chat.error_document
too_long_message = openai_chat.too_long_message


def parse_prompt(document: Mapping[str, Any]) -> Prompt:
    """Read the prompt of a request."""
    sent = document["input"]
    items: list[Any] = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
    system, turns = [str(document.get("instructions") or "")], []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] in ("system", "developer"):
            system.append(openai_chat.text_of(item["content"]))
        elif kind == "message":
            turns.append(Turn(item["role"], (openai_chat.text_of(item["content"]),)))
        elif kind in _OUTPUTS:
            output = openai_chat.text_of(item["output"])
            turns.append(Turn("user", (), (Result(item["call_id"], output),)))
    return Prompt("\n".join(system), tuple(turns))


def prompt_text(document: Mapping[str, Any]) -> str:
    """Return a prompt as one text, in the order in which it is read."""
    sent = document["input"]
    items = sent if isinstance(sent, list) else [sent]
    parts = [document.get("tools"), document.get("instructions"), *items]
    return "".join(prompt_cache.canonical(part) for part in parts if part)


def sends_thoughts(_document: Mapping[str, Any]) -> bool:
    """Return whether the model shows its thoughts."""
    return True


def output_items(response: Response) -> list[Json]:
    """Return the output of a reply."""
    items: list[Json] = []
    for number, part in enumerate(response.parts):
        name = f"{response.id[-12:]}{number}"
        match part:
            case Text(text):
                content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
                item: Json = {"id": f"msg_{name}", "type": "message", "role": "assistant"}
                items.append({**item, "status": "completed", "content": [content]})
            case Thought(text):
                summary = [{"type": "summary_text", "text": text}]
                item = {"id": f"rs_{name}", "type": "reasoning", "summary": summary}
                items.append({**item, "encrypted_content": sign(text)})
            case Call():
                items.append(_call_item(part, name, response.call_id(number, part)))
    return items


def _call_item(call: Call, name: str, call_id: str) -> Json:
    if call.freeform:
        item: Json = {"id": f"ctc_{name}", "type": "custom_tool_call", "input": call.freeform}
    else:
        arguments = json.dumps(dict(call.arguments))
        item = {"id": f"fc_{name}", "type": "function_call", "arguments": arguments}
    item |= {"status": "completed", "call_id": call_id, "name": call.name}
    return {**item, "namespace": call.namespace} if call.namespace else item


def _envelope(response: Response) -> Json:
    return {
        "id": response.id,
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "in_progress",
        "model": response.model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "usage": None,
    }


def response_document(response: Response) -> Json:
    """Write a reply as one document."""
    usage = {
        "input_tokens": response.usage.total,
        "input_tokens_details": {"cached_tokens": response.usage.read},
        "output_tokens": response.output_tokens,
        "output_tokens_details": {"reasoning_tokens": len(response.thinking) // 4},
        "total_tokens": response.usage.total + response.output_tokens,
    }
    done = {"status": "completed", "output": output_items(response), "usage": usage}
    return {**_envelope(response), **done}


def response_events(response: Response) -> Iterator[bytes]:
    """Write a reply as server-sent events with their sequence numbers."""
    events: list[Json] = [
        {"type": "response.created", "response": _envelope(response)},
        {"type": "response.in_progress", "response": _envelope(response)},
    ]
    for number, item in enumerate(output_items(response)):
        events += [{**event, "output_index": number} for event in _item_events(item)]
    events.append({"type": "response.completed", "response": response_document(response)})
    for number, event in enumerate(events):
        yield named_event(event.pop("type"), sequence_number=number, **event)


def _item_events(item: Json) -> Iterator[Json]:
    empty: dict[str, Json] = {
        "message": {"content": [], "status": "in_progress"},
        "reasoning": {"summary": []},
        "function_call": {"arguments": "", "status": "in_progress"},
        "custom_tool_call": {"input": "", "status": "in_progress"},
    }
    yield {"type": "response.output_item.added", "item": {**item, **empty[item["type"]]}}
    place = {"item_id": item["id"]}
    match item["type"]:
        case "message":
            part = item["content"][0]
            place |= {"content_index": 0}
            yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
            yield from _deltas("output_text", part, "text", {**place, "logprobs": []})
            yield {"type": "response.content_part.done", **place, "part": part}
        case "reasoning":
            part = item["summary"][0]
            place |= {"summary_index": 0}
            start = {**part, "text": ""}
            yield {"type": "response.reasoning_summary_part.added", **place, "part": start}
            yield from _deltas("reasoning_summary_text", part, "text", place)
            yield {"type": "response.reasoning_summary_part.done", **place, "part": part}
        case "function_call":
            yield from _deltas("function_call_arguments", item, "arguments", place)
        case _:
            yield from _deltas("custom_tool_call_input", item, "input", place)
    yield {"type": "response.output_item.done", "item": item}


def _deltas(kind: str, source: Json, key: str, place: Json) -> Iterator[Json]:
    for piece in split_text(source[key]):
        yield {"type": f"response.{kind}.delta", **place, "delta": piece}
    yield {"type": f"response.{kind}.done", **place, key: source[key]}


def error_event(error: ModelError) -> bytes:
    """Write an error that comes after the stream has begun."""
    return named_event("error", code=None, message=error.message, param=None)


_OUTPUTS = set(OUTPUT_KINDS.values())


def check_request(document: Mapping[str, Any], history: History) -> None:
    """Check a request to /v1/responses, as a client sends it that keeps its own history."""
    require(document.get("model"), "Missing required parameter: 'model'.")
    sent = document.get("input")
    require(isinstance(sent, str | list) and sent, "Missing required parameter: 'input'.")
    items: list[Any] = sent if isinstance(sent, list) else []
    _check_outputs(items)
    _check_ids(items)
    for number, item in enumerate(items):
        _check_parts(number, item)
        if item.get("type") == "reasoning":
            _check_reasoning(items, number)
            is_stored = document.get("store") is not False or item.get("encrypted_content")
            rule = "not found. Items are not persisted when `store` is set to false."
            require(is_stored, f"Item with id '{item.get('id')}' {rule}")
        due = history.reasoning_of_item.get(item.get("id", ""))
        if due is not None:
            before = [one.get("id") for one in items[:number] if one.get("type") == "reasoning"]
            rule = f"Item '{item['id']}' of type '{item['type']}' was provided without its"
            require(due in before, f"{rule} required 'reasoning' item: '{due}'.")


def _check_outputs(items: Sequence[Any]) -> None:
    calls: dict[str, str] = {}
    done: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind in OUTPUT_KINDS:
            calls[str(item.get("call_id"))] = OUTPUT_KINDS[kind]
        elif kind in _OUTPUTS:
            call_id = str(item.get("call_id"))
            rule = f"No tool call found for function call output with call_id {call_id}."
            require(calls.get(call_id) == kind, rule)
            require(call_id not in done, f"Duplicate output for call_id {call_id}.")
            done.add(call_id)
        elif kind == "message":
            require(item.get("role") in _ROLES, "Invalid value: 'role'.")
            require(item.get("content"), "Missing required parameter: 'content'.")
    missing = [one for one in calls if one not in done]
    require(not missing, f"No tool output found for function call {', '.join(missing)}.")


_ROLES = ("user", "assistant", "system", "developer")
_ASSISTANT_PARTS = ("output_text", "refusal")


def _check_ids(items: Sequence[Any]) -> None:
    names = [item["id"] for item in items if item.get("id")]
    twice = [name for name in names if names.count(name) > 1]
    require(not twice, f"Duplicate item found with id {min(twice, default='')}.")


def _check_parts(number: int, item: Any) -> None:
    """Check that the messages of an assistant have parts of an assistant only."""
    if item.get("role") != "assistant" or isinstance(item["content"], str):
        return
    for at, part in enumerate(item["content"]):
        rule = f"Invalid value: '{part['type']}' at input[{number}].content[{at}]"
        supported = "Supported values are: 'output_text' and 'refusal'."
        require(part["type"] in _ASSISTANT_PARTS, f"{rule}. {supported}")


def _check_reasoning(items: Sequence[Any], number: int) -> None:
    item = items[number]
    name, hidden = str(item.get("id", "")), item.get("encrypted_content")
    after = items[number + 1] if number + 1 < len(items) else {}
    kind = str(after.get("type"))
    follows = kind == "reasoning" or kind.endswith("_call") or after.get("role") == "assistant"
    rule = f"Item '{name}' of type 'reasoning' was provided without its required following item."
    require(follows, rule)
    if hidden:
        summary = "\n".join(part["text"] for part in item.get("summary") or ())
        rule = f"The encrypted content for item {name} could not be verified."
        require(hidden == sign(summary), rule)


def remember(response: Response, history: History) -> None:
    """Remember which items of a reply came after which reasoning."""
    remember_items(output_items(response), history)


def remember_items(items: Sequence[Json], history: History) -> None:
    """Remember which items came after which reasoning."""
    reasoning = ""
    for item in items:
        if item["type"] == "reasoning":
            reasoning = item["id"]
        elif reasoning:
            history.reasoning_of_item[item["id"]] = reasoning
