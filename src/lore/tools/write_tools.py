"""Tools that change knowledge: store, update, delete, link, supersede."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue

from lore.memory import Memory
from lore.records import EdgeKind, FragmentKind, RememberResult, Storing, Title
from lore.tools import tool_output
from lore.tools.tool import (
    Arguments,
    Caller,
    Outcome,
    Result,
    Tool,
    find_session,
    require_stored,
)
from lore.tools.tool_output import Id, Named

Content = Annotated[str, Field(min_length=1, description="One thing worth knowing, in full.")]


class StoreArguments(Arguments):
    """What store takes."""

    content: Content
    summary: str = Field("", max_length=2_000, description="One line; else derived.")
    parent_id: str = Field("", max_length=60, description="Goes below this.")
    depth: int | None = Field(None, ge=0, le=100, description="0 keeps it at the top.")
    kind: FragmentKind = Field("fact", description="Sort of knowledge.")
    payload: dict[str, JsonValue] = Field(
        default_factory=dict, description="Fields that belong to the kind."
    )
    importance: float = Field(0.5, ge=0, le=1, description="How much it matters.")
    corrects: str = Field("", max_length=2_000, description="What it replaces: id or statement.")


class StoreResult(Result):
    """Where it went, as what it was known, and what is like it."""

    id: str
    outcome: Storing
    parent: Named | None = None
    resembles: tuple[Named, ...] = ()
    corrected: Named | None = None
    contradicts: Named | None = None


def store(memory: Memory, arguments: StoreArguments, caller: Caller) -> Outcome:
    """Store a fragment in the caller's name, unless it is a duplicate."""
    require_stored(memory, caller)
    stored = memory.remember(
        arguments.content,
        summary=arguments.summary,
        kind=arguments.kind,
        parent_id=arguments.parent_id,
        depth=arguments.depth,
        importance=arguments.importance,
        origin=caller.origin,
        project=caller.project,
        session=find_session(memory, caller),
        payload=arguments.payload,
        corrects=arguments.corrects,
    )
    result = StoreResult(
        id=stored.id,
        outcome=stored.outcome,
        parent=Named.model_validate(stored.parent) if stored.parent else None,
        resembles=tuple(map(Named.model_validate, stored.resembles)),
        corrected=Named.model_validate(stored.corrected) if stored.corrected else None,
        contradicts=Named.model_validate(stored.contradicts) if stored.contradicts else None,
    )
    text = _outcome_text(memory, stored)
    if arguments.corrects:
        text += f"\n{_correction_text(memory, stored)}"
    return Outcome(text, result)


def _correction_text(memory: Memory, result: RememberResult) -> str:
    """Return text that says what a fragment replaces, or why it replaces nothing."""
    older = result.corrected or result.contradicts
    if older is None:
        return "Nothing else that is known matches 'corrects'."
    name = _name(older, memory.search.short_ids([older.id]))
    if result.corrected:
        return f"It supersedes {name}; 'lore undo' takes it back."
    return f"Only the person can replace {name}: 'lore conflicts' shows both to them."


def _outcome_text(memory: Memory, result: RememberResult) -> str:
    """Return text that says where a fragment went and what it resembles."""
    ids = [result.id, *(title.id for title in result.resembles)]
    short = memory.search.short_ids([*ids, result.parent.id] if result.parent else ids)
    id_ = short[result.id]
    if result.outcome == "known":
        first = f"Known already, nothing stored: {_name(result.title, short)}"
    elif result.outcome == "updated":
        first = f"Known already; it has your words now: {id_}"
    else:
        place = f"below {_name(result.parent, short)}" if result.parent else "as a root"
        first = f"Stored {id_} {place}"
    others = [
        title for title in result.resembles if not result.parent or title.id != result.parent.id
    ]
    if result.outcome == "stored" and others:
        first += "".join(f"\nresembles {_name(title, short)}" for title in others)
    return first


def _name(title: Title, short: Mapping[str, str]) -> str:
    return f"{short[title.id]} '{tool_output.title(title.title)}'"


class UpdateArguments(Arguments):
    """What update takes."""

    id: Id
    content: Annotated[str, Field(min_length=1, description="The new words, in full.")]


class UpdateResult(Result):
    """The version that a fragment has now."""

    id: str
    version: int


def update(memory: Memory, arguments: UpdateArguments, caller: Caller) -> Outcome:
    """Replace the text of a fragment in the caller's name."""
    version = memory.knowledge.update(arguments.id, arguments.content, origin=caller.origin)
    (title,) = memory.search.titles([arguments.id])
    id_ = memory.search.short_ids([title.id])[title.id]
    text = f"{id_} is at version {version}; 'lore undo {id_}' takes it back."
    return Outcome(text, UpdateResult(id=title.id, version=version))


class DeleteArguments(Arguments):
    """What delete takes."""

    id: Id


class DeleteResult(Result):
    """What is hidden now."""

    id: str


def delete(memory: Memory, arguments: DeleteArguments, caller: Caller) -> Outcome:
    """Hide a fragment in the caller's name."""
    whole = memory.knowledge.delete(arguments.id, origin=caller.origin)
    (title,) = memory.search.titles([whole])
    short = memory.search.short_ids([whole])
    text = f"Deleted {_name(title, short)}; 'lore undo {short[whole]}' brings it back."
    return Outcome(text, DeleteResult(id=whole))


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


def link(memory: Memory, arguments: LinkArguments, caller: Caller) -> Outcome:
    """Add an edge in the caller's name."""
    memory.knowledge.link(
        arguments.source,
        arguments.target,
        arguments.kind,
        weight=arguments.weight,
        origin=caller.origin,
    )
    source, target = memory.search.titles([arguments.source, arguments.target])
    short = memory.search.short_ids([source.id, target.id])
    text = f"Linked {short[source.id]} {arguments.kind} {short[target.id]}."
    return Outcome(text, LinkResult(source=source.id, target=target.id, kind=arguments.kind))


class SupersedeArguments(Arguments):
    """What supersede takes."""

    old: Id
    new: Id


class SupersedeResult(Result):
    """What is hidden now, and what stands in its place."""

    old: str
    new: str


def supersede(memory: Memory, arguments: SupersedeArguments, caller: Caller) -> Outcome:
    """Supersede an older fragment by a newer one in the caller's name."""
    memory.knowledge.supersede(arguments.old, arguments.new, origin=caller.origin)
    old, new = memory.search.titles([arguments.old, arguments.new])
    short = memory.search.short_ids([old.id, new.id])
    text = f"{_name(old, short)} is superseded by {short[new.id]}; 'lore undo' takes it back."
    return Outcome(text, SupersedeResult(old=old.id, new=new.id))


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="store",
        title="Store knowledge",
        description=(
            "Call this when you learned something that will matter in a later session: a decision"
            " and its reason, a fix, a preference, how something works. One thing at a time, in"
            " words that stand alone. If it replaces something, name that in 'corrects'. Says"
            " where it went and what it resembles; what is known already is not stored twice."
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

MANUAL_TOOLS: tuple[Tool[Any], ...] = (
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
"""Tools for edges, in the full profile only."""
