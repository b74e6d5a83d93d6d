"""What the real interfaces refuse: rules on a request, told in about their words.

Each function raises Refused for the first rule that a request breaks. `Seen` keeps what the
upstream has said itself, so that it knows thoughts again that come back changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.gateway import prefixes
from tests.gateway.replies import seal


class Refused(Exception):
    """A request breaks a rule."""


@dataclass
class Seen:
    """What is known of thoughts: their text by signature, and which belong to which call."""

    signed: dict[str, str] = field(default_factory=dict)
    with_call: dict[str, list[str]] = field(default_factory=dict)
    reasoned: dict[str, str] = field(default_factory=dict)
    encrypted: dict[str, str] = field(default_factory=dict)


def _require(holds: object, told: str) -> None:
    if not holds:
        raise Refused(told)


# Anthropic Messages

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_KEYS = {
    "message": {"role", "content", "clear_at", "output_config"},
    "text": {"type", "text", "cache_control", "citations"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
_THINKS = ("thinking", "redacted_thinking")
_SERVER_RESULT = re.compile(r"^(web_search|web_fetch|code_execution|mcp|.*)_tool_result$")


def check_anthropic(tree: Mapping[str, Any], seen: Seen, *, counts_only: bool = False) -> None:
    """Check a request to /v1/messages, or to count its tokens."""
    _require(isinstance(tree.get("model"), str) and tree["model"], "model: Field required")
    if not counts_only:
        most = tree.get("max_tokens")
        _require(isinstance(most, int) and most >= 1, "max_tokens: must be at least 1")
        _check_thinking_budget(tree)
    messages = tree.get("messages")
    _require(isinstance(messages, list) and messages, "messages: at least one message is required")
    assert isinstance(messages, list)
    _check_roles(messages)
    for number, message in enumerate(messages):
        _check_content(number, message, last=number == len(messages) - 1)
    _check_breakpoints(tree)
    _check_tools(tree)
    _check_pairs(messages)
    _check_thoughts(tree, messages, seen)


def _check_thinking_budget(tree: Mapping[str, Any]) -> None:
    thinking = tree.get("thinking") or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens", 0)
        _require(budget >= 1024, "thinking.enabled.budget_tokens: must be at least 1024")
        told = "`max_tokens` must be greater than `thinking.budget_tokens`"
        _require(budget < tree["max_tokens"], told)


def _check_roles(messages: Sequence[Any]) -> None:
    for number, message in enumerate(messages):
        at = f"messages.{number}"
        _require(isinstance(message, dict), f"{at}: must be an object")
        role = message.get("role")
        _require(role in ("user", "assistant", "system"), f"{at}.role: unexpected role")
        extra = set(message) - _KEYS["message"]
        _require(not extra, f"{at}.{min(extra, default='')}: Extra inputs are not permitted")
    first = messages[0]["role"]
    _require(first == "user", 'messages: first message must use the "user" role')
    runs = list(_runs(messages))
    for (before, _, _), (role, start, end) in pairwise([("", 0, 0), *runs]):
        if role == "system":
            _check_system_place(messages, before, start, end)


def _check_system_place(messages: Sequence[Any], before: str, start: int, end: int) -> None:
    if all(one["content"] == [] and "output_config" in one for one in messages[start:end]):
        return
    after = messages[end]["role"] if end < len(messages) else "assistant"
    follows = before == "user" or _ends_in_server_result(messages[start - 1])
    told = f"messages.{start}: role 'system' must"
    _require(
        follows,
        f"{told} follow a 'user' message or an 'assistant' message ending in a server tool result",
    )
    _require(after == "assistant", f"{told} precede an 'assistant' message or end the array")


def _ends_in_server_result(message: Any) -> bool:
    blocks = _blocks(message)
    kind = blocks[-1]["type"] if blocks else ""
    return kind != "tool_result" and bool(_SERVER_RESULT.match(kind))


def _runs(messages: Sequence[Any]) -> Iterator[tuple[str, int, int]]:
    """Yield stretches of messages with one role: role, first, behind the last."""
    start = 0
    for number in range(1, len(messages) + 1):
        if number == len(messages) or messages[number]["role"] != messages[start]["role"]:
            yield messages[start]["role"], start, number
            start = number


def _blocks(message: Any) -> list[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _check_content(number: int, message: Any, *, last: bool) -> None:
    at = f"messages.{number}"
    content = message.get("content")
    _require(isinstance(content, str | list), f"{at}.content: Field required")
    prefill = last and message["role"] == "assistant"
    if message["role"] == "system" and content == [] and "output_config" in message:
        return
    told = "all messages must have non-empty content except for the optional final assistant"
    _require(content or prefill, f"{at}: {told} message")
    for position, block in enumerate(_blocks(message) if content else []):
        _check_block(f"{at}.content.{position}", message, block)


def _check_block(at: str, message: Any, block: Any) -> None:
    _require(isinstance(block, dict) and "type" in block, f"{at}.type: Field required")
    kind, role = block["type"], message["role"]
    extra = set(block) - _KEYS.get(kind, set(block))
    _require(not extra, f"{at}.{kind}.{min(extra, default='')}: Extra inputs are not permitted")
    if kind == "text":
        text = block.get("text")
        _require(isinstance(text, str), f"{at}.text.text: Field required")
        _require(text.strip(), f"{at}: text content blocks must contain non-whitespace text")
    if kind in (*_THINKS, "tool_use"):
        _require(role == "assistant", f"{at}: `{kind}` blocks can only be in assistant messages")
    if kind == "tool_result":
        _require(role == "user", f"{at}: `tool_result` blocks can only be in `user` messages")
        _check_result(at, block)
    if kind == "tool_use":
        _require(_NAME.match(str(block.get("id", ""))), f"{at}.tool_use.id: should match pattern")
        _require(_NAME.match(str(block.get("name", ""))), f"{at}.tool_use.name: should match")
        _require(isinstance(block.get("input"), dict), f"{at}.tool_use.input: should be an object")
    if role == "system":
        _require(kind == "text", f"{at}: system messages may hold text only")
        turned = "clear_at" in message and "cache_control" in block
        _require(not turned, f"{at}: cache_control is not allowed beside clear_at")


def _check_result(at: str, block: Any) -> None:
    content = block.get("content", "")
    _require(isinstance(content, str | list), f"{at}.tool_result.content: wrong type")
    if isinstance(content, list):
        for inner in content:
            empty = inner.get("type") == "text" and not inner.get("text")
            _require(not empty, f"{at}.tool_result: text content blocks must be non-empty")


def _check_breakpoints(tree: Mapping[str, Any]) -> None:
    controls = [tree["cache_control"]] if tree.get("cache_control") else []
    for block in _cacheable(tree):
        control = block.get("cache_control")
        if control:
            _require(block.get("type") not in _THINKS, "cache_control: not on thinking blocks")
            empty = block.get("type") == "text" and not block.get("text")
            _require(not empty, "cache_control cannot be set for empty text blocks")
            controls.append(control)
    most = prefixes.MOST_BREAKPOINTS
    told = f"A maximum of {most} blocks with cache_control may be provided. Found {len(controls)}."
    _require(len(controls) <= most, told)
    for control in controls:
        _require(control.get("type") == "ephemeral", "cache_control.type: must be 'ephemeral'")
        extra = set(control) - {"type", "ttl", "scope"}
        _require(not extra, "cache_control: Extra inputs are not permitted")
        _require(control.get("ttl", "5m") in prefixes.LIVES_S, "cache_control.ttl: unexpected")
    last = _blocks(tree["messages"][-1])[-1:]
    explicit = last[0].get("cache_control") if last else None
    automatic = tree.get("cache_control")
    if explicit and automatic:
        told = (
            "the last block has an explicit cache_control with another ttl than the automatic one"
        )
        _require(explicit.get("ttl", "5m") == automatic.get("ttl", "5m"), f"cache_control: {told}")
    lives = [one.ttl for one in prefixes.stretches_of(tree) if one.ttl]
    told = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    _require(lives == sorted(lives), told)


def _cacheable(tree: Mapping[str, Any]) -> Iterator[Any]:
    yield from tree.get("tools") or ()
    system = tree.get("system") or ()
    yield from () if isinstance(system, str) else system
    for message in tree["messages"]:
        for block in _blocks(message):
            yield block
            inner = block.get("content")
            if block["type"] == "tool_result" and isinstance(inner, list):
                yield from inner


def _check_tools(tree: Mapping[str, Any]) -> None:
    system = tree.get("system")
    if isinstance(system, list):
        for number, block in enumerate(system):
            told = f"system.{number}: text content blocks must be non-empty"
            _require(block.get("type") != "text" or block.get("text"), told)
    names = [tool.get("name") for tool in tree.get("tools") or ()]
    _require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    kinds = {block["type"] for message in tree["messages"] for block in _blocks(message)}
    told = "Requests which include `tool_use` or `tool_result` blocks must define tools"
    _require(names or not kinds & {"tool_use", "tool_result"}, told)
    _check_deferred(tree)


def _check_deferred(tree: Mapping[str, Any]) -> None:
    """Check that tools which are not loaded from the beginning were found before their calls."""
    tools = tree.get("tools") or ()
    waiting = {tool["name"] for tool in tools if tool.get("defer_loading")}
    for block in (block for message in tree["messages"] for block in _blocks(message)):
        content = block.get("content")
        given = content.get("tool_references") if isinstance(content, dict) else content
        for one in given if isinstance(given, list) else ():
            if one.get("type") == "tool_reference":
                told = f"Tool reference '{one['tool_name']}' has no corresponding tool definition"
                _require(any(one["tool_name"] == tool.get("name") for tool in tools), told)
                waiting.discard(one["tool_name"])
        told = f"Tool '{block.get('name')}' is neither loaded nor referenced"
        _require(block["type"] != "tool_use" or block["name"] not in waiting, told)


def _check_pairs(messages: Sequence[Any]) -> None:
    """Check that results follow their calls at once, in front of all else, each once."""
    runs = [
        (role, start, [block for one in messages[start:end] for block in _blocks(one)])
        for role, start, end in _runs(messages)
    ]
    known: set[str] = set()
    for (_, _, blocks), (role, start, following) in pairwise([_END, *runs, _END]):
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        leading = _leading_results(following) if role == "user" else []
        missing = [one for one in calls if one not in leading]
        told = "`tool_use` ids were found without `tool_result` blocks immediately after"
        _require(not missing, f"messages: {told}: {', '.join(missing)}")
        results = [b["tool_use_id"] for b in following if b["type"] == "tool_result"]
        for result in results:
            told = f"messages.{start}: unexpected `tool_use_id` found in `tool_result` blocks"
            _require(result in calls, f"{told}: {result}")
        told = "each tool_use must have a single result"
        _require(len(set(results)) == len(results), f"messages.{start}: {told}")
        _require(not known & set(calls), "messages: `tool_use` ids must be unique")
        _require(len(set(calls)) == len(calls), "messages: `tool_use` ids must be unique")
        known |= set(calls)


_END: tuple[str, int, list[Any]] = ("", 0, [])


def _leading_results(blocks: Sequence[Any]) -> list[str]:
    found = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        found.append(block["tool_use_id"])
    return found


def _check_thoughts(tree: Mapping[str, Any], messages: Sequence[Any], seen: Seen) -> None:
    for number, message in enumerate(messages):
        for block in _blocks(message):
            if block["type"] == "thinking":
                _check_signature(number, block, seen)
    thinks = (tree.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    if not thinks:
        return
    _require(messages[-1]["role"] != "assistant", "messages: no prefill while thinking is on")
    for role, _, blocks in _current_turn(messages):
        if role != "assistant":
            continue
        thoughts = [b.get("signature") for b in blocks if b["type"] == "thinking"]
        for block in blocks:
            due = seen.with_call.get(block.get("id", "")) if block["type"] == "tool_use" else None
            told = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot"
            _require(due is None or due == thoughts, f"messages: {told} be modified")


def _current_turn(messages: Sequence[Any]) -> list[tuple[str, int, list[Any]]]:
    """Return the runs after the last words of the user."""
    runs = [
        (role, start, [block for one in messages[start:end] for block in _blocks(one)])
        for role, start, end in _runs(messages)
    ]
    for number in range(len(runs) - 1, -1, -1):
        role, _, blocks = runs[number]
        if role == "user" and not any(b["type"] == "tool_result" for b in blocks):
            return runs[number + 1 :]
    return runs


def _check_signature(number: int, block: Any, seen: Seen) -> None:
    told = f"messages.{number}: Invalid `signature` in `thinking` block"
    signature, text = block.get("signature"), block.get("thinking")
    _require(isinstance(signature, str) and signature and isinstance(text, str), told)
    if signature.startswith("sealed"):
        _require(signature == seal(text), told)
    _require(seen.signed.setdefault(signature, text) == text, told)


def remember_anthropic(blocks: Sequence[Any], seen: Seen) -> None:
    """Remember what was said, to know it again."""
    thoughts = [b["signature"] for b in blocks if b["type"] == "thinking"]
    for block in blocks:
        if block["type"] == "tool_use":
            seen.with_call[block["id"]] = thoughts


# OpenAI Chat Completions


def check_chat(tree: Mapping[str, Any], _seen: Seen) -> None:
    """Check a request to /v1/chat/completions."""
    _require(tree.get("model"), "you must provide a model parameter")
    messages = tree.get("messages")
    _require(isinstance(messages, list) and messages, "[] is too short - 'messages'")
    assert isinstance(messages, list)
    waiting: list[str] = []
    for number, message in enumerate(messages):
        role = message.get("role")
        allowed = ("system", "developer", "user", "assistant", "tool", "function")
        _require(role in allowed, f"Invalid value: '{role}' at messages[{number}].role")
        if role == "tool":
            told = "messages with role 'tool' must be a response to a preceding 'tool_calls'"
            _require(message.get("tool_call_id") in waiting, f"{told}, messages[{number}]")
            waiting.remove(message["tool_call_id"])
            continue
        _require(not waiting, _unanswered(waiting))
        _check_chat_content(number, message)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        _require(len(set(waiting)) == len(waiting), "Duplicate value for 'tool_call_id'")
    _require(not waiting, _unanswered(waiting))
    options = tree.get("stream_options")
    told = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    _require(options is None or tree.get("stream"), told)


def _check_chat_content(number: int, message: Any) -> None:
    content, calls = message.get("content"), message.get("tool_calls")
    if content is None:
        told = f"Invalid value for 'content': expected a string, got null. messages[{number}]"
        _require(message["role"] == "assistant" and calls, told)
    _require(calls is None or calls, f"[] is too short - 'messages.{number}.tool_calls'")
    for call in calls or ():
        shaped = call.get("id") and isinstance(call.get("function", {}).get("arguments"), str)
        _require(shaped, f"Invalid 'messages[{number}].tool_calls'")


def _unanswered(waiting: Sequence[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to"
        f" each 'tool_call_id'. These did not have response messages: {', '.join(waiting)}"
    )


# OpenAI Responses

_CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
}
_OUTPUTS = set(_CALLS.values())


def check_responses(tree: Mapping[str, Any], seen: Seen) -> None:
    """Check a request to /v1/responses, as a client sends it that keeps its own history."""
    _require(tree.get("model"), "Missing required parameter: 'model'.")
    given = tree.get("input")
    _require(isinstance(given, str | list) and given, "Missing required parameter: 'input'.")
    items: list[Any] = given if isinstance(given, list) else []
    _check_outputs(items)
    _check_ids(items)
    for number, item in enumerate(items):
        _check_parts(number, item)
        if item.get("type") == "reasoning":
            _check_reasoning(items, number, seen)
            kept = tree.get("store") is not False or item.get("encrypted_content")
            told = "not found. Items are not persisted when `store` is set to false."
            _require(kept, f"Item with id '{item.get('id')}' {told}")
        due = seen.reasoned.get(item.get("id", ""))
        if due is not None:
            before = [one.get("id") for one in items[:number] if one.get("type") == "reasoning"]
            told = f"Item '{item['id']}' of type '{item['type']}' was provided without its"
            _require(due in before, f"{told} required 'reasoning' item: '{due}'.")


def _check_outputs(items: Sequence[Any]) -> None:
    calls: dict[str, str] = {}
    done: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind in _CALLS:
            calls[str(item.get("call_id"))] = _CALLS[kind]
        elif kind in _OUTPUTS:
            named = str(item.get("call_id"))
            told = f"No tool call found for function call output with call_id {named}."
            _require(calls.get(named) == kind, told)
            _require(named not in done, f"Duplicate output for call_id {named}.")
            done.add(named)
        elif kind == "message":
            _require(item.get("role") in _RESPONSE_ROLES, "Invalid value: 'role'.")
            _require(item.get("content"), "Missing required parameter: 'content'.")
    missing = [one for one in calls if one not in done]
    _require(not missing, f"No tool output found for function call {', '.join(missing)}.")


_RESPONSE_ROLES = ("user", "assistant", "system", "developer")
_SPOKEN = ("output_text", "refusal")


def _check_ids(items: Sequence[Any]) -> None:
    names = [item["id"] for item in items if item.get("id")]
    twice = [name for name in names if names.count(name) > 1]
    _require(not twice, f"Duplicate item found with id {min(twice, default='')}.")


def _check_parts(number: int, item: Any) -> None:
    """Check what an assistant has said: parts of what others say are refused there."""
    if item.get("role") != "assistant" or isinstance(item["content"], str):
        return
    for at, part in enumerate(item["content"]):
        told = f"Invalid value: '{part['type']}' at input[{number}].content[{at}]"
        supported = "Supported values are: 'output_text' and 'refusal'."
        _require(part["type"] in _SPOKEN, f"{told}. {supported}")


def _check_reasoning(items: Sequence[Any], number: int, seen: Seen) -> None:
    item = items[number]
    name, hidden = str(item.get("id", "")), item.get("encrypted_content")
    after = items[number + 1] if number + 1 < len(items) else {}
    kind = str(after.get("type"))
    own = kind == "reasoning" or kind.endswith("_call") or after.get("role") == "assistant"
    told = f"Item '{name}' of type 'reasoning' was provided without its required following item."
    _require(own, told)
    if hidden is not None and name:
        told = f"The encrypted content for item {name} could not be verified."
        _require(not hidden.startswith("sealed") or hidden == seal(name), told)
        _require(seen.encrypted.setdefault(name, hidden) == hidden, told)


def remember_responses(items: Sequence[Any], seen: Seen) -> None:
    """Remember which items were said after which reasoning."""
    last = ""
    for item in items:
        if item["type"] == "reasoning":
            last = item["id"]
        elif last:
            seen.reasoned[item["id"]] = last


# Gemini


def check_gemini(tree: Mapping[str, Any], seen: Seen) -> None:
    """Check a request to generateContent."""
    contents = tree.get("contents")
    _require(isinstance(contents, list) and contents, "contents is not specified")
    assert isinstance(contents, list)
    roles = [content.get("role", "user") for content in contents]
    for role in roles:
        _require(role in ("user", "model", "function"), "Please use a valid role: user, model.")
    spoken = ["model" if role == "model" else "user" for role in roles]
    # They need not alternate: Google's SDK keeps each event of a stream as a content, and Gemini
    # CLI begins a resumed session with two of the user.
    _require(spoken[0] == "user", "Please ensure that the first turn is a user turn.")
    told = "Please ensure that multiturn requests end with a user turn."
    _require(spoken[-1] == "user", told)
    for number, content in enumerate(contents):
        parts = content.get("parts")
        told = f"GenerateContentRequest.contents[{number}].parts must not be empty"
        _require(isinstance(parts, list) and parts, told)
        for part in parts:
            told = f"contents[{number}].parts: must have one initialized field"
            _require(_has_data(part), told)
    _check_gemini_calls(contents, seen)
    _check_gemini_tools(tree)


_SCHEMA_WORDS = set(
    "type format title description nullable enum maxItems minItems properties required example"
    " minProperties maxProperties minLength maxLength pattern anyOf propertyOrdering default items"
    " minimum maximum".split()
)


def _check_gemini_tools(tree: Mapping[str, Any]) -> None:
    """Check what is declared: one word that is not known, and the whole request is refused."""
    tools = tree.get("tools") or ()
    declared = [one for tool in tools for one in tool.get("functionDeclarations", ())]
    for number, one in enumerate(declared):
        _check_schema(one.get("parameters") or {}, f"function_declarations[{number}].parameters")
    has_others = any(set(tool) - {"functionDeclarations"} for tool in tools)
    told = "Tool use with function calling is unsupported"
    _require(not (declared and has_others), told)
    mime = (tree.get("generationConfig") or {}).get("responseMimeType", "text/plain")
    told = f"Function calling with a response mime type: '{mime}' is unsupported"
    _require(not declared or mime == "text/plain", told)


def _check_schema(schema: Mapping[str, Any], at: str) -> None:
    for name, given in schema.items():
        told = (
            f"Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
        )
        _require(name in _SCHEMA_WORDS, told)
        inner = given.values() if name == "properties" else given if name == "anyOf" else ()
        for one in (given,) if name == "items" else inner:
            _check_schema(one, f"{at}.{name}")


def _has_data(part: Any) -> bool:
    return any(part.get(key) is not None for key in part if key not in ("thought",))


def _check_gemini_calls(contents: Sequence[Any], seen: Seen) -> None:
    before: list[str] = []
    begun = max((number for number, one in enumerate(contents) if _is_said(one)), default=0)
    for number, content in enumerate([*contents, {"role": "user", "parts": []}]):
        results = [p["functionResponse"]["name"] for p in content["parts"] if _responds(p)]
        told = "Please ensure that function response turn comes immediately after a function call"
        _require(before or not results, f"{told} turn.")
        told = "Please ensure that the number of function response parts is equal to the number of"
        _require(sorted(before) == sorted(results), f"{told} function call parts.")
        before = [p["functionCall"]["name"] for p in content["parts"] if "functionCall" in p]
        _require(not before or content.get("role") == "model", "functionCall is of the model only")
        for part in content["parts"] if number > begun else ():
            _check_thought_signature(part, seen)


def _is_said(content: Any) -> bool:
    """Tell whether a turn begins: signatures are asked for in the last one alone."""
    return content.get("role") != "model" and not all(map(_responds, content["parts"]))


def _responds(part: Any) -> bool:
    return "functionResponse" in part


def _check_thought_signature(part: Any, seen: Seen) -> None:
    call = part.get("functionCall")
    if call is None:
        return
    due = seen.encrypted.get(gemini_name(call))
    signature = part.get("thoughtSignature", part.get("thought_signature"))
    told = f"Function call `{call['name']}` is missing a thought_signature."
    _require(due is None or signature == due, told)


def gemini_name(call: Any) -> str:
    return str(call["name"]) + json.dumps(call.get("args", {}), sort_keys=True)


def remember_gemini(parts: Sequence[Any], seen: Seen) -> None:
    """Remember the signatures of calls."""
    for part in parts:
        if "functionCall" in part:
            seen.encrypted[gemini_name(part["functionCall"])] = part["thoughtSignature"]
