"""Tools that browse: explore, traverse, list_roots and timeline."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from lore.errors import InvalidInput
from lore.memory import Memory
from lore.records import ItemType, Origin, Outline, Title
from lore.records import Outcome as TaskOutcome
from lore.tools import tool_output
from lore.tools.tool import Arguments, Caller, Outcome, Result, Seen, Tool, find_session
from lore.tools.tool_output import Id, Named, Words

OUTLINE_TOKENS = 1_500
"""The token budget of an outline, as of a recall."""

_MORE_TOKENS = 20
"""Reserved for the line that says how much is missing."""


class ExploreArguments(Arguments):
    """What explore takes."""

    query: Words = Field("", description="What the trees should be about; or give id.")
    id: str = Field("", max_length=60, description="The fragment at the top; or give query.")
    max_depth: int = Field(2, ge=0, le=10, description="Levels below the top.")


class Branch(Named):
    """A fragment in an outline; `level` counts from the top of it."""

    level: int


class ExploreResult(Result):
    """Trees as flat outlines, each fragment after its parent."""

    branches: list[Branch]


def explore(memory: Memory, arguments: ExploreArguments, _caller: Caller) -> Outcome:
    """Return the tree below a fragment, or below the best hits, by title."""
    if bool(arguments.query.strip()) == bool(arguments.id.strip()):
        msg = "explore() needs either 'query' or 'id'."
        raise InvalidInput(msg, hint="search() gives ids.")
    outlines = memory.search.explore(arguments.id or arguments.query, max_depth=arguments.max_depth)
    branches = [branch for outline in outlines for branch in _flat(outline)]
    result = ExploreResult(branches=branches)
    if not branches:
        return Outcome("Nothing found.", result)
    short = memory.search.short_ids([branch.id for branch in branches])
    sheet = tool_output.PromptBlock(OUTLINE_TOKENS, tool_output.COLUMNS)
    with sheet.reserve(_MORE_TOKENS):
        shown = _add_lines(
            sheet, [f"{'  ' * one.level}{tool_output.name_line(one, short)}" for one in branches]
        )
    if shown < len(branches):
        sheet.add(f"{len(branches) - shown} more: explore(id=…) shows one branch.")
    return Outcome(sheet.text(), result)


def _add_lines(sheet: tool_output.PromptBlock, lines: list[str]) -> int:
    """Add as many lines as fit, and return their number."""
    return next((place for place, line in enumerate(lines) if not sheet.add(line)), len(lines))


def _flat(outline: Outline, level: int = 0) -> Iterator[Branch]:
    yield Branch(level=level, **Named.model_validate(outline.title).model_dump())
    for below in outline.below:
        yield from _flat(below, level + 1)


class TraverseArguments(Arguments):
    """What traverse takes."""

    id: Id
    direction: Literal["children", "parent", "associations"] = Field(
        "children", description="children: deeper; parent: broader; associations: sideways."
    )


class NamedResult(Result):
    """Fragments by name."""

    fragments: list[Named]


def traverse(memory: Memory, arguments: TraverseArguments, _caller: Caller) -> Outcome:
    """Return the neighbors of a fragment."""
    return _name_list(
        memory,
        memory.search.traverse(arguments.id, arguments.direction),
        f"No {arguments.direction}.",
    )


class ListRootsArguments(Arguments):
    """What list_roots takes."""

    limit: int = Field(20, ge=1, le=100, description="Most roots.")
    query: Words = Field("", description="Only roots that fit this.")


def list_roots(memory: Memory, arguments: ListRootsArguments, _caller: Caller) -> Outcome:
    """Return the roots, strongest first."""
    roots = memory.search.roots(query=arguments.query, limit=arguments.limit)
    return _name_list(
        memory, roots, "Nothing found." if arguments.query else "The memory is empty."
    )


def _name_list(memory: Memory, titles: list[Title], nothing: str) -> Outcome:
    entries = [Named.model_validate(title) for title in titles]
    result = NamedResult(fragments=entries)
    if not entries:
        return Outcome(nothing, result)
    short = memory.search.short_ids([one.id for one in entries])
    return Outcome(
        tool_output.wrap_lines([
            tool_output.COLUMNS,
            *(tool_output.name_line(one, short) for one in entries),
        ]),
        result,
    )


TIMELINE_TOKENS = 1_500
"""The approximate token budget of a timeline; with more entries each gets less."""

_TEXT_TOKENS, _LEAST_TEXT_TOKENS, _LINE_TOKENS = 60, 12, 20
"""The most and the least tokens of an entry's text, and of the rest of its line."""


class TimelineArguments(Arguments):
    """What timeline takes."""

    anchor: str = Field(
        "",
        max_length=100,
        description="Id of a message or fragment, or a time: 2026-05-08, 'last Tuesday', now.",
    )
    before: int = Field(5, ge=0, le=20, description="How many before it.")
    after: int = Field(5, ge=0, le=20, description="How many after it.")


class Happened(Result):
    """What was said or learned, and whether it is what was asked about."""

    id: str
    type: ItemType
    at: datetime
    what: Seen
    origin: Origin
    text: Seen
    session_id: str = ""
    session: Seen = ""
    is_anchor: bool = False


class RecentAction(Result):
    """Something that was done, in about ten words, and how it ended."""

    at: datetime
    action: Seen
    outcome: TaskOutcome
    id: str
    topic: str = ""


class KeyDecision(Result):
    """A decision and its reason."""

    at: datetime
    decision: Seen
    id: str
    rationale: Seen = ""
    topic: str = ""


class TimelineResult(Result):
    """What happened around an anchor, oldest first; or the recent work, newest first."""

    happened: tuple[Happened, ...] = ()
    recent_actions: tuple[RecentAction, ...] = ()
    key_decisions: tuple[KeyDecision, ...] = ()
    current_focus: Seen = ""
    blocked_by: tuple[Seen, ...] = ()
    next_up: tuple[Seen, ...] = ()
    tokens: int = 0


def timeline(memory: Memory, arguments: TimelineArguments, caller: Caller) -> Outcome:
    """Return what happened around a message or a time, one line each, by session.

    Without an anchor it is the recent work of the caller's project.
    """
    if not arguments.anchor.strip():
        return _recent_work(memory, caller)
    entries = memory.search.timeline(
        arguments.anchor, before=arguments.before, after=arguments.after
    )
    result = TimelineResult(happened=tuple(map(Happened.model_validate, entries)))
    if not entries:
        return Outcome("Nothing happened around that time.", result)
    short = memory.search.short_ids([one.id for one in entries])
    width = min(
        _TEXT_TOKENS, max(_LEAST_TEXT_TOKENS, TIMELINE_TOKENS // len(entries) - _LINE_TOKENS)
    )
    sheet = tool_output.PromptBlock(tool_output.MAX_TOKENS, tool_output.QUOTED)
    session = ""
    for one in entries:
        if one.session_id != session:
            session = one.session_id
            sheet.add(f"session {session or 'none'} {tool_output.title(one.session)}".rstrip())
        who = tool_output.one_line(tool_output.voice(one.what, one.origin), 8)
        mark = "*" if one.is_anchor else " "
        text = tool_output.one_line(one.text, width)
        sheet.add(f"{mark}{short[one.id]} {one.at:%Y-%m-%d %H:%M} {who}: {text}")
    return Outcome(sheet.text(), result)


def _recent_work(memory: Memory, caller: Caller) -> Outcome:
    recent = memory.tasks.timeline(
        session=find_session(memory, caller), project=caller.project, counts=caller.may_write
    )
    text = memory.tasks.describe(recent)
    result = TimelineResult.model_validate(recent)
    if not text:
        return Outcome("Nothing was done here yet.", result)
    return Outcome(tool_output.wrap_lines([tool_output.QUOTED, text]), result)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="explore",
        title="Explore a branch",
        description=(
            "Call this to see how knowledge on a subject is arranged: an outline of the tree below"
            " a fragment, or below the best hits for a query."
        ),
        arguments=ExploreArguments,
        result=ExploreResult,
        run=explore,
    ),
    Tool(
        name="traverse",
        title="Go one step",
        description=(
            "Call this to move from a fragment to its children, its parent or what it is"
            " associated with."
        ),
        arguments=TraverseArguments,
        result=NamedResult,
        run=traverse,
    ),
    Tool(
        name="list_roots",
        title="List roots",
        description=(
            "Call this to see what the memory knows about at all: the broadest fragments with how"
            " many children each has."
        ),
        arguments=ListRootsArguments,
        result=NamedResult,
        run=list_roots,
    ),
    Tool(
        name="timeline",
        title="Timeline",
        description=(
            "Call this to see what was done and decided lately and what is open; with an id from"
            " recall() or a time, what was said and learned around it."
        ),
        arguments=TimelineArguments,
        result=TimelineResult,
        run=timeline,
    ),
)
