"""Tools that walk the trees of knowledge: explore, traverse, list_roots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from lore.errors import InvalidInput
from lore.memory import Memory
from lore.records import Outline, Title
from lore.tools import names, wording
from lore.tools.names import Id, Named, named
from lore.tools.question import Words
from lore.tools.tool import Arguments, Caller, Outcome, Result, Tool

OUTLINE_TOKENS = 1_500
"""Of one outline, as of a recall."""

_MORE_TOKENS = 20
"""Kept for the line that says how much is missing."""


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


def explore(memory: Memory, given: ExploreArguments, _caller: Caller) -> Outcome:
    """Show the tree below a fragment, or below the best hits, by title."""
    if bool(given.query.strip()) == bool(given.id.strip()):
        msg = "explore() needs either 'query' or 'id'."
        raise InvalidInput(msg, hint="search() gives ids.")
    outlines = memory.explore(given.id or given.query, max_depth=given.max_depth)
    branches = [branch for outline in outlines for branch in _flat(outline)]
    result = ExploreResult(branches=branches)
    if not branches:
        return Outcome("Nothing found.", result)
    short = memory.short_ids([branch.id for branch in branches])
    sheet = wording.Sheet(OUTLINE_TOKENS, names.COLUMNS)
    with sheet.keeping(_MORE_TOKENS):
        shown = _shown(sheet, [f"{'  ' * one.level}{names.line(one, short)}" for one in branches])
    if shown < len(branches):
        sheet.add(f"{len(branches) - shown} more: explore(id=…) shows one branch.")
    return Outcome(sheet.text(), result)


def _shown(sheet: wording.Sheet, lines: list[str]) -> int:
    """Put as many lines on a sheet as fit, and count them."""
    return next((place for place, line in enumerate(lines) if not sheet.add(line)), len(lines))


def _flat(outline: Outline, level: int = 0) -> Iterator[Branch]:
    yield Branch(level=level, **named(outline.title).model_dump())
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


def traverse(memory: Memory, given: TraverseArguments, _caller: Caller) -> Outcome:
    """Go one step from a fragment."""
    return _listed(memory, memory.traverse(given.id, given.direction), f"No {given.direction}.")


class ListRootsArguments(Arguments):
    """What list_roots takes."""

    limit: int = Field(20, ge=1, le=100, description="Most roots.")
    query: Words = Field("", description="Only roots that fit this.")


def list_roots(memory: Memory, given: ListRootsArguments, _caller: Caller) -> Outcome:
    """Name the roots, strongest first."""
    roots = memory.roots(query=given.query, limit=given.limit)
    return _listed(memory, roots, "Nothing found." if given.query else "The memory is empty.")


def _listed(memory: Memory, titles: list[Title], nothing: str) -> Outcome:
    found = [named(title) for title in titles]
    result = NamedResult(fragments=found)
    if not found:
        return Outcome(nothing, result)
    short = memory.short_ids([one.id for one in found])
    return Outcome(
        wording.fenced([names.COLUMNS, *(names.line(one, short) for one in found)]), result
    )


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
)
