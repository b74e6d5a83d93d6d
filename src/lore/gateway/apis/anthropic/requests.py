"""Requests of Anthropic's Messages API: parse, expand markers, rewrite by a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from lore.context import layers
from lore.context.layers import MAX_BREAKPOINTS, PREFIX
from lore.gateway.apis import entry_keys, json_values, markers, prompt_layout
from lore.gateway.apis.adapter import FindMarker, PromptAdditions, Request, Tool
from lore.gateway.apis.entry_keys import KeyedBlock
from lore.gateway.apis.json_values import Json, as_object, as_text
from lore.gateway.apis.markers import Atom, Marker
from lore.gateway.apis.parse_cache import MAX_CACHE_BYTES, ParseCache, PrefixCache
from lore.records.gateway import Block, Dialogue, Entry, Plan, Voice

IMAGE_CHARS = 6_000
"""About 1,500 tokens for a large image, from Anthropic's documentation."""

_BILLING_PREFIX = "x-anthropic-billing-header:"
"""Prefix of a block in Claude Code's system prompt that differs between requests of a session."""

_BREAKPOINT = b'"cache_control"'

_VOICES: dict[str, Voice] = {"user": "user", "assistant": "assistant", "system": "system"}


class FixedPart(NamedTuple):
    """A tool or a block of the system prompt; what differs between requests has no size."""

    value: Any
    name: str = ""
    chars: int = 0
    has_breakpoint: bool = False


class ParsedMessage(NamedTuple):
    """A message, its entry, and the tools of its calls and results by the ids of the calls."""

    value: Json
    entry: Entry
    calls: dict[str, str]
    results: dict[str, str]
    strays: frozenset[str]
    """The ids in results whose calls are unknown."""

    def matches_calls(self, names: dict[str, str]) -> bool:
        """Return whether the results match these calls."""
        return self.results.items() <= names.items() and self.strays.isdisjoint(names)


class ParsedPrefix(NamedTuple):
    """The first messages of a request, and the tools of their calls."""

    messages: list[ParsedMessage]
    names: dict[str, str]


_MESSAGE_CACHE: ParseCache[ParsedMessage] = ParseCache()
_PREFIX_CACHE: PrefixCache[ParsedPrefix] = PrefixCache()
_FIXED_CACHE: ParseCache[FixedPart] = ParseCache(MAX_CACHE_BYTES // 4)


def parse_request(body: bytes, path: str = "") -> Request:  # noqa: ARG001 (only Gemini needs the path)
    """Parse a request to a path, or raise `InvalidInput` if its shape is not supported.

    Messages that recent requests contained come from the parse cache.
    """
    fields = json_values.split_fields(body)
    parsed = _parse_messages(fields.get("messages", b""))
    replaced: Json = {"messages": [one.value for one in parsed]}
    fixed: dict[str, list[FixedPart]] = {}
    for name in ("tools", "system"):
        if fields.get(name, b"").startswith(b"["):
            fixed[name] = [_cached_fixed(one) for one in json_values.split_items(fields[name])]
            replaced[name] = [one.value for one in fixed[name]]
    document = {
        name: replaced[name] if name in replaced else json_values.parse_value(raw)
        for name, raw in fields.items()
    }
    tools = fixed.get("tools", [])
    system = fixed.get("system") or [
        _parse_fixed(one) for one in content_blocks(document.get("system"))
    ]
    return _make_request(body, document, [one.entry for one in parsed], tools, system)


def parse_document(body: bytes, document: Json, *, is_expanded: bool = False) -> Request:
    """Parse a request from its JSON document."""
    names: dict[str, str] = {}
    entries = [
        parse_entry(one, names) for one in json_values.require_objects(document.get("messages"))
    ]
    tools = [_parse_fixed(one) for one in json_values.objects_in(document.get("tools"))]
    system = [_parse_fixed(one) for one in content_blocks(document.get("system"))]
    return _make_request(body, document, entries, tools, system, is_expanded=is_expanded)


def _parse_messages(written: bytes) -> list[ParsedMessage]:
    """Return the messages of a JSON list; those that an earlier request began with are known."""
    known, prefix = _PREFIX_CACHE.find(written) or (b"", ParsedPrefix([], {}))
    return _parse_behind(written, known, prefix)


def _parse_behind(written: bytes, known: bytes, prefix: ParsedPrefix) -> list[ParsedMessage]:
    """Return all messages of a list that begins with known ones, and cache what will be known.

    The next request begins with all of them but the last, which a client may still change, and
    those with breakpoints, which move.
    """
    rest = b"[" + written[len(known) :].lstrip().removeprefix(b",") if known else written
    raw_messages = json_values.split_items(rest)
    parsed, names = list(prefix.messages), dict(prefix.names)
    end, is_stable = len(known), True
    for number, raw in enumerate(raw_messages):
        if is_stable and (number == len(raw_messages) - 1 or _BREAKPOINT in raw):
            is_stable = False
            if end > len(known):
                value = ParsedPrefix(list(parsed), dict(names))
                _PREFIX_CACHE.put(written[:end], value, extends=known)
        if is_stable:
            end = written.index(raw, end) + len(raw)
        parsed.append(_find_message(raw, names))
    return parsed


def _find_message(raw: bytes, names: dict[str, str]) -> ParsedMessage:
    """Return a message from the cache if its calls match, and add its own calls to the names."""
    cached = _MESSAGE_CACHE.get(raw)
    if cached is not None and cached.matches_calls(names):
        names |= cached.calls
        return cached
    parsed = _parse_message(raw, names)
    _MESSAGE_CACHE.put(raw, parsed)
    return parsed


def _parse_message(raw: bytes, names: dict[str, str]) -> ParsedMessage:
    message = json_values.parse_value(raw)
    json_values.require_objects([message])
    entry = parse_entry(message, names)
    calls = {block.call_id: block.tool for block in entry.blocks if block.kind == "call"}
    results = [block for block in entry.blocks if block.kind == "result"]
    return ParsedMessage(
        message,
        entry,
        calls,
        {block.call_id: block.tool for block in results if block.tool},
        frozenset(block.call_id for block in results if not block.tool),
    )


def _cached_fixed(raw: bytes) -> FixedPart:
    part = _FIXED_CACHE.get(raw)
    if part is None:
        part = _parse_fixed(json_values.parse_value(raw))
        _FIXED_CACHE.put(raw, part)
    return part


def _parse_fixed(value: Any) -> FixedPart:
    if not isinstance(value, dict) or _is_billing_block(value):
        return FixedPart(value)
    chars = len(json_values.to_json_text(without_breakpoint(value)))
    return FixedPart(value, as_text(value.get("name")), chars, "cache_control" in value)


def _make_request(
    body: bytes,
    document: Json,
    entries: list[Entry],
    tools: list[FixedPart],
    system: list[FixedPart],
    *,
    is_expanded: bool = False,
) -> Request:
    fixed = [*tools, *system]
    dialogue = Dialogue(
        model=as_text(document.get("model")),
        entries=entry_keys.number_duplicates(entries),
        fixed_chars=sum(one.chars for one in fixed),
        breakpoints=sum(one.has_breakpoint for one in fixed),
    )
    return Request(
        body=body,
        document=document,
        dialogue=dialogue,
        entry_spans=tuple(zip(range(len(entries)), range(1, len(entries) + 1), strict=True)),
        streams=document.get("stream") is True,
        tools=frozenset(one.name for one in tools if isinstance(one.value, dict)),
        is_expanded=is_expanded,
    )


def parse_entry(message: Json, names: dict[str, str]) -> Entry:
    """Return a message as an entry; unknown roles count as system.

    `names` maps call ids to tools, for the results that follow.
    """
    voice = _VOICES.get(as_text(message.get("role")), "system")
    return entry_keys.make_entry(
        voice, [_parse_block(block, names) for block in content_blocks(message.get("content"))]
    )


def content_blocks(content: object) -> list[Json]:
    """Return a content as blocks, whether it is a string or a list."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return json_values.objects_in(content)


def is_sendable(block: Json) -> bool:
    """Return whether the API accepts a block; it rejects blank texts."""
    return block.get("type") != "text" or bool(as_text(block.get("text")).strip())


def without_breakpoint(block: Json) -> Json:
    """Return a block without its cache breakpoint."""
    if "cache_control" not in block:
        return block
    return {name: value for name, value in block.items() if name != "cache_control"}


def _parse_block(block: Json, names: dict[str, str]) -> KeyedBlock:
    sort = as_text(block.get("type"))
    if sort == "text":
        text = as_text(block.get("text"))
        return KeyedBlock(Block("text", len(text), text), entry_keys.strip_reminders(text))
    if sort == "tool_use":
        return _parse_call(block, names)
    if sort == "tool_result":
        return _parse_result(block, names)
    if sort in ("thinking", "redacted_thinking"):
        thought = as_text(block.get("thinking"))
        sealed = as_text(block.get("data")) or as_text(block.get("signature"))
        return KeyedBlock(Block("reasoning", len(thought) or len(sealed) // 2, thought), sealed)
    return _parse_other(block, sort)


def _parse_call(block: Json, names: dict[str, str]) -> KeyedBlock:
    arguments = json_values.to_json_text(block.get("input"))
    name, call_id = as_text(block.get("name")), as_text(block.get("id"))
    names[call_id] = name
    return KeyedBlock(
        Block("call", len(arguments) + len(name), arguments, call_id, name), call_id or arguments
    )


def _parse_result(block: Json, names: dict[str, str]) -> KeyedBlock:
    parts = list(_result_parts(block.get("content")))
    text = "\n".join(part_text for part_text, _ in parts)
    chars = sum(size for _, size in parts)
    call_id = as_text(block.get("tool_use_id"))
    failed = block.get("is_error") is True
    tool = names.get(call_id, "")
    return KeyedBlock(Block("result", chars, text, call_id, tool, failed), call_id or text)


def _result_parts(content: object) -> Iterator[tuple[str, int]]:
    """Yield the texts of a result with their sizes; an image has a placeholder."""
    for block in content_blocks(content):
        text = as_text(block.get("text"))
        if text or block.get("type") == "text":
            yield text, len(text)
        elif block.get("type") in ("image", "document"):
            yield f"[{block['type']}]", IMAGE_CHARS
        else:
            json_text = json_values.to_json_text(without_breakpoint(block))
            yield json_text, len(json_text)


def _parse_other(block: Json, sort: str) -> KeyedBlock:
    json_text = json_values.to_json_text(without_breakpoint(block))
    if sort in ("image", "document"):
        return KeyedBlock(
            Block("other", IMAGE_CHARS, f"[{sort}]", tool=sort), entry_keys.digest(json_text)
        )
    call_id = as_text(block.get("id")) or as_text(block.get("tool_use_id"))
    return KeyedBlock(
        Block("other", len(json_text), json_text, tool=sort), f"{sort}\0{call_id or json_text}"
    )


def _is_billing_block(block: Json) -> bool:
    return as_text(block.get("text")).startswith(_BILLING_PREFIX)


_REFERENCE = "tool_reference"
_SEARCH_RESULT = "tool_search_tool_result"
"""Result of the API's own tool search; it follows its call in the same message."""


class ToolSearches(NamedTuple):
    """Tool searches to repeat: the client's as messages, the API's own as blocks."""

    messages: list[Json]
    blocks: list[Json]


def replay_tool_searches(messages: Sequence[Json], tools: Collection[str]) -> ToolSearches:
    """Return the tool searches in messages that are left out, if their tools still exist.

    A client with deferred tools sends them all, but the API shows the model only those that a
    search result refers to. A call of any other tool may be rejected, so the searches have to stay.
    """
    calls: dict[str, Json] = {}
    references: dict[str, Json] = {}
    pair: list[Json] = []
    own: list[Json] = []
    for block in (
        without_breakpoint(one)
        for message in messages
        for one in content_blocks(message.get("content"))
    ):
        call = calls.get(as_text(block.get("tool_use_id")))
        if block.get("type") in ("tool_use", "server_tool_use"):
            calls[as_text(block.get("id"))] = block
        elif call is None:
            continue
        elif loads_tools(block):
            available = {
                _reference_name(one): one
                for one in _references(block)
                if _reference_name(one) in tools
            }
            new = {name: one for name, one in available.items() if name not in references}
            references |= new
            pair = pair or ([call, block] if new else [])
        elif block.get("type") == _SEARCH_RESULT:
            names = {_reference_name(one) for one in _references(block)}
            own += [call, block] if names and names <= set(tools) else []
    if not pair:
        return ToolSearches([], own)
    call, result = pair
    return ToolSearches(
        [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{**result, "content": list(references.values())}]},
        ],
        own,
    )


def loads_tools(block: Json) -> bool:
    """Return whether a block is a result that loads tools."""
    return block.get("type") == "tool_result" and any(_references(block))


def _references(block: Json) -> Iterator[Json]:
    content = block.get("content")
    items = as_object(content).get("tool_references") if isinstance(content, dict) else content
    return (
        without_breakpoint(one)
        for one in json_values.objects_in(items)
        if one.get("type") == _REFERENCE
    )


def _reference_name(reference: Json) -> str:
    return as_text(reference.get("tool_name"))


_CACHEABLE_TYPES = frozenset("text image document tool_use tool_result".split())
"""Blocks that may carry a cache breakpoint; thinking blocks may not."""


def rewrite_request(request: Request, plan: Plan, texts: PromptAdditions) -> bytes:
    """Return the prompt that a plan describes; the client's own bytes if nothing changes."""
    if prompt_layout.is_passthrough(request, plan, texts):
        return request.body
    notes = prompt_layout.notes_by_entry(request, plan, texts)
    document = dict(request.document)
    if texts.knowledge:
        knowledge = {"type": "text", "text": texts.knowledge}
        document["system"] = [*content_blocks(document.get("system")), knowledge]
    if texts.recall_tool:
        prompt_layout.add_tool(document, tool_definition(texts.recall_tool))
    if not (plan.start or plan.prefix or plan.annotated):
        messages = json_values.require_objects(document["messages"])
        document["messages"] = [
            _with_note(one, notes.get(at, "")) for at, one in enumerate(messages)
        ]
        return json_values.to_json_bytes(document)
    prefix = _prefix_messages(request, plan)
    document["messages"] = [*prefix, *_window_messages(request, plan, texts, notes)]
    places = [
        len(prefix) - 1 if at == PREFIX else len(prefix) + at - plan.start
        for at in layers.rank_breakpoints(request.dialogue.entries, plan)
    ]
    _set_breakpoints(document, places)
    return json_values.to_json_bytes(document)


def tool_definition(tool: Tool) -> Json:
    """Return a tool in the format of this API."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _with_note(message: Json, note: str) -> Json:
    if not note:
        return message
    return {**message, "content": [*content_blocks(message.get("content")), _text_block(note)]}


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def _prefix_messages(request: Request, plan: Plan) -> list[Json]:
    """Return the messages that replace the entries before the window.

    Standing system texts stay; the API accepts them only after a user message.
    """
    log = prompt_layout.history_text(plan)
    if not log:
        return []
    texts_before = [*prompt_layout.standing_instructions(request.dialogue, plan), log]
    system_texts = prompt_layout.standing_system_texts(request.dialogue, plan).values()
    system = {
        "role": "system",
        "content": [_text_block(one) for texts in system_texts for one in texts],
    }
    searches = ToolSearches([], [])
    if _REFERENCE.encode() in request.body:
        left_out = json_values.require_objects(request.document["messages"])[: plan.start]
        searches = replay_tool_searches(left_out, request.tools)
    return [
        {"role": "user", "content": [_text_block(one) for one in texts_before]},
        *([system] if system_texts else []),
        *searches.messages,
        {
            "role": "assistant",
            "content": [*searches.blocks, _text_block(prompt_layout.ACKNOWLEDGEMENT)],
        },
    ]


def _window_messages(
    request: Request, plan: Plan, texts: PromptAdditions, notes: dict[int, str]
) -> list[Json]:
    """Return the messages of the window in normal form, the same in every turn."""
    annotations = prompt_layout.annotations_by_call(request, plan, texts)
    order: dict[str, int] = {}
    window: list[Json] = []
    for at, message in enumerate(json_values.require_objects(request.document["messages"])):
        if at < plan.start:
            continue
        blocks = [
            _normalize_block(one, annotations) for one in content_blocks(message.get("content"))
        ]
        for one in blocks:
            if one.get("type") == "tool_use":
                order[as_text(one.get("id"))] = len(order)
        if note := notes.get(at):
            blocks.append(_text_block(note))
        ordered = prompt_layout.sort_results(
            blocks,
            lambda one: one.get("type") == "tool_result",
            lambda one: order.get(as_text(one.get("tool_use_id")), len(order)),
        )
        window.append({**message, "content": ordered})
    return window


def _normalize_block(block: Json, annotations: dict[str, str]) -> Json:
    block = without_breakpoint(block)
    if block.get("type") != "tool_result":
        return block
    annotation = annotations.get(as_text(block.get("tool_use_id")))
    if annotation is not None and not loads_tools(block):
        return {**block, "content": [_text_block(annotation)]}
    if isinstance(block.get("content"), str):
        return {**block, "content": content_blocks(block["content"])}
    if isinstance(block.get("content"), list):
        return {
            **block,
            "content": [
                without_breakpoint(one) for one in json_values.objects_in(block["content"])
            ],
        }
    return block


def _set_breakpoints(document: Json, places: list[int]) -> None:
    """Set our cache breakpoints on messages, as many as the API allows.

    The client's breakpoints on tools and system stay, as long as one is left for us.
    """
    automatic = 1 if document.get("cache_control") else 0
    fixed = [
        (name, at)
        for name in ("tools", "system")
        for at, one in enumerate(document.get(name) or ())
        if isinstance(one, dict) and "cache_control" in one
    ]
    while len(fixed) + automatic >= MAX_BREAKPOINTS:
        name, at = fixed.pop(0)
        blocks = list(document[name])
        blocks[at] = without_breakpoint(blocks[at])
        document[name] = blocks
    controls = [document[name][at]["cache_control"] for name, at in fixed]
    control = _cache_control(controls, document.get("cache_control"))
    remaining = layers.available_breakpoints(len(fixed) + automatic)
    messages = document["messages"]
    for at in places:
        if remaining and _add_breakpoint(messages, at, control):
            remaining -= 1


def _cache_control(fixed: list[Json], automatic: object) -> Json:
    """Return the cache control of our breakpoints: none may outlive one before it.

    If the API sets one at the end itself, ours must have the same lifetime, or the request is
    rejected.
    """
    controls = [automatic] if automatic else fixed
    if controls and all(json_values.as_object(one).get("ttl") == "1h" for one in controls):
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}


def _add_breakpoint(messages: list[Json], at: int, control: Json) -> bool:
    """Set a breakpoint on the last block that can carry one; return whether there is one."""
    blocks = messages[at]["content"]
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if block.get("type") in _CACHEABLE_TYPES and (
            block.get("type") != "text" or block.get("text")
        ):
            marked = [*blocks[:place], {**block, "cache_control": control}, *blocks[place + 1 :]]
            messages[at] = {**messages[at], "content": marked}
            return True
    return False


def expand_markers(request: Request, find: FindMarker) -> Request:
    """Replace markers by the recall calls and results that they stand for."""
    return _restore_calls(request, find, 0)


def repair_thinking(body: bytes, find: FindMarker) -> bytes:
    """Restore the recall calls of the open turn in a prompt that goes out without memory.

    The API verifies the thinking blocks of a turn that waits for results. In earlier turns the
    markers stay as texts.
    """
    if not markers.may_have_markers(body):
        return body
    request = parse_request(body)
    expanded = _restore_calls(
        request, find, _open_turn_start(json_values.require_objects(request.document["messages"]))
    )
    return json_values.to_json_bytes(expanded.document) if expanded.is_expanded else body


def _restore_calls(request: Request, find: FindMarker, since: int) -> Request:
    """Replace the markers in messages from a position on."""
    if not markers.may_have_markers(request.body):
        return request
    find = markers.find_once(find)
    original = json_values.require_objects(request.document["messages"])
    turn = _open_turn_start(original)
    messages: list[Json] = []
    waiting: list[Json] = []
    for at, message in enumerate(original):
        all_atoms = list(_split_message(message, find)) if at >= since else []
        atoms = _drop_unknown_rounds(all_atoms) if at >= turn else all_atoms
        if len(atoms) < len(all_atoms) or any(isinstance(atom, Marker) for atom in atoms):
            expanded, waiting = _expand_message(message, list(filter(_is_sendable_atom, atoms)))
            messages += expanded
        elif waiting and message.get("role") == "user":
            content = [*waiting, *content_blocks(message.get("content"))]
            messages.append({**message, "content": content})
            waiting = []
        else:
            messages.append(message)
    if waiting:
        messages.append({"role": "user", "content": waiting})
    if messages == original:
        return request
    return parse_document(
        request.body, {**request.document, "messages": messages}, is_expanded=True
    )


def _open_turn_start(messages: list[Json]) -> int:
    """Return the start of the turn that waits for results: after the user's last own message."""
    for at in range(len(messages) - 1, -1, -1):
        blocks = content_blocks(messages[at].get("content"))
        is_result = any(one.get("type") == "tool_result" for one in blocks)
        if messages[at].get("role") == "user" and not is_result:
            return at + 1
    return 0


def _drop_unknown_rounds(atoms: list[Atom]) -> list[Atom]:
    """Drop earlier responses that end in an unknown marker.

    Joined with the last one they would form a message that the model never wrote, and the API
    rejects its thinking blocks.
    """
    thoughts = [at for at, atom in enumerate(atoms) if _is_thinking(atom)]
    last = thoughts[-1] if thoughts else 0
    lost = [at for at in range(last) if _names_marker(atoms[at])]
    return atoms[lost[-1] + 1 :] if lost else atoms


def _is_thinking(atom: Atom) -> bool:
    return isinstance(atom, dict) and as_text(atom.get("type")).endswith("thinking")


def _names_marker(atom: Atom) -> bool:
    return isinstance(atom, dict) and any(
        marker_id for marker_id, _ in markers.split_text(_block_text(atom))
    )


def _block_text(block: Json) -> str:
    return as_text(block.get("text")) if block.get("type") == "text" else ""


def _is_sendable_atom(atom: Atom) -> bool:
    return isinstance(atom, Marker) or is_sendable(atom)


def _split_message(message: Json, find: FindMarker) -> Iterator[Atom]:
    """Yield the blocks of an assistant message, with markers in place of their texts."""
    if message.get("role") != "assistant":
        return
    for block in content_blocks(message.get("content")):
        text = _block_text(block)
        if not markers.may_have_markers(text.encode(errors="replace")):
            yield block
            continue
        yield from _with_last_breakpoint(block, list(_split_block(block, text, find)))


def _split_block(block: Json, text: str, find: FindMarker) -> Iterator[Atom]:
    for piece in markers.split_markers(text, find):
        if isinstance(piece, Marker):
            yield piece
        elif piece.strip():
            yield {**without_breakpoint(block), "text": piece}


def _with_last_breakpoint(block: Json, atoms: list[Atom]) -> list[Atom]:
    """Move the breakpoint of a text to its last piece, since their number is limited."""
    if "cache_control" in block:
        for at in range(len(atoms) - 1, -1, -1):
            atom = atoms[at]
            if isinstance(atom, dict):
                atoms[at] = {**atom, "cache_control": block["cache_control"]}
                break
    return atoms


def _expand_message(message: Json, atoms: list[Atom]) -> tuple[list[Json], list[Json]]:
    """Return the messages that one was joined from, and the results for the next user message."""
    apart = markers.split_rounds(atoms)
    messages: list[Json] = []
    for blocks, answered in apart.closed:
        messages.append({**message, "content": blocks})
        messages.append({"role": "user", "content": [tool_result(one) for one in answered]})
    if apart.rest:
        messages.append({**message, "content": apart.rest})
    return messages, [tool_result(one) for one in apart.waiting]


def tool_result(marker: Marker) -> Json:
    """Return the result of a call as a block."""
    content = [{"type": "text", "text": marker.result or markers.SEARCH_FAILED_TEXT}]
    return {"type": "tool_result", "tool_use_id": marker.call.get("id"), "content": content}
