"""Anthropic Messages: the rules for a request, and a reply as a document or a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.upstream import prompt_cache
from tests.upstream.prompt_cache import PromptUsage
from tests.upstream.script import (
    Call,
    History,
    Json,
    ModelError,
    Part,
    Prompt,
    ReceivedRequest,
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

ID_PREFIX = "msg_"
ERROR_KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}  # fmt: skip
MODELS = ("claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5-20251001")


def parse_prompt(document: Mapping[str, Any]) -> Prompt:
    """Read the prompt of a request; messages with the role "system" are no turns."""
    turns = []
    for message in document["messages"]:
        if message["role"] == "system":
            continue
        blocks = _blocks(message)
        texts = tuple(block["text"] for block in blocks if block["type"] == "text")
        results = tuple(
            Result(
                block["tool_use_id"],
                text_of(block.get("content") or ""),
                failed=bool(block.get("is_error")),
            )
            for block in blocks
            if block["type"] == "tool_result"
        )
        turns.append(Turn(message["role"], texts, results))
    return Prompt(text_of(document.get("system") or ""), tuple(turns))


def text_of(content: str | list[Json]) -> str:
    """Return the text of a content that is a text or a list of blocks."""
    blocks = _blocks({"content": content})
    return "\n".join(str(block.get("text", "")) for block in blocks)


def prompt_text(document: Mapping[str, Any]) -> str:
    """Return a prompt as one text, in the order in which it is read."""
    return "".join(block.text for block in prompt_cache.prompt_blocks(document))


def sends_thoughts(document: Mapping[str, Any]) -> bool:
    """Return whether the model thinks before it answers."""
    return (document.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def headers(request: ReceivedRequest) -> dict[str, str]:
    """Return the headers of a successful response."""
    return {
        "request-id": f"req_{request.number:08}",
        "anthropic-ratelimit-unified-status": "allowed",
        "anthropic-ratelimit-unified-5h-utilization": "0.42",
        "anthropic-ratelimit-unified-5h-reset": "1790003600",
    }


def usage_document(usage: PromptUsage, output_tokens: int) -> Json:
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": usage.written_5m + usage.written_1h,
        "cache_read_input_tokens": usage.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written_5m,
            "ephemeral_1h_input_tokens": usage.written_1h,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def content_blocks(response: Response) -> list[Json]:
    """Return the content of a reply."""
    return [_content_block(response, number, part) for number, part in enumerate(response.parts)]


def _content_block(response: Response, number: int, part: Part) -> Json:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thought(text):
            return {"type": "thinking", "thinking": text, "signature": sign(text)}
        case Call(name, arguments):
            call_id = response.call_id(number, part)
            return {"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)}


def response_document(response: Response) -> Json:
    """Write a reply as one document."""
    return {
        "id": response.id,
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": content_blocks(response),
        "stop_reason": response.stop or ("tool_use" if response.calls else "end_turn"),
        "stop_sequence": None,
        "usage": usage_document(response.usage, response.output_tokens),
    }


def response_events(response: Response) -> Iterator[bytes]:
    """Write a reply as server-sent events."""
    done = response_document(response)
    start_usage = usage_document(response.usage, 1)
    start = {**done, "content": [], "stop_reason": None, "usage": start_usage}
    yield named_event("message_start", message=start)
    yield named_event("ping")
    for number, block in enumerate(done["content"]):
        yield from _block_events(number, block)
    stop = {"stop_reason": done["stop_reason"], "stop_sequence": None}
    start_only = ("cache_creation", "service_tier")
    usage = {key: count for key, count in done["usage"].items() if key not in start_only}
    yield named_event("message_delta", delta=stop, usage=usage)
    yield named_event("message_stop")


def _block_events(number: int, block: Json) -> Iterator[bytes]:
    def delta(kind: str, **fields: Any) -> bytes:
        return named_event("content_block_delta", index=number, delta={"type": kind, **fields})

    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
    start = {**block, **empty.get(block["type"], {"input": {}})}
    yield named_event("content_block_start", index=number, content_block=start)
    if block["type"] == "text":
        for piece in split_text(block["text"]):
            yield delta("text_delta", text=piece)
    elif block["type"] == "thinking":
        for piece in split_text(block["thinking"]):
            yield delta("thinking_delta", thinking=piece)
        yield delta("signature_delta", signature=block["signature"])
    else:
        for piece in ["", *split_text(json.dumps(block["input"]))]:
            yield delta("input_json_delta", partial_json=piece)
    yield named_event("content_block_stop", index=number)


def error_document(error: ModelError) -> Json:
    """Write an error."""
    kind = error.kind or ERROR_KINDS.get(error.status, "api_error")
    details = {"type": kind, "message": error.message}
    return {"type": "error", "error": details, "request_id": "req_failed"}


def error_event(error: ModelError) -> bytes:
    """Write an error that comes after the stream has begun."""
    document = error_document(error)
    return named_event(document.pop("type"), **document)


def models_document() -> Json:
    """List the models, in a form that clients of OpenAI also read."""
    data = [
        {"type": "model", "id": name, "display_name": name, "created_at": "2026-02-01T00:00:00Z"}
        for name in MODELS
    ]
    page = {"has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
    return {"object": "list", "data": data, **page}


def too_long_message(tokens: int, limit: int) -> str:
    return f"prompt is too long: {tokens} tokens > {limit} maximum"


_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_ALLOWED_KEYS = {
    "message": {"role", "content", "clear_at", "output_config"},
    "text": {"type", "text", "cache_control", "citations"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
_THINKING_KINDS = ("thinking", "redacted_thinking")
_SERVER_RESULT = re.compile(r"^(web_search|web_fetch|code_execution|mcp|.*)_tool_result$")


def check_request(
    document: Mapping[str, Any], history: History, *, counts_only: bool = False
) -> None:
    """Check a request to /v1/messages, or to count its tokens."""
    require(isinstance(document.get("model"), str) and document["model"], "model: Field required")
    if not counts_only:
        most = document.get("max_tokens")
        require(isinstance(most, int) and most >= 1, "max_tokens: must be at least 1")
        _check_thinking_budget(document)
    messages = document.get("messages")
    require(isinstance(messages, list) and messages, "messages: at least one message is required")
    assert isinstance(messages, list)
    _check_roles(messages)
    for number, message in enumerate(messages):
        _check_content(number, message, last=number == len(messages) - 1)
    _check_breakpoints(document)
    _check_tools(document)
    _check_pairs(messages)
    _check_thoughts(document, messages, history)


def _check_thinking_budget(document: Mapping[str, Any]) -> None:
    thinking = document.get("thinking") or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens", 0)
        require(budget >= 1024, "thinking.enabled.budget_tokens: must be at least 1024")
        rule = "`max_tokens` must be greater than `thinking.budget_tokens`"
        require(budget < document["max_tokens"], rule)


def _check_roles(messages: Sequence[Any]) -> None:
    for number, message in enumerate(messages):
        at = f"messages.{number}"
        require(isinstance(message, dict), f"{at}: must be an object")
        role = message.get("role")
        require(role in ("user", "assistant", "system"), f"{at}.role: unexpected role")
        extra = set(message) - _ALLOWED_KEYS["message"]
        require(not extra, f"{at}.{min(extra, default='')}: Extra inputs are not permitted")
    first = messages[0]["role"]
    require(first == "user", 'messages: first message must use the "user" role')
    runs = list(_runs(messages))
    for (before, _, _), (role, start, end) in pairwise([("", 0, 0), *runs]):
        if role == "system":
            _check_system_place(messages, before, start, end)


def _check_system_place(messages: Sequence[Any], before: str, start: int, end: int) -> None:
    if all(one["content"] == [] and "output_config" in one for one in messages[start:end]):
        return
    after = messages[end]["role"] if end < len(messages) else "assistant"
    follows = before == "user" or _ends_in_server_result(messages[start - 1])
    rule = f"messages.{start}: role 'system' must"
    require(
        follows,
        f"{rule} follow a 'user' message or an 'assistant' message ending in a server tool result",
    )
    require(after == "assistant", f"{rule} precede an 'assistant' message or end the array")


def _ends_in_server_result(message: Any) -> bool:
    blocks = _blocks(message)
    kind = blocks[-1]["type"] if blocks else ""
    return kind != "tool_result" and bool(_SERVER_RESULT.match(kind))


def _runs(messages: Sequence[Any]) -> Iterator[tuple[str, int, int]]:
    """Yield runs of messages with one role: role, first, and one after the last."""
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
    require(isinstance(content, str | list), f"{at}.content: Field required")
    prefill = last and message["role"] == "assistant"
    if message["role"] == "system" and content == [] and "output_config" in message:
        return
    rule = "all messages must have non-empty content except for the optional final assistant"
    require(content or prefill, f"{at}: {rule} message")
    for position, block in enumerate(_blocks(message) if content else []):
        _check_block(f"{at}.content.{position}", message, block)


def _check_block(at: str, message: Any, block: Any) -> None:
    require(isinstance(block, dict) and "type" in block, f"{at}.type: Field required")
    kind, role = block["type"], message["role"]
    extra = set(block) - _ALLOWED_KEYS.get(kind, set(block))
    require(not extra, f"{at}.{kind}.{min(extra, default='')}: Extra inputs are not permitted")
    if kind == "text":
        text = block.get("text")
        require(isinstance(text, str), f"{at}.text.text: Field required")
        require(text.strip(), f"{at}: text content blocks must contain non-whitespace text")
    if kind in (*_THINKING_KINDS, "tool_use"):
        require(role == "assistant", f"{at}: `{kind}` blocks can only be in assistant messages")
    if kind == "tool_result":
        require(role == "user", f"{at}: `tool_result` blocks can only be in `user` messages")
        _check_result(at, block)
    if kind == "tool_use":
        require(_NAME.match(str(block.get("id", ""))), f"{at}.tool_use.id: should match pattern")
        require(_NAME.match(str(block.get("name", ""))), f"{at}.tool_use.name: should match")
        require(isinstance(block.get("input"), dict), f"{at}.tool_use.input: should be an object")
    if role == "system":
        require(kind == "text", f"{at}: system messages may hold text only")
        conflicts = "clear_at" in message and "cache_control" in block
        require(not conflicts, f"{at}: cache_control is not allowed beside clear_at")


def _check_result(at: str, block: Any) -> None:
    content = block.get("content", "")
    require(isinstance(content, str | list), f"{at}.tool_result.content: wrong type")
    if isinstance(content, list):
        for inner in content:
            empty = inner.get("type") == "text" and not inner.get("text")
            require(not empty, f"{at}.tool_result: text content blocks must be non-empty")


def _check_breakpoints(document: Mapping[str, Any]) -> None:
    controls = [document["cache_control"]] if document.get("cache_control") else []
    for block in _cacheable(document):
        control = block.get("cache_control")
        if control:
            require(
                block.get("type") not in _THINKING_KINDS, "cache_control: not on thinking blocks"
            )
            empty = block.get("type") == "text" and not block.get("text")
            require(not empty, "cache_control cannot be set for empty text blocks")
            controls.append(control)
    most = prompt_cache.MAX_BREAKPOINTS
    rule = f"A maximum of {most} blocks with cache_control may be provided. Found {len(controls)}."
    require(len(controls) <= most, rule)
    for control in controls:
        require(control.get("type") == "ephemeral", "cache_control.type: must be 'ephemeral'")
        extra = set(control) - {"type", "ttl", "scope"}
        require(not extra, "cache_control: Extra inputs are not permitted")
        require(control.get("ttl", "5m") in prompt_cache.TTLS_S, "cache_control.ttl: unexpected")
    last = _blocks(document["messages"][-1])[-1:]
    explicit = last[0].get("cache_control") if last else None
    automatic = document.get("cache_control")
    if explicit and automatic:
        rule = (
            "the last block has an explicit cache_control with another ttl than the automatic one"
        )
        require(explicit.get("ttl", "5m") == automatic.get("ttl", "5m"), f"cache_control: {rule}")
    lives = [one.ttl for one in prompt_cache.prompt_blocks(document) if one.ttl]
    rule = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    require(lives == sorted(lives), rule)


def _cacheable(document: Mapping[str, Any]) -> Iterator[Any]:
    yield from document.get("tools") or ()
    system = document.get("system") or ()
    yield from () if isinstance(system, str) else system
    for message in document["messages"]:
        for block in _blocks(message):
            yield block
            inner = block.get("content")
            if block["type"] == "tool_result" and isinstance(inner, list):
                yield from inner


def _check_tools(document: Mapping[str, Any]) -> None:
    system = document.get("system")
    if isinstance(system, list):
        for number, block in enumerate(system):
            rule = f"system.{number}: text content blocks must be non-empty"
            require(block.get("type") != "text" or block.get("text"), rule)
    names = [tool.get("name") for tool in document.get("tools") or ()]
    require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    kinds = {block["type"] for message in document["messages"] for block in _blocks(message)}
    rule = "Requests which include `tool_use` or `tool_result` blocks must define tools"
    require(names or not kinds & {"tool_use", "tool_result"}, rule)
    _check_deferred(document)


def _check_deferred(document: Mapping[str, Any]) -> None:
    """Check that tools which are not loaded from the beginning were found before their calls."""
    tools = document.get("tools") or ()
    waiting = {tool["name"] for tool in tools if tool.get("defer_loading")}
    for block in (block for message in document["messages"] for block in _blocks(message)):
        content = block.get("content")
        references = content.get("tool_references") if isinstance(content, dict) else content
        for one in references if isinstance(references, list) else ():
            if one.get("type") == "tool_reference":
                rule = f"Tool reference '{one['tool_name']}' has no corresponding tool definition"
                require(any(one["tool_name"] == tool.get("name") for tool in tools), rule)
                waiting.discard(one["tool_name"])
        rule = f"Tool '{block.get('name')}' is neither loaded nor referenced"
        require(block["type"] != "tool_use" or block["name"] not in waiting, rule)


def _check_pairs(messages: Sequence[Any]) -> None:
    """Check that results follow their calls at once, in front of all else, each once."""
    runs = [
        (role, start, [block for one in messages[start:end] for block in _blocks(one)])
        for role, start, end in _runs(messages)
    ]
    earlier: set[str] = set()
    for (_, _, blocks), (role, start, following) in pairwise([_NO_RUN, *runs, _NO_RUN]):
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        leading = _leading_results(following) if role == "user" else []
        missing = [one for one in calls if one not in leading]
        rule = "`tool_use` ids were found without `tool_result` blocks immediately after"
        require(not missing, f"messages: {rule}: {', '.join(missing)}")
        results = [b["tool_use_id"] for b in following if b["type"] == "tool_result"]
        for result in results:
            rule = f"messages.{start}: unexpected `tool_use_id` found in `tool_result` blocks"
            require(result in calls, f"{rule}: {result}")
        rule = "each tool_use must have a single result"
        require(len(set(results)) == len(results), f"messages.{start}: {rule}")
        require(not earlier & set(calls), "messages: `tool_use` ids must be unique")
        require(len(set(calls)) == len(calls), "messages: `tool_use` ids must be unique")
        earlier |= set(calls)


_NO_RUN: tuple[str, int, list[Any]] = ("", 0, [])


def _leading_results(blocks: Sequence[Any]) -> list[str]:
    ids = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        ids.append(block["tool_use_id"])
    return ids


def _check_thoughts(document: Mapping[str, Any], messages: Sequence[Any], history: History) -> None:
    for number, message in enumerate(messages):
        for block in _blocks(message):
            if block["type"] == "thinking":
                _check_signature(number, block)
    if not sends_thoughts(document):
        return
    require(messages[-1]["role"] != "assistant", "messages: no prefill while thinking is on")
    for role, _, blocks in _current_turn(messages):
        if role != "assistant":
            continue
        thoughts = [b.get("signature") for b in blocks if b["type"] == "thinking"]
        for block in blocks:
            due = (
                history.thoughts_of_call.get(block.get("id", ""))
                if block["type"] == "tool_use"
                else None
            )
            rule = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot"
            require(due is None or due == thoughts, f"messages: {rule} be modified")


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


def _check_signature(number: int, block: Any) -> None:
    rule = f"messages.{number}: Invalid `signature` in `thinking` block"
    signature, text = block.get("signature"), block.get("thinking")
    require(isinstance(text, str) and signature == sign(text), rule)


def remember(response: Response, history: History) -> None:
    """Remember which thoughts came before which calls."""
    thoughts = [sign(part.text) for part in response.parts if isinstance(part, Thought)]
    for call_id, _ in response.calls:
        history.thoughts_of_call[call_id] = thoughts
