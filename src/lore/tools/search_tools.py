"""Tools that search: recall and search."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from lore.errors import AmbiguousId, NotFound
from lore.memory import Memory
from lore.memory.search import ask_project_first
from lore.records import (
    Answer,
    Edge,
    FragmentKind,
    Hit,
    ItemType,
    Origin,
    Reading,
    Scope,
    TaskType,
)
from lore.records.kinds import Strength
from lore.text import tokens
from lore.tools import tool_output
from lore.tools.tool import Arguments, Caller, Outcome, Result, Seen, Tool, find_session
from lore.tools.tool_output import MAX_HITS, Id, Named, Query, Question

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
    replaced: str = ""
    replaced_by: str = ""


class ReadResult(Result):
    """Items in the order in which they were asked for."""

    items: list[ReadItem]


def read(memory: Memory, arguments: ReadArguments, caller: Caller) -> Outcome:
    """Return whole items, as far as a client accepts them; reading reinforces fragments."""
    readings = memory.read(arguments.ids, reader=caller.reader)
    read_items = [_item(memory, reading) for reading in readings]
    short = memory.search.short_ids([id_ for item in read_items for id_ in _ids_of(item)])
    sheet = tool_output.PromptBlock(tool_output.MAX_TOKENS, tool_output.QUOTED)
    for item in read_items:
        if not sheet.add_quote(_describe(item, short), item.text):
            sheet.add(f"{short[item.id]} left out: read fewer at a time.")
            continue
        sheet.add(*_around(item, short))
    return Outcome(sheet.text(), ReadResult(items=read_items))


def _item(memory: Memory, reading: Reading) -> ReadItem:
    fragment, message = reading.fragment, reading.message
    role = message.speaker or message.role if message else reading.type
    others = [_other(edge, reading.id) for edge in reading.edges]
    titles = {title.id: title.title for title in memory.search.titles(others)} if others else {}
    return ReadItem(
        id=reading.id,
        type=reading.type,
        kind=fragment.kind if fragment else role,
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
        parent=Named.model_validate(reading.parent) if reading.parent else None,
        children=tuple(map(Named.model_validate, reading.children)),
        edges=tuple(_linked(edge, reading.id, titles) for edge in reading.edges),
        session_id=reading.session.id if reading.session else "",
        source_messages=fragment.source_messages if fragment else (),
        replaced=reading.replaced.label if reading.replaced else "",
        replaced_by=reading.replaced.by_id if reading.replaced else "",
    )


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
        *filter(None, (item.superseded_by, item.replaced_by)),
    ]


def _describe(item: ReadItem, short: Mapping[str, str]) -> str:
    """Return one line that describes an item and its state."""
    words = [short[item.id], tool_output.one_line(tool_output.voice(item.kind, item.origin), 10)]
    if item.version is not None:
        words.append(f"depth {item.depth} version {item.version}")
    words += [f"said by {item.origin}", f"{item.created_at:%Y-%m-%d %H:%M}"]
    if item.superseded_by:
        words.append(f"superseded by {short[item.superseded_by]}")
    if item.replaced_by:
        words.append(f"{item.replaced} by {short[item.replaced_by]}")
    if item.deleted:
        words.append("deleted")
    return " ".join(words)


def _around(item: ReadItem, short: Mapping[str, str]) -> Iterator[str]:
    """Yield lines about the surroundings of an item."""
    for name, value in (item.payload or {}).items():
        if not _is_contained(value, item.text):
            key = tool_output.one_line(str(name), 10)
            text = tool_output.one_line(_plain(value), _PAYLOAD_TOKENS)
            yield f"{tool_output.QUOTE_PREFIX}{key}: {text}"
    if item.parent:
        yield f"below {short[item.parent.id]} {tool_output.title(item.parent.title)}"
    for child in item.children:
        yield f"child {short[child.id]} {tool_output.title(child.title)}"
    for edge in item.edges:
        arrow = "->" if edge.direction == "out" else "<-"
        note = f" ({tool_output.one_line(edge.note, 20)})" if edge.note else ""
        yield f"{arrow} {edge.kind} {short[edge.id]} {tool_output.title(edge.title)}{note}"
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


READ_TOOLS: tuple[Tool[Any], ...] = (
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


_HEADING_TOKENS = 24
"""The token budget of an excerpt's title and location."""

_STANDING_SHARE = 6
"""Standing instructions get at most this share of a recall's budget."""

_QUOTED = f"{tool_output.QUOTED} recall(query=ID) gives one whole."
_ID = re.compile(r"\[?([0-9a-f]{8}-[0-9a-f-]{2,27})\]?")
"""An id, whole or shortened, with or without the brackets that it has in a prompt."""

_COLUMNS = "id score depth kind tokens title < where. read(ids) gives the text."
_NOTHING = "Nothing found."
_EVERYTHING = "scope='all' searches everything."


class RecallArguments(Question):
    """What recall takes."""

    task_type: TaskType | None = Field(None, description="What you are doing.")
    everywhere: bool = Field(
        False,  # noqa: FBT003 - the default
        description="Search all projects at once.",
    )


class Recalled(Result):
    """One excerpt: what was said, by whom, when and where, and why it is here.

    `note` says what replaced it, if it no longer holds.
    """

    id: str
    type: ItemType
    kind: str
    origin: Origin
    created_at: datetime
    text: Seen
    score: float
    why: str
    title: Seen = ""
    breadcrumb: Seen = ""
    session_id: str = ""
    question: Seen = ""
    question_id: str = ""
    note: Seen = ""


class RecallResult(Result):
    """The excerpts that fit, best first, and standing instructions of the person."""

    hits: list[Recalled]
    considered: int
    standing: tuple[Recalled, ...] = ()
    notice: str = ""
    confidence: float = 1.0
    strength: Strength = "likely"


def recall(memory: Memory, arguments: RecallArguments, caller: Caller) -> Outcome:
    """Answer a question with excerpts within the token budget.

    A query of ids returns those items whole, because not every agent that has recall has read.
    """
    ids = _find_ids(arguments.query)
    if ids and (whole := _find_whole(memory, ids, caller)):
        return whole
    answer = _answer(memory, arguments, caller)
    if not answer.hits and not answer.standing:
        return Outcome(_noticed(_NOTHING, answer.notice), _recalled((), (), answer))
    short = memory.search.short_ids([hit.id for hit in (*answer.hits, *answer.standing)])
    budget = memory.settings.recall_budget_tokens
    sheet = tool_output.PromptBlock(budget, *([answer.notice] if answer.notice else []), _QUOTED)
    standing = _fitting_standing(answer, short, budget // _STANDING_SHARE)
    for_standing = tokens.count("\n".join(line for _, line in standing)) + 1 if standing else 0
    hits = _fill(sheet, answer, short, for_standing)
    sheet.add(*(line for _, line in standing))
    return Outcome(sheet.text(), _recalled(hits, tuple(hit for hit, _ in standing), answer))


def _answer(memory: Memory, arguments: RecallArguments, caller: Caller) -> Answer:
    scope = arguments.scope

    def ask(project: str) -> Answer:
        return memory.recall(
            arguments.query,
            scope=scope,
            limit=arguments.limit,
            session=_session(memory, scope, caller),
            project=project,
            task_type=arguments.task_type or "",
            log=not memory.sessions.is_excluded(caller.agent, caller.project),
            reader=caller.reader,
        )

    folder = "" if arguments.everywhere or scope != "all" else caller.project
    return ask_project_first(memory, folder, ask, _project(memory, scope, caller))


def _find_ids(query: str) -> list[str]:
    """Return the ids of a query that consists of ids only, else none."""
    matches = [_ID.fullmatch(word) for word in query.replace(",", " ").split()]
    ids = [one[1] for one in matches if one is not None]
    return ids if len(ids) == len(matches) <= MAX_READ else []


def _find_whole(memory: Memory, ids: list[str], caller: Caller) -> Outcome | None:
    """Return whole items, or None if one is unknown and so was no id."""
    try:
        whole = read(memory, ReadArguments(ids=ids), caller)
    except (NotFound, AmbiguousId):
        return None
    assert isinstance(whole.data, ReadResult)
    shared = {"id", "type", "kind", "origin", "created_at", "text", "title", "session_id"}
    hits = [
        Recalled(**one.model_dump(include=shared), score=1.0, why="asked for by its id")
        for one in whole.data.items
    ]
    return Outcome(whole.text, RecallResult(hits=hits, considered=len(hits)))


def _session(memory: Memory, scope: Scope, caller: Caller) -> str:
    """Return the caller's session if the scope needs it, or if it is searched first.

    Only a long session is: the agent still sees all of a short one.
    """
    if scope != "session":
        is_first = caller.session and memory.sessions.is_long(caller.session)
        return caller.session if is_first else ""
    session = find_session(memory, caller)
    if not session:
        msg = "Nothing is known of your session yet."
        raise NotFound(msg, hint=_EVERYTHING)
    return session


def _project(memory: Memory, scope: Scope, caller: Caller) -> str:
    """Return the id of the caller's project if the scope needs it."""
    if scope != "project":
        return ""
    project = memory.sessions.find_project(caller.project) if caller.project else None
    if project is None:
        msg = "Nothing is known of your project yet."
        raise NotFound(msg, hint=_EVERYTHING)
    return project.id


def _fitting_standing(
    answer: Answer, short: dict[str, str], most_tokens: int
) -> list[tuple[Hit, str]]:
    """Return the standing instructions that fit, nearest first, one line each."""
    fitting: list[tuple[Hit, str]] = []
    for hit in answer.standing:
        line = f"{short[hit.id]} standing: {tool_output.one_line(hit.text, 80)}"
        most_tokens -= tokens.count(line) + 1
        if most_tokens < 0:
            break
        fitting.append((hit, line))
    return fitting


def _fill(
    sheet: tool_output.PromptBlock, answer: Answer, short: dict[str, str], reserved: int
) -> tuple[Hit, ...]:
    """Add hits until the block is full, and return those."""
    shown: list[Hit] = []
    with sheet.reserve(reserved):
        for hit in answer.hits:
            asked = f"(asked: {hit.question})\n" if hit.question else ""
            note = f"({hit.note})\n" if hit.note else ""
            if not sheet.add_quote(_heading(hit, short[hit.id]), note + asked + hit.text):
                break
            shown.append(hit)
    return tuple(shown)


def _heading(hit: Hit, id_: str) -> str:
    """Return id, date, author and location of a hit; omit a title that repeats the text."""
    who = tool_output.voice(hit.kind or hit.role or hit.type, hit.origin)
    is_repeated = " ".join(hit.text.split()).startswith(" ".join(hit.title.split()).rstrip("…"))
    place = " · ".join(part for part in ("" if is_repeated else hit.title, hit.breadcrumb) if part)
    where = f" {tool_output.one_line(place, _HEADING_TOKENS)}" if place else ""
    return f"{id_} {hit.created_at:%Y-%m-%d} {tool_output.one_line(who, 10)}{where}"


def _recalled(hits: tuple[Hit, ...], standing: tuple[Hit, ...], answer: Answer) -> RecallResult:
    return RecallResult(
        hits=[_data(hit) for hit in hits],
        standing=tuple(_data(hit) for hit in standing),
        considered=answer.considered,
        notice=answer.notice,
        confidence=round(answer.confidence, 3),
        strength=answer.strength,
    )


def _data(hit: Hit) -> Recalled:
    kind, score = hit.kind or hit.role, round(hit.score, 4)
    return Recalled.model_validate(replace(hit, kind=kind, score=score))


def _noticed(text: str, notice: str) -> str:
    return f"{notice}\n{text}" if notice else text


class SearchArguments(Arguments):
    """What search takes."""

    query: Query
    parent_id: str = Field("", max_length=60, description="Only below this fragment.")
    depth: int | None = Field(
        None,
        ge=0,
        le=100,
        description="Only this level of the best branches: 0 broad, 1 concepts, 2 facts, 3 detail.",
    )
    limit: int = Field(10, ge=1, le=MAX_HITS, description="Most hits.")
    deep: bool = Field(default=False, description="Follow the graph to what hits are related to.")
    kind: FragmentKind | None = Field(None, description="Only this kind.")
    since: str = Field("", max_length=100, description="Only newer: 2026-05-08, 'last week'.")


class Found(Result):
    """One fragment by name: what a reader sees before deciding to read it."""

    id: str
    title: str
    score: float
    depth: int
    kind: str
    tokens: int
    origin: Origin
    breadcrumb: Seen = ""
    path: tuple[Seen, ...] = ()


class SearchResult(Result):
    """Fragments by name, best first."""

    hits: list[Found]
    notice: str = ""


def search(memory: Memory, arguments: SearchArguments, caller: Caller) -> Outcome:
    """Search fragments and return their names, one line each."""
    hits = memory.search(
        arguments.query,
        parent_id=arguments.parent_id,
        depth=arguments.depth,
        limit=arguments.limit,
        deep=arguments.deep,
        kind=arguments.kind or "",
        since=arguments.since,
        reader=caller.reader,
    )
    data = SearchResult(hits=[_found(hit) for hit in hits], notice=memory.notice_now)
    if not hits:
        shown_titles = f"{_NOTHING} recall() also looks through conversations."
        return Outcome(_noticed(shown_titles, memory.notice_now), data)
    short = memory.search.short_ids([hit.id for hit in hits])
    notice = [data.notice] if data.notice else []
    lines = [_line(hit, short[hit.id]) for hit in hits]
    return Outcome(tool_output.wrap_lines([*notice, _COLUMNS, *lines]), data)


def _line(hit: Hit, id_: str) -> str:
    """Return a hit on one line; a hit of the graph names its path."""
    kind = tool_output.voice(hit.kind, hit.origin)
    where = tool_output.one_line(hit.breadcrumb, tool_output.TRAIL_TOKENS)
    line = f"{id_} {hit.score:.2f} {hit.depth} {kind} {hit.tokens} {tool_output.title(hit.title)}"
    if not where and len(hit.path) > 1:
        step = f"via {hit.path[-2]}: {hit.path[-3]}"
        where = tool_output.one_line(step, tool_output.TRAIL_TOKENS)
    return f"{line} < {where}" if where else line


def _found(hit: Hit) -> Found:
    title, score = tool_output.title(hit.title), round(hit.score, 4)
    return Found.model_validate(replace(hit, title=title, score=score))


TOOLS: tuple[Tool[RecallArguments] | Tool[SearchArguments], ...] = (
    Tool(
        name="recall",
        title="Recall",
        description=(
            "Call this before you start on something that may have been discussed, decided or"
            " solved before. Answers a question from all conversations and knowledge with dated,"
            " attributed excerpts within a token budget."
        ),
        arguments=RecallArguments,
        result=RecallResult,
        run=recall,
    ),
    Tool(
        name="search",
        title="Search knowledge",
        description=(
            "Call this to find knowledge cheaply: ids, titles and what each costs to read, then"
            " read() the few that matter. Narrow with parent_id, depth or kind; deep=true adds what"
            " the graph relates to the hits."
        ),
        arguments=SearchArguments,
        result=SearchResult,
        run=search,
    ),
)
