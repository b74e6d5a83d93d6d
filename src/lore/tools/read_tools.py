"""The tool that returns whole items: read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from lore.memory import Memory
from lore.records import Edge, ItemType, Origin, Reading
from lore.tools import output
from lore.tools.output import Id, Named, named
from lore.tools.tool import Arguments, Caller, Outcome, Result, Seen, Tool

MAX_READ = 20
"""At a thousand tokens each, as many as a client accepts."""

_PAYLOAD_TOKENS = 60
"""The token budget of a payload field; the data has all."""

_SOURCES_SHOWN = 5
"""The number of source messages in the text; the data has all."""


class Linked(Result):
    """An edge as seen from one end; `direction` is out of it or into it."""

    kind: str
    direction: Literal["out", "in"]
    id: str
    title: Seen
    weight: float = 1.0
    note: Seen = ""


class ReadArguments(Arguments):
    """What read takes."""

    ids: list[Id] = Field(
        min_length=1, max_length=MAX_READ, description="Ids, or 8 and more characters of each."
    )


class ReadItem(Result):
    """One item whole: what it says, what stands around it, where it comes from."""

    id: str
    type: ItemType
    kind: str
    origin: Origin
    created_at: datetime
    title: Seen
    text: Seen
    tokens: int
    payload: dict[str, Any] | None = None
    depth: int | None = None
    version: int | None = None
    deleted: bool = False
    superseded_by: str = ""
    parent: Named | None = None
    children: tuple[Named, ...] = ()
    edges: tuple[Linked, ...] = ()
    session_id: str = ""
    source_messages: tuple[str, ...] = ()


class ReadResult(Result):
    """Items in the order in which they were asked for."""

    items: list[ReadItem]


def read(memory: Memory, arguments: ReadArguments, _caller: Caller) -> Outcome:
    """Return whole items, as far as a client accepts them; reading reinforces fragments."""
    readings = memory.read(arguments.ids)
    read_items = [_item(memory, reading) for reading in readings]
    short = memory.search.short_ids([id_ for item in read_items for id_ in _ids_of(item)])
    sheet = output.PromptBlock(output.MAX_TOKENS, output.QUOTED)
    for item in read_items:
        if not sheet.add_quote(_describe(item, short), item.text):
            sheet.add(f"{short[item.id]} left out: read fewer at a time.")
            continue
        sheet.add(*_around(item, short))
    return Outcome(sheet.text(), ReadResult(items=read_items))


def _item(memory: Memory, reading: Reading) -> ReadItem:
    fragment = reading.fragment
    others = [_other(edge, reading.id) for edge in reading.edges]
    titles = {title.id: title.title for title in memory.search.titles(others)} if others else {}
    return ReadItem(
        id=reading.id,
        type=reading.type,
        kind=fragment.kind if fragment else _role(reading),
        origin=reading.origin,
        created_at=reading.created_at,
        title=reading.title,
        text=reading.text,
        tokens=reading.tokens,
        payload=dict(fragment.payload) if fragment and fragment.payload else None,
        depth=fragment.depth if fragment else None,
        version=fragment.version if fragment else None,
        deleted=reading.deleted,
        superseded_by=(fragment.superseded_by or "") if fragment else "",
        parent=named(reading.parent) if reading.parent else None,
        children=tuple(named(child) for child in reading.children),
        edges=tuple(_linked(edge, reading.id, titles) for edge in reading.edges),
        session_id=reading.session.id if reading.session else "",
        source_messages=fragment.source_messages if fragment else (),
    )


def _role(reading: Reading) -> str:
    return (reading.message.speaker or reading.message.role) if reading.message else reading.type


def _other(edge: Edge, id_: str) -> str:
    return edge.target if edge.source == id_ else edge.source


def _linked(edge: Edge, id_: str, titles: Mapping[str, str]) -> Linked:
    other = _other(edge, id_)
    return Linked(
        kind=edge.kind,
        direction="out" if edge.source == id_ else "in",
        id=other,
        title=titles.get(other, ""),
        weight=edge.weight,
        note=edge.note,
    )


def _ids_of(item: ReadItem) -> list[str]:
    named_ones = [*([item.parent] if item.parent else []), *item.children]
    return [
        item.id,
        *(one.id for one in named_ones),
        *(edge.id for edge in item.edges),
        *item.source_messages[:_SOURCES_SHOWN],
        *([item.superseded_by] if item.superseded_by else []),
    ]


def _describe(item: ReadItem, short: Mapping[str, str]) -> str:
    """Return one line that describes an item and its state."""
    words = [short[item.id], output.one_line(output.voice(item.kind, item.origin), 10)]
    if item.version is not None:
        words.append(f"depth {item.depth} version {item.version}")
    words += [f"said by {item.origin}", f"{item.created_at:%Y-%m-%d %H:%M}"]
    if item.superseded_by:
        words.append(f"superseded by {short[item.superseded_by]}")
    if item.deleted:
        words.append("deleted")
    return " ".join(words)


def _around(item: ReadItem, short: Mapping[str, str]) -> Iterator[str]:
    """Yield lines about the surroundings of an item."""
    for name, value in (item.payload or {}).items():
        if not _is_contained(value, item.text):
            key = output.one_line(str(name), 10)
            yield f"{output.QUOTE_PREFIX}{key}: {output.one_line(_plain(value), _PAYLOAD_TOKENS)}"
    if item.parent:
        yield f"below {short[item.parent.id]} {output.title(item.parent.title)}"
    for child in item.children:
        yield f"child {short[child.id]} {output.title(child.title)}"
    for edge in item.edges:
        arrow = "->" if edge.direction == "out" else "<-"
        note = f" ({output.one_line(edge.note, 20)})" if edge.note else ""
        yield f"{arrow} {edge.kind} {short[edge.id]} {output.title(edge.title)}{note}"
    if item.source_messages:
        shown = [short[id_] for id_ in item.source_messages[:_SOURCES_SHOWN]]
        more = len(item.source_messages) - len(shown)
        yield f"from {' '.join(shown)}{f' and {more} more' if more else ''}"
    if item.session_id:
        yield f"session {item.session_id}"


def _is_contained(value: object, text: str) -> bool:
    """Return whether the text already contains all of a value."""
    if isinstance(value, Mapping):
        return all(_is_contained(inner, text) for inner in value.values())
    if isinstance(value, list | tuple):
        return all(_is_contained(inner, text) for inner in value)
    return value is None or str(value).rstrip("…") in text


def _plain(value: object) -> str:
    """Return a payload value in words: models read no JSON."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(_plain(inner) for inner in value)
    return str(value)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="read",
        title="Read",
        description=(
            "Call this with ids from search() or recall() to get items whole: text, payload,"
            " parent, children and edges by title, and the messages it comes from. Reading"
            " strengthens a fragment."
        ),
        arguments=ReadArguments,
        result=ReadResult,
        run=read,
    ),
)
