"""Reading a request of Anthropic's Messages: its entries, known again in any form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lore.gateway.apis import keys, shapes
from lore.gateway.apis.keys import Piece
from lore.gateway.apis.remembered import MOST_BYTES, Remembered
from lore.gateway.apis.shapes import Json, text
from lore.gateway.apis.wire import Request
from lore.records.dialogues import Block, Dialogue, Entry, Voice

PICTURE_CHARS = 6_000
"""About 1,500 tokens, what Anthropic's documentation says that a large image takes."""

_BILLING = "x-anthropic-billing-header:"
"""Begins a block of Claude Code's system prompt that differs between requests of a session."""

_VOICES: dict[str, Voice] = {"user": "user", "assistant": "assistant", "system": "system"}


class Fixed(NamedTuple):
    """A tool or a block of the system prompt; what differs between requests has no length."""

    told: Any
    name: str = ""
    chars: int = 0
    has_breakpoint: bool = False


_MESSAGES: Remembered[tuple[Json, Entry]] = Remembered()
_FIXED: Remembered[Fixed] = Remembered(MOST_BYTES // 4)


def read(body: bytes, path: str = "") -> Request:  # noqa: ARG001 (Gemini's says more)
    """Read a request to a path, or raise `InvalidInput` if it has another shape.

    What the last requests said is not read again.
    """
    fields = shapes.split(body)
    names: dict[str, str] = {}
    known = [_message(one, names) for one in shapes.split_list(fields.get("messages", b""))]
    told: Json = {"messages": [message for message, _ in known]}
    fixed: dict[str, list[Fixed]] = {}
    for name in ("tools", "system"):
        if fields.get(name, b"").startswith(b"["):
            fixed[name] = [_known_fixed(one) for one in shapes.split_list(fields[name])]
            told[name] = [one.told for one in fixed[name]]
    document = {
        name: told[name] if name in told else shapes.value(raw) for name, raw in fields.items()
    }
    tools = fixed.get("tools", [])
    system = fixed.get("system") or [_fix(one) for one in blocks_of(document.get("system"))]
    return _request(body, document, [entry for _, entry in known], tools, system)


def read_document(body: bytes, document: Json, *, is_expanded: bool = False) -> Request:
    """Read a request out of its document."""
    names: dict[str, str] = {}
    entries = [entry_of(one, names) for one in shapes.tables(document.get("messages"))]
    tools = [_fix(one) for one in shapes.found(document.get("tools"))]
    system = [_fix(one) for one in blocks_of(document.get("system"))]
    return _request(body, document, entries, tools, system, is_expanded=is_expanded)


def _message(raw: bytes, names: dict[str, str]) -> tuple[Json, Entry]:
    """Return a message and its entry; to a result belongs the tool that its call names."""
    found = _MESSAGES.find(raw)
    if found is not None and _fits(found[1], names):
        return found
    message = shapes.value(raw)
    shapes.tables([message])
    made = message, entry_of(message, names)
    _MESSAGES.put(raw, made)
    return made


def _fits(entry: Entry, names: dict[str, str]) -> bool:
    """Tell whether an entry reads the same behind these calls, and add its own to them."""
    for block in entry.blocks:
        if block.kind == "call":
            names[block.call_id] = block.tool
        elif block.kind == "result" and block.tool != names.get(block.call_id, ""):
            return False
    return True


def _known_fixed(raw: bytes) -> Fixed:
    found = _FIXED.find(raw)
    if found is None:
        found = _fix(shapes.value(raw))
        _FIXED.put(raw, found)
    return found


def _fix(told: Any) -> Fixed:
    if not isinstance(told, dict) or _is_billing(told):
        return Fixed(told)
    chars = len(shapes.dumped(bare(told)))
    return Fixed(told, text(told.get("name")), chars, "cache_control" in told)


def _request(
    body: bytes,
    document: Json,
    entries: list[Entry],
    tools: list[Fixed],
    system: list[Fixed],
    *,
    is_expanded: bool = False,
) -> Request:
    fixed = [*tools, *system]
    dialogue = Dialogue(
        model=text(document.get("model")),
        entries=keys.numbered(entries),
        fixed_chars=sum(one.chars for one in fixed),
        breakpoints=sum(one.has_breakpoint for one in fixed),
    )
    return Request(
        body=body,
        document=document,
        dialogue=dialogue,
        places=tuple((at, at + 1) for at in range(len(entries))),
        streams=document.get("stream") is True,
        tools=frozenset(one.name for one in tools if isinstance(one.told, dict)),
        is_expanded=is_expanded,
    )


def entry_of(message: Json, names: dict[str, str]) -> Entry:
    """Return a message as an entry; a role that nobody knows speaks for the program.

    `names` holds the tools of calls for the results that follow.
    """
    voice = _VOICES.get(text(message.get("role")), "system")
    return keys.entry(voice, [_piece(block, names) for block in blocks_of(message.get("content"))])


def blocks_of(content: object) -> list[Json]:
    """Return a content as blocks, whichever form the client chose."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return shapes.found(content)


def is_said(block: Json) -> bool:
    """Tell whether a block may stand in a request: a text of blanks alone is refused."""
    return block.get("type") != "text" or bool(text(block.get("text")).strip())


def bare(block: Json) -> Json:
    """Return a block without its breakpoint."""
    if "cache_control" not in block:
        return block
    return {name: value for name, value in block.items() if name != "cache_control"}


def _piece(block: Json, names: dict[str, str]) -> Piece:
    """Return a block of the wire with what an entry is known by because of it."""
    sort = text(block.get("type"))
    if sort == "text":
        said = text(block.get("text"))
        return Piece(Block("text", len(said), said), keys.without_reminders(said))
    if sort == "tool_use":
        return _call(block, names)
    if sort == "tool_result":
        return _result(block, names)
    if sort in ("thinking", "redacted_thinking"):
        thought = text(block.get("thinking"))
        sealed = text(block.get("data")) or text(block.get("signature"))
        return Piece(Block("reasoning", len(thought) or len(sealed) // 2, thought), sealed)
    return _other(block, sort)


def _call(block: Json, names: dict[str, str]) -> Piece:
    given = shapes.dumped(block.get("input"))
    name, call_id = text(block.get("name")), text(block.get("id"))
    names[call_id] = name
    return Piece(Block("call", len(given) + len(name), given, call_id, name), call_id or given)


def _result(block: Json, names: dict[str, str]) -> Piece:
    parts = list(_parts(block.get("content")))
    said = "\n".join(told for told, _ in parts)
    chars = sum(size for _, size in parts)
    call_id = text(block.get("tool_use_id"))
    failed = block.get("is_error") is True
    tool = names.get(call_id, "")
    return Piece(Block("result", chars, said, call_id, tool, failed), call_id or said)


def _parts(content: object) -> Iterator[tuple[str, int]]:
    """Yield the texts of a result, each with its size; a picture has a size alone."""
    for block in blocks_of(content):
        said = text(block.get("text"))
        if said or block.get("type") == "text":
            yield said, len(said)
        elif block.get("type") in ("image", "document"):
            yield f"[{block['type']}]", PICTURE_CHARS
        else:
            told = shapes.dumped(bare(block))
            yield told, len(told)


def _other(block: Json, sort: str) -> Piece:
    told = shapes.dumped(bare(block))
    if sort in ("image", "document"):
        return Piece(Block("other", PICTURE_CHARS, f"[{sort}]", tool=sort), keys.digest(told))
    call_id = text(block.get("id")) or text(block.get("tool_use_id"))
    return Piece(Block("other", len(told), told, tool=sort), f"{sort}\0{call_id or told}")


def _is_billing(block: Json) -> bool:
    return text(block.get("text")).startswith(_BILLING)
