"""Requests of OpenAI's Responses API: parse, expand markers, rewrite by a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Literal

from lore.errors import InvalidInput
from lore.gateway.apis import entry_keys, json_values, markers, prompt_layout
from lore.gateway.apis.adapter import FindMarker, PromptAdditions, Request, Tool
from lore.gateway.apis.entry_keys import KeyedBlock
from lore.gateway.apis.json_values import Json, as_object, as_text
from lore.gateway.apis.markers import Atom, Marker
from lore.gateway.apis.openai_chat.requests import (
    SYSTEM_ROLES,
    content_parts,
    parse_part,
    part_texts,
)
from lore.gateway.apis.prompt_layout import ItemFormat
from lore.records.gateway import Block, BlockKind, Entry, Plan, Voice

Side = Literal["user", "assistant", "system", "results"]

_TEXT_TYPES = frozenset("text input_text output_text refusal summary_text reasoning_text".split())
_MEDIA_TYPES = frozenset("input_image input_file input_audio".split())
_TOOLS_ITEM = "additional_tools"
_SETTING_ITEMS = frozenset({_TOOLS_ITEM, "configuration_update"})
"""Items with which Codex changes the tools and reasoning effort of newer models."""

_STORED_HISTORY_FIELDS = ("previous_response_id", "conversation")
"""Fields that name a history stored by the provider."""

_VOICES: dict[Side, Voice] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "results": "user",
}


def parse_request(body: bytes, path: str = "") -> Request:  # noqa: ARG001 (only Gemini needs the path)
    """Parse a request to a path, or raise `InvalidInput` if its shape is not supported."""
    return parse_document(body, json_values.parse_object(body))


def parse_document(body: bytes, document: Json, *, is_expanded: bool = False) -> Request:
    """Parse a request from its JSON document; leading system items are no entries."""
    items = input_items(document)
    head = count_system_items(items)
    # A response is one entry, and so are the results of parallel calls.
    places = entry_keys.entry_spans(
        [item_side(one) for one in items], ("assistant", "results"), head
    )
    names: dict[str, str] = {}
    is_kept = any(document.get(name) for name in _STORED_HISTORY_FIELDS)
    tools = json_values.objects_in(document.get("tools"))
    fixed = [json_values.to_json_text(one) for one in tools]
    fixed.append(as_text(document.get("instructions")))
    fixed += ["\n".join(part_texts(one.get("content"))) for one in items[:head] if "content" in one]
    fixed += [json_values.to_json_text(one) for one in items[:head] if "content" not in one]
    more = [
        tool
        for one in items
        if _is_tools_item(one)
        for tool in json_values.objects_in(one.get("tools"))
    ]
    return Request(
        body=body,
        document=document,
        dialogue=entry_keys.make_dialogue(
            as_text(document.get("model")),
            items,
            places,
            partial(parse_entry, names=names),
            fixed,
        ),
        entry_spans=places,
        streams=document.get("stream") is True,
        tools=frozenset(name for tool in (*tools, *more) for name in _tool_names(tool)),
        is_expanded=is_expanded,
        has_history=not is_kept,
        # Stored responses have an id, and joined responses have no common one. How tools combine
        # with those among the items is not documented.
        can_offer_recall=(
            document.get("store") is False
            and not is_kept
            and not more
            and _supports_recall(document)
        ),
    )


def _supports_recall(document: Json) -> bool:
    """Return whether the response may contain recall calls, on every server.

    Tools of a request would replace those of a stored prompt.
    """
    form = as_object(as_object(document.get("text")).get("format")).get("type")
    is_plain = form in (None, "text") or bool(document.get("tools"))
    return (
        is_plain
        and not document.get("prompt")
        and prompt_layout.supports_tools(as_text(document.get("model")))
    )


def input_items(document: Json) -> list[Json]:
    """Return the input of a request as items, whether it is a string or a list."""
    items = document.get("input")
    if isinstance(items, str) and items:
        return [{"type": "message", "role": "user", "content": items}]
    if items is None and isinstance(document.get("prompt"), dict):
        msg = "The prompt is kept by the provider."
        raise InvalidInput(msg)
    return json_values.require_objects(items)


def item_side(item: Json) -> Side:
    """Return the side of an item; results belong to the user but start no turn."""
    kind, role = as_text(item.get("type")) or "message", item.get("role")
    if role in SYSTEM_ROLES or kind in _SETTING_ITEMS:
        return "system"
    if kind == "message":
        return "user" if role == "user" else "assistant"
    return "results" if kind.endswith("_output") else "assistant"


def _is_tools_item(item: Json) -> bool:
    return item.get("type") == _TOOLS_ITEM


def _tool_names(tool: Json) -> list[str]:
    """Return the names of a tool, or of the tools in a namespace."""
    name = as_text(tool.get("name"))
    return [
        name,
        *(
            f"{name}.{as_text(one.get('name'))}"
            for one in json_values.objects_in(tool.get("tools"))
        ),
    ]


def count_system_items(items: list[Json]) -> int:
    """Return the number of leading system items."""
    return len(list(takewhile(lambda one: item_side(one) == "system", items)))


def parse_entry(items: list[Json], names: dict[str, str]) -> Entry:
    """Return the items of one side as an entry.

    `names` maps call ids to tools, for the results that follow.
    """
    voice = _VOICES[item_side(items[0])]
    return entry_keys.make_entry(
        voice, [piece for item in items for piece in _parse_item(item, names)]
    )


def _parse_item(item: Json, names: dict[str, str]) -> list[KeyedBlock]:
    kind = as_text(item.get("type")) or "message"
    if kind == "message":
        return [_parse_part(part) for part in content_parts(item.get("content"), "input_text")]
    if kind.endswith("_output"):
        return [_parse_output(item, names)]
    call_id = as_text(item.get("call_id"))
    if kind.endswith("_call") and call_id:
        arguments = as_text(item.get("arguments")) or as_text(item.get("input"))
        arguments = arguments or json_values.to_json_text(item.get("action"))
        name = names[call_id] = as_text(item.get("name")) or kind
        return [
            KeyedBlock(Block("call", len(arguments) + len(name), arguments, call_id, name), call_id)
        ]
    if kind == "reasoning":
        thought = "\n".join(part_texts(item.get("summary")))
        sealed = as_text(item.get("encrypted_content"))
        size = len(thought) or len(sealed) // 2
        return [KeyedBlock(Block("reasoning", size, thought), as_text(item.get("id")) or sealed)]
    json_text = json_values.to_json_text(item)
    sort: BlockKind = (
        "text" if kind in _SETTING_ITEMS else "other"
    )  # They apply until the next ones.
    return [
        KeyedBlock(
            Block(sort, len(json_text), json_text, tool=kind), as_text(item.get("id")) or json_text
        )
    ]


def _parse_part(part: Json) -> KeyedBlock:
    return parse_part(part, _TEXT_TYPES, _MEDIA_TYPES)


def _parse_output(item: Json, names: dict[str, str]) -> KeyedBlock:
    output, chars = item.get("output"), 0
    if isinstance(output, str):
        text, chars = output, len(output)
    elif isinstance(output, list):
        pieces = [_parse_part(part).block for part in json_values.objects_in(output)]
        text, chars = "\n".join(one.text for one in pieces), sum(one.chars for one in pieces)
    else:
        text = json_values.to_json_text(output)
        chars = len(text)
    call_id = as_text(item.get("call_id"))
    tool = names.get(call_id, "")
    return KeyedBlock(Block("result", chars, text, call_id, tool), call_id or text)


def rewrite_request(request: Request, plan: Plan, texts: PromptAdditions) -> bytes:
    """Return the prompt that a plan describes; the client's own bytes if nothing changes."""
    if prompt_layout.is_passthrough(request, plan, texts):
        return request.body
    document = dict(request.document)
    original = input_items(document)
    items = prompt_layout.arrange_items(original, request, plan, texts, _ITEM_FORMAT)
    instructions = as_text(document.get("instructions"))
    if texts.knowledge and instructions:
        document["instructions"] = f"{instructions}\n\n{texts.knowledge}"
    elif texts.knowledge:
        items.insert(count_system_items(original), _make_message("developer", texts.knowledge))
    document["input"] = items
    if texts.recall_tool:
        prompt_layout.add_tool(document, tool_definition(texts.recall_tool))
    return json_values.to_json_bytes(document)


def tool_definition(tool: Tool) -> Json:
    """Return a tool in the format of this API."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", **function, "strict": False}


def _make_message(role: str, *texts: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": one} for one in texts]
    return {"type": "message", "role": role, "content": content}


def _user_item(texts: Sequence[str]) -> Json:
    return _make_message("user", *texts)


def _assistant_item(text: str) -> Json:
    return _make_message("assistant", text)


def _normalize_item(item: Json, annotations: Mapping[int, str]) -> Json:
    """Return a message item with a list as content and an explicit type."""
    if annotations:
        return {**item, "output": annotations[0]}
    if as_text(item.get("type")) not in ("", "message") or not isinstance(item.get("content"), str):
        return item
    role = as_text(item.get("role"))
    return {**item, **_make_message(role, item["content"])}


def _with_note(item: Json, note: str) -> list[Json]:
    if item.get("role") != "user":
        return [item, _make_message("user", note)]
    content = [
        *content_parts(item.get("content"), "input_text"),
        {"type": "input_text", "text": note},
    ]
    return [{**item, "content": content}]


_ITEM_FORMAT = ItemFormat(_user_item, _assistant_item, _normalize_item, _with_note)


_POSITIONAL_FIELDS = ("annotations", "logprobs")
"""Fields that refer to positions in a text."""


def expand_markers(request: Request, find: FindMarker) -> Request:
    """Replace markers by the recall calls and results that they stand for."""
    if not markers.may_have_markers(request.body):
        return request
    split = partial(_split_item, find=markers.find_once(find))
    items = markers.expand_items(input_items(request.document), split, _expand_item)
    if items is None:
        return request
    return parse_document(request.body, {**request.document, "input": items}, is_expanded=True)


def _split_item(item: Json, find: FindMarker) -> Iterator[Atom]:
    """Yield the parts of an assistant item, with markers in place of their texts."""
    if item.get("role") != "assistant":
        return
    for part in content_parts(item.get("content"), "output_text"):
        text = as_text(part.get("text"))
        if not markers.may_have_markers(text.encode(errors="replace")):
            yield part
            continue
        unplaced: Json = {name: [] for name in _POSITIONAL_FIELDS if name in part}
        for piece in markers.split_markers(text, find):
            yield {**part, **unplaced, "text": piece} if isinstance(piece, str) else piece


def _expand_item(item: Json, atoms: list[Atom]) -> Iterator[Json]:
    """Yield the items that one was joined from, each call with its result.

    Only the first keeps the id, since ids must be unique.
    """
    parts: list[Json] = []
    for atom in (*atoms, None):
        if isinstance(atom, dict):
            parts.append(atom)
            continue
        if any(part.get("text") != "" for part in parts):
            yield _partial_message(item, parts)
            item = without_id(item)
        parts = []
        if atom is not None:
            yield from call_and_output(atom)


def _partial_message(item: Json, parts: list[Json]) -> Json:
    """Return an item with some of its parts."""
    if isinstance(item.get("content"), str):
        return {**item, "content": "".join(as_text(part.get("text")) for part in parts)}
    return {**item, "content": parts}


def call_and_output(marker: Marker) -> Iterator[Json]:
    """Yield a call and its result, identical in every request.

    The id is dropped, because it would bind the call to a reasoning item that the client may not
    have.
    """
    output = marker.result or markers.SEARCH_FAILED_TEXT
    yield without_id(marker.call)
    call_id = marker.call.get("call_id")
    yield {"type": "function_call_output", "call_id": call_id, "output": output}


def without_id(item: Json) -> Json:
    """Return an item without its id."""
    return {name: value for name, value in item.items() if name != "id"}
