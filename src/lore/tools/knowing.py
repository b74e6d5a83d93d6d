"""Tools that change knowledge: store, update, delete, link, supersede."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue

from lore.memory import Memory
from lore.records import EdgeKind, FragmentKind, Remembered, Storing, Title
from lore.tools import wording
from lore.tools.names import Id, Named, named
from lore.tools.session import find_session
from lore.tools.tool import Arguments, Caller, Outcome, Result, Tool

Content = Annotated[str, Field(min_length=1, description="One thing worth knowing, in full.")]


class StoreArguments(Arguments):
    """What store takes."""

    content: Content
    summary: str = Field("", max_length=2_000, description="One line; else derived.")
    parent_id: str = Field("", max_length=60, description="Goes below this; else it is placed.")
    depth: int | None = Field(
        None, ge=0, le=100, description="0 keeps it at the top; else it is placed."
    )
    kind: FragmentKind = Field("fact", description="What sort of knowledge it is.")
    payload: dict[str, JsonValue] = Field(
        default_factory=dict, description="Fields that belong to the kind."
    )
    importance: float = Field(0.5, ge=0, le=1, description="How much it matters.")


class StoreResult(Result):
    """Where it went, as what it was known, and what is like it."""

    id: str
    outcome: Storing
    parent: Named | None = None
    resembles: tuple[Named, ...] = ()


def store(memory: Memory, given: StoreArguments, caller: Caller) -> Outcome:
    """Store a fragment in the caller's name where it belongs, unless it is known."""
    kept = memory.remember(
        given.content,
        summary=given.summary,
        kind=given.kind,
        parent_id=given.parent_id,
        depth=given.depth,
        importance=given.importance,
        origin=caller.origin,
        project=caller.project,
        session=find_session(memory, caller),
        payload=given.payload,
    )
    result = StoreResult(
        id=kept.id,
        outcome=kept.outcome,
        parent=named(kept.parent) if kept.parent else None,
        resembles=tuple(named(title) for title in kept.resembles),
    )
    return Outcome(_told(memory, kept), result)


def _told(memory: Memory, kept: Remembered) -> str:
    """Say where it went and what it resembles, each on one line."""
    ids = [kept.id, *(title.id for title in kept.resembles)]
    short = memory.short_ids([*ids, kept.parent.id] if kept.parent else ids)
    id_ = short[kept.id]
    if kept.outcome == "known":
        first = f"Known already, nothing stored: {_name(kept.title, short)}"
    elif kept.outcome == "updated":
        first = f"Known already; it has your words now: {id_}"
    else:
        place = f"below {_name(kept.parent, short)}" if kept.parent else "as a root"
        first = f"Stored {id_} {place}"
    others = [title for title in kept.resembles if not kept.parent or title.id != kept.parent.id]
    if kept.outcome == "stored" and others:
        first += "".join(f"\nresembles {_name(title, short)}" for title in others)
    return first


def _name(title: Title, short: Mapping[str, str]) -> str:
    return f"{short[title.id]} '{wording.title(title.title)}'"


class UpdateArguments(Arguments):
    """What update takes."""

    id: Id
    content: Annotated[str, Field(min_length=1, description="The new words, in full.")]


class UpdateResult(Result):
    """The version that a fragment has now."""

    id: str
    version: int


def update(memory: Memory, given: UpdateArguments, caller: Caller) -> Outcome:
    """Give a fragment new words in the caller's name."""
    version = memory.update(given.id, given.content, origin=caller.origin)
    (title,) = memory.titles([given.id])
    id_ = memory.short_ids([title.id])[title.id]
    told = f"{id_} is at version {version}; 'lore undo {id_}' takes it back."
    return Outcome(told, UpdateResult(id=title.id, version=version))


class DeleteArguments(Arguments):
    """What delete takes."""

    id: Id


class DeleteResult(Result):
    """What is hidden now."""

    id: str


def delete(memory: Memory, given: DeleteArguments, caller: Caller) -> Outcome:
    """Hide a fragment in the caller's name."""
    whole = memory.delete(given.id, origin=caller.origin)
    (title,) = memory.titles([whole])
    short = memory.short_ids([whole])
    told = f"Deleted {_name(title, short)}; 'lore undo {short[whole]}' brings it back."
    return Outcome(told, DeleteResult(id=whole))


class LinkArguments(Arguments):
    """What link takes."""

    source: Id
    target: Id
    kind: EdgeKind = Field("related_to", description="What the source is to the target.")
    weight: float = Field(1.0, ge=0, le=1, description="Strength.")


class LinkResult(Result):
    """The edge that is there now."""

    source: str
    target: str
    kind: EdgeKind


def link(memory: Memory, given: LinkArguments, caller: Caller) -> Outcome:
    """Draw an edge in the caller's name."""
    memory.link(given.source, given.target, given.kind, weight=given.weight, origin=caller.origin)
    source, target = memory.titles([given.source, given.target])
    short = memory.short_ids([source.id, target.id])
    told = f"Linked {short[source.id]} {given.kind} {short[target.id]}."
    return Outcome(told, LinkResult(source=source.id, target=target.id, kind=given.kind))


class SupersedeArguments(Arguments):
    """What supersede takes."""

    old: Id
    new: Id


class SupersedeResult(Result):
    """What is hidden now, and what stands in its place."""

    old: str
    new: str


def supersede(memory: Memory, given: SupersedeArguments, caller: Caller) -> Outcome:
    """Let a newer fragment stand in the place of an older one, in the caller's name."""
    memory.supersede(given.old, given.new, origin=caller.origin)
    old, new = memory.titles([given.old, given.new])
    short = memory.short_ids([old.id, new.id])
    told = f"{_name(old, short)} is superseded by {short[new.id]}; 'lore undo' takes it back."
    return Outcome(told, SupersedeResult(old=old.id, new=new.id))


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="store",
        title="Store knowledge",
        description=(
            "Call this when you learned something that will matter in a later session: a decision"
            " and its reason, a fix, a preference, how something works. One thing at a time, in"
            " words that stand alone. Says where it went and what it resembles; what is known"
            " already is not stored twice."
        ),
        arguments=StoreArguments,
        result=StoreResult,
        run=store,
        reads_only=False,
    ),
    Tool(
        name="update",
        title="Update",
        description=(
            "Call this when a fragment is out of date: gives it new words, the former ones are"
            " kept. What the person said only the person can change."
        ),
        arguments=UpdateArguments,
        result=UpdateResult,
        run=update,
        reads_only=False,
        destructive=True,
        idempotent=False,
    ),
    Tool(
        name="delete",
        title="Delete",
        description=(
            "Call this when a fragment is wrong and nothing takes its place. 'lore undo' brings it"
            " back. What the person said only the person can delete."
        ),
        arguments=DeleteArguments,
        result=DeleteResult,
        run=delete,
        reads_only=False,
        destructive=True,
        idempotent=False,
    ),
)

BY_HAND: tuple[Tool[Any], ...] = (
    Tool(
        name="link",
        title="Link",
        description="Call this to draw an edge between two fragments that belong together.",
        arguments=LinkArguments,
        result=LinkResult,
        run=link,
        reads_only=False,
        profile="full",
    ),
    Tool(
        name="supersede",
        title="Supersede",
        description=(
            "Call this when a newer fragment replaces an older one: the older is kept, and no"
            " longer found. What the person said only the person can replace."
        ),
        arguments=SupersedeArguments,
        result=SupersedeResult,
        run=supersede,
        reads_only=False,
        destructive=True,
        profile="full",
    ),
)
"""Edges by hand, of the full profile."""
