"""Reading: one item whole, a tree by its titles, one step along an edge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from lore import clock
from lore.errors import NotFound
from lore.records import (
    TRUST,
    Distillation,
    Edge,
    Message,
    Origin,
    Outline,
    Provenance,
    Reading,
    Remembered,
    Storing,
    Title,
)
from lore.relevance import faded, relevance, strength
from lore.store import (
    distillations,
    edges,
    fragments,
    items,
    loading,
    messages,
    retrievals,
    sessions,
)
from lore.store.db import Connection
from lore.store.items import Item
from lore.text import lines, parts, tokens

Direction = Literal["children", "parent", "associations"]


def read(db: Connection, id_: str) -> Reading:
    """Return an item with everything around it."""
    item = items.resolve(db, id_)
    if item.type == "fragment":
        return _read_fragment(db, item)
    session = sessions.get(db, item.session_n) if item.session_n else None
    if item.type == "message":
        message = messages.get(db, item.n)
        return _reading(
            item,
            parts.readable(message.parts),
            session.title if session else "",
            message.origin,
            message=message,
            session=session,
            created_at=message.created_at,
        )
    distillation = distillations.by_number(db, [item.n])[item.n]
    return _reading(
        item,
        distillation.text,
        session.title if session else "",
        "assistant",
        distillation=distillation,
        session=session,
        created_at=distillation.created_at,
    )


def _reading(
    item: Item, text: str, title: str, origin: Origin, *, created_at: datetime, **rest: object
) -> Reading:
    return Reading(
        id=item.id,
        type=item.type,
        text=text,
        title=title or lines.summary(text),
        created_at=created_at,
        tokens=item.tokens,
        origin=origin,
        **rest,  # type: ignore[arg-type]  # the optional fields, by name
    )


def _read_fragment(db: Connection, item: Item) -> Reading:
    fragment = fragments.get(db, item.n)
    parent_n = edges.find_parent(db, item.n)
    return _reading(
        item,
        fragment.content,
        fragment.summary,
        fragment.origin,
        created_at=fragment.created_at,
        fragment=fragment,
        session=sessions.get(db, item.session_n) if item.session_n else None,
        parent=titles(db, [parent_n])[0] if parent_n is not None else None,
        children=tuple(titles(db, edges.children(db, item.n))),
        edges=tuple(_linked(db, item.n)),
        deleted=fragments.is_deleted(db, item.n),
    )


def titles(db: Connection, ns: Sequence[int]) -> list[Title]:
    """Return fragments by title, in the order of their numbers as given."""
    found = fragments.by_number(db, ns)
    deleted = fragments.deleted_among(db, ns)
    return [
        Title(
            id=found[n].id,
            title=found[n].summary,
            kind=found[n].kind,
            depth=found[n].depth,
            tokens=tokens.count(found[n].content),
            children=len(edges.children(db, n)),
            deleted=n in deleted,
        )
        for n in ns
        if n in found
    ]


def remembered(db: Connection, id_: str, outcome: Storing, resembles: Sequence[str]) -> Remembered:
    """Return what became of something that was to be remembered, by titles."""
    n = items.resolve(db, id_, type="fragment").n
    parent = edges.find_parent(db, n)
    return Remembered(
        id_,
        outcome,
        titles(db, [n])[0],
        titles(db, [parent])[0] if parent is not None else None,
        tuple(titles(db, loading.numbers_of(db, resembles))),
    )


def explore(db: Connection, id_: str, *, max_depth: int) -> Outline:
    """Return the tree below a fragment by title."""
    return _outline(db, items.resolve(db, id_, type="fragment").n, max_depth)


def _outline(db: Connection, n: int, levels: int) -> Outline:
    below = edges.children(db, n) if levels > 0 else []
    return Outline(titles(db, [n])[0], tuple(_outline(db, child, levels - 1) for child in below))


def traverse(db: Connection, id_: str, direction: Direction) -> list[Title]:
    """Return what lies one step from a fragment, without what was deleted."""
    n = items.resolve(db, id_, type="fragment").n
    if direction == "children":
        return titles(db, edges.children(db, n))
    if direction == "parent":
        parent = edges.find_parent(db, n)
        if parent is None:
            msg = "This fragment is a root: it has no parent."
            raise NotFound(msg)
        (above,) = titles(db, [parent])
        if above.deleted:
            msg = "The parent of this fragment was deleted."
            raise NotFound(msg, hint=f"'lore undo {above.id}' brings it back.")
        return [above]
    others = {_other_end(db, edge, n) for edge in _linked(db, n)}
    return titles(db, sorted(others))


def _linked(db: Connection, n: int) -> list[Edge]:
    """Return the edges at a fragment that lead to others which are not deleted."""
    found = [e for e in edges.of_fragment(db, n) if e.kind != "hierarchical"]
    others = [_other_end(db, edge, n) for edge in found]
    deleted = fragments.deleted_among(db, others)
    return [edge for edge, other in zip(found, others, strict=True) if other not in deleted]


def _other_end(db: Connection, edge: Edge, n: int) -> int:
    ends = (items.resolve(db, edge.source).n, items.resolve(db, edge.target).n)
    return ends[1] if ends[0] == n else ends[0]


def roots(db: Connection, *, project_n: int | None, limit: int) -> list[Title]:
    """Return the roots, strongest first."""
    return titles(db, [n for n, _ in fragments.roots(db, project_n=project_n, limit=limit)])


_ALLOWED = {
    3: "trust 3: put into prompts unasked, and only a person can change or replace it",
    2: "trust 2: put into prompts unasked; a person can change or replace it",
    1: "trust 1: found by asking only, never put into a prompt unasked",
    0: "trust 0: found by asking only, and replaces nothing that has more trust",
}
"""What each trust allows, in the words of 'lore why'."""


def _covered(db: Connection, distillation: Distillation) -> tuple[Message, ...]:
    """Return the messages that a distillation condenses."""
    session_n = items.resolve(db, distillation.id).session_n
    ends = [distillation.from_message, distillation.to_message]
    found = messages.by_number(db, loading.numbers_of(db, ends))
    if session_n is None or not found:
        return ()
    first = min(message.ordinal for message in found.values())
    last = max(message.ordinal for message in found.values())
    return tuple(messages.of_session(db, session_n, first=first, limit=last - first + 1))


def why(db: Connection, id_: str, *, now: datetime) -> Provenance:
    """Return where an item comes from and the numbers behind it."""
    reading = read(db, id_)
    n = items.resolve(db, reading.id).n
    sources: tuple[Message, ...] = ()
    numbers: dict[str, float] = {}
    superseded_by: str | None = None
    supersedes: tuple[str, ...] = ()
    version_count = 0
    if reading.fragment:
        fragment = reading.fragment
        source_ns = loading.numbers_of(db, fragment.source_messages)
        sources = tuple(messages.by_number(db, source_ns).values())
        superseded_by = fragment.superseded_by
        supersedes = tuple(
            e.target for e in reading.edges if e.kind == "supersedes" and e.source == fragment.id
        )
        version_count = len(fragments.versions(db, n))
        days = max(0.0, (now - fragment.last_reinforced).total_seconds() / 86_400)
        boost, boosted_at, doubt = fragments.boost_and_doubt(db, n)
        boosted_days = max(0.0, (clock.to_us(now) - boosted_at) / 8.64e10)
        numbers = {
            "importance": fragment.importance,
            "confidence": fragment.confidence,
            "trust": fragment.trust,
            "readings": fragment.access_count,
            "strength": strength(fragment.access_count),
            "decay_per_day": fragment.decay_rate,
            "days_since_reinforced": days,
            "boost": faded(boost, fragment.importance, boosted_days),
            "doubt": doubt,
            "relevance": relevance(
                fragment.importance, fragment.access_count, days, boost, boosted_days
            ),
        }
    elif reading.message:
        sources = (reading.message,)
    elif reading.distillation:
        sources = _covered(db, reading.distillation)
    origins = {m.id: parts.lowest_origin(m.parts, m.origin) for m in sources}
    lowest = min([reading.origin, *origins.values()], key=TRUST.__getitem__)
    trust = reading.fragment.trust if reading.fragment else TRUST[lowest]
    recalled = sum(reading.id in entry.hits for entry in retrievals.newest(db, limit=10_000))
    return Provenance(
        reading=reading,
        sources=sources,
        origins=origins,
        versions=version_count,
        numbers=numbers,
        superseded_by=superseded_by,
        supersedes=supersedes,
        times_recalled=recalled,
        allowed=_ALLOWED[trust],
    )
