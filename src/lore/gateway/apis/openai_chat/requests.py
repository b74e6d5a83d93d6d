"""Requests of OpenAI's Chat Completions API: parse, expand markers, rewrite by a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile

from lore.gateway.apis import entry_keys, json_values, markers, prompt_layout
from lore.gateway.apis.adapter import FindMarker, PromptAdditions, Request, Tool
from lore.gateway.apis.entry_keys import KeyedBlock
from lore.gateway.apis.json_values import Json, as_object, as_text
from lore.gateway.apis.markers import Marker
from lore.gateway.apis.prompt_layout import ItemFormat
from lore.records.gateway import Block, Entry, Plan

IMAGE_CHARS = 4_000
"""About 1,000 tokens; an image of 1024 × 1024 at high detail takes 765 (OpenAI's documentation)."""

SYSTEM_ROLES = ("system", "developer")

_TEXT_TYPES = ("text", "refusal")
_MEDIA_TYPES = ("image_url", "input_audio", "file")

_TOOL_CONFLICTS = ("functions", "function_call", "prediction", "web_search_options")
"""Fields that replace tools, or are rejected together with tools (OpenAI's documentation)."""


def parse_request(body: bytes, path: str = "") -> Request:  # noqa: ARG001 (only Gemini needs the path)
    """Parse a request to a path, or raise `InvalidInput` if its shape is not supported."""
    return parse_document(body, json_values.parse_object(body))


def parse_document(body: bytes, document: Json, *, is_expanded: bool = False) -> Request:
    """Parse a request from its JSON document; leading system messages are no entries."""
    messages = json_values.require_objects(document.get("messages"))
    head = count_system_messages(messages)
    # The results of parallel calls are one entry.
    places = entry_keys.entry_spans([one.get("role") for one in messages], ("tool",), head)
    names: dict[str, str] = {}
    model = as_text(document.get("model"))
    tools = json_values.objects_in(document.get("tools"))
    fixed = [json_values.to_json_text(one) for one in tools]
    fixed += ["\n".join(part_texts(one.get("content"))) for one in messages[:head]]
    return Request(
        body=body,
        document=document,
        dialogue=entry_keys.make_dialogue(
            model, messages, places, partial(parse_entry, names=names), fixed
        ),
        entry_spans=places,
        streams=document.get("stream") is True,
        tools=frozenset(as_text(as_object(tool.get("function")).get("name")) for tool in tools),
        is_expanded=is_expanded,
        can_offer_recall=_supports_recall(document) and prompt_layout.supports_tools(model),
    )


def _supports_recall(document: Json) -> bool:
    """Return whether the response may contain tool calls, on every server.

    Some servers reject tools together with JSON output; a client that sends both uses one that does
    not.
    """
    if document.get("n") not in (None, 1) or any(document.get(name) for name in _TOOL_CONFLICTS):
        return False
    form = as_object(document.get("response_format")).get("type")
    speaks = document.get("modalities") not in (None, [], ["text"])
    return not speaks and (form in (None, "text") or bool(document.get("tools")))


def count_system_messages(messages: list[Json]) -> int:
    """Return the number of leading system messages."""
    return len(list(takewhile(lambda one: one.get("role") in SYSTEM_ROLES, messages)))


def parse_entry(messages: list[Json], names: dict[str, str]) -> Entry:
    """Return messages as one entry: a single message, or several tool results.

    `names` maps call ids to tools, for the results that follow.
    """
    role = messages[0].get("role")
    if role == "tool":
        return entry_keys.make_entry("user", [_parse_result(one, names) for one in messages])
    if role == "assistant":
        return entry_keys.make_entry("assistant", list(_parse_assistant(messages[0], names)))
    pieces = [parse_part(part) for part in content_parts(messages[0].get("content"))]
    return entry_keys.make_entry("user" if role == "user" else "system", pieces)


def content_parts(content: object, kind: str = "text") -> list[Json]:
    """Return a content as parts; a string becomes one part of type `kind`."""
    if isinstance(content, str):
        return [{"type": kind, "text": content}] if content else []
    return json_values.objects_in(content)


def part_texts(content: object) -> list[str]:
    """Return the texts of a content's parts."""
    return [as_text(part.get("text")) for part in content_parts(content)]


def _parse_assistant(message: Json, names: dict[str, str]) -> Iterator[KeyedBlock]:
    thought = as_text(message.get("reasoning_content")) or as_text(message.get("reasoning"))
    if thought:
        yield KeyedBlock(Block("reasoning", len(thought), thought), thought)
    for part in content_parts(message.get("content")):
        yield parse_part(part)
    for call in json_values.objects_in(message.get("tool_calls")):
        yield _parse_call(call, names)


def parse_part(
    part: Json,
    text_types: Collection[str] = _TEXT_TYPES,
    media_types: Collection[str] = _MEDIA_TYPES,
) -> KeyedBlock:
    """Return a part of a message as a block."""
    sort = as_text(part.get("type"))
    if sort in text_types:
        text = as_text(part.get("text")) or as_text(part.get("refusal"))
        return KeyedBlock(Block("text", len(text), text), entry_keys.strip_reminders(text))
    json_text = json_values.to_json_text(part)
    size = IMAGE_CHARS if sort in media_types else len(json_text)
    return KeyedBlock(Block("other", size, f"[{sort}]", tool=sort), entry_keys.digest(json_text))


def _parse_call(call: Json, names: dict[str, str]) -> KeyedBlock:
    function = as_object(call.get("function")) or as_object(call.get("custom"))
    arguments = as_text(function.get("arguments")) or as_text(function.get("input"))
    name, call_id = as_text(function.get("name")), as_text(call.get("id"))
    names[call_id] = name
    return KeyedBlock(
        Block("call", len(arguments) + len(name), arguments, call_id, name), call_id or arguments
    )


def _parse_result(message: Json, names: dict[str, str]) -> KeyedBlock:
    parts = content_parts(message.get("content"))
    text = "\n".join(as_text(part.get("text")) or f"[{part.get('type')}]" for part in parts)
    call_id = as_text(message.get("tool_call_id"))
    tool = names.get(call_id, "")
    return KeyedBlock(Block("result", len(text), text, call_id, tool), call_id or text)


def rewrite_request(request: Request, plan: Plan, texts: PromptAdditions) -> bytes:
    """Return the prompt that a plan describes; the client's own bytes if nothing changes."""
    is_wordless = prompt_layout.is_media_model(request.dialogue.model)
    if is_wordless or prompt_layout.is_passthrough(request, plan, texts):
        return request.body
    document = dict(request.document)
    original = json_values.require_objects(document["messages"])
    messages = prompt_layout.arrange_items(original, request, plan, texts, _ITEM_FORMAT)
    head = count_system_messages(original)
    if texts.knowledge and (head or not prompt_layout.is_minimal_model(request.dialogue.model)):
        messages = _add_knowledge(messages, head, texts.knowledge)
    document["messages"] = messages
    if texts.recall_tool:
        prompt_layout.add_tool(document, tool_definition(texts.recall_tool))
    return json_values.to_json_bytes(document)


def tool_definition(tool: Tool) -> Json:
    """Return a tool in the format of this API."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _add_knowledge(messages: list[Json], head: int, knowledge: str) -> list[Json]:
    """Append knowledge to the system prompt, since some servers reject a second system message."""
    if not head:
        return [{"role": "system", "content": knowledge}, *messages]
    last = messages[head - 1]
    content = last.get("content")
    if isinstance(content, list):
        extended: object = [*content, {"type": "text", "text": knowledge}]
    else:
        extended = f"{content}\n\n{knowledge}"
    return [*messages[: head - 1], {**last, "content": extended}, *messages[head:]]


def _user_message(texts: Sequence[str]) -> Json:
    return {"role": "user", "content": "\n\n".join(texts)}


def _assistant_message(text: str) -> Json:
    return {"role": "assistant", "content": text}


def _normalize_message(message: Json, annotations: Mapping[int, str]) -> Json:
    """Return a message with a string as content, if it has a single text part."""
    if annotations:
        return {**message, "content": annotations[0]}
    content = message.get("content")
    part = (
        json_values.as_object(content[0]) if isinstance(content, list) and len(content) == 1 else {}
    )
    if part.keys() == {"type", "text"}:
        return {**message, "content": part["text"]}
    return message


def _with_note(message: Json, note: str) -> list[Json]:
    if message.get("role") != "user":
        return [message, {"role": "user", "content": note}]
    content = message.get("content")
    if isinstance(content, str):
        return [{**message, "content": f"{content}\n\n{note}"}]
    return [{**message, "content": [*content_parts(content), {"type": "text", "text": note}]}]


_ITEM_FORMAT = ItemFormat(_user_message, _assistant_message, _normalize_message, _with_note)


_MESSAGE_FIELDS = ("role", "content", "tool_calls")


def expand_markers(request: Request, find: FindMarker) -> Request:
    """Replace markers by the recall calls and results that they stand for."""
    if not markers.may_have_markers(request.body):
        return request
    messages = markers.expand_items(
        json_values.require_objects(request.document["messages"]),
        partial(_split_message, find=markers.find_once(find)),
        _expand_message,
    )
    if messages is None:
        return request
    return parse_document(
        request.body, {**request.document, "messages": messages}, is_expanded=True
    )


def _split_message(message: Json, find: FindMarker) -> Iterator[str | Marker]:
    """Yield the texts of an assistant message, with markers in their place."""
    if message.get("role") == "assistant":
        yield from markers.split_markers("".join(part_texts(message.get("content"))), find)


def _expand_message(message: Json, atoms: list[str | Marker]) -> list[Json]:
    """Return the messages that one was joined from."""
    messages: list[Json] = []
    text = ""
    waiting: list[Marker] = []
    extras = [dict(message)]
    for atom in atoms:
        if waiting and (isinstance(atom, str) or atom.round != waiting[0].round):
            messages += _round_messages(text, waiting, extras)
            text, waiting = "", []
        if isinstance(atom, str):
            text += atom
        else:
            waiting.append(atom)
    if waiting and not waiting[0].is_mixed:
        messages += _round_messages(text, waiting, extras)
        text, waiting = "", []
    calls = json_values.objects_in(message.get("tool_calls"))
    for marker in waiting:
        calls.insert(marker.place, marker.call)
    others = [part for part in content_parts(message.get("content")) if "text" not in part]
    parts = [*([{"type": "text", "text": text}] if text else []), *others]
    last: Json = {**extras[0], "content": parts if others else text or None}
    if calls:
        last["tool_calls"] = calls
    if parts or calls:
        messages += [last, *map(tool_message, waiting)]
    return messages


def _round_messages(text: str, waiting: list[Marker], extras: list[Json]) -> list[Json]:
    """Return the message of a response that called only recall, and its results.

    Its extra fields are removed from those of the client's joined message.
    """
    extra = waiting[0].extra
    for name, value in extra.items():
        joined = extras[0].get(name)
        if isinstance(joined, str) and isinstance(value, str) and joined.startswith(value):
            extras[0][name] = joined[len(value) :]
            if not extras[0][name]:
                del extras[0][name]
    return [recall_message(text, waiting, extra), *map(tool_message, waiting)]


def recall_message(text: str, waiting: list[Marker], extra: Json) -> Json:
    """Return the message that called recall, identical in every request."""
    content = text.strip("\n") or None
    calls = [marker.call for marker in waiting]
    return {"role": "assistant", "content": content, **extra, "tool_calls": calls}


def extra_fields(message: Json) -> Json:
    """Return the fields of a message besides its content and calls."""
    return {name: value for name, value in message.items() if name not in _MESSAGE_FIELDS}


def tool_message(marker: Marker) -> Json:
    """Return the result of a call as a message."""
    content = marker.result or markers.SEARCH_FAILED_TEXT
    return {"role": "tool", "tool_call_id": marker.call.get("id"), "content": content}
