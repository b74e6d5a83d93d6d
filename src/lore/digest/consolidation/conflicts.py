"""Conflicts: fragments that speak against each other, and how a person settles it."""

from __future__ import annotations

from lore.errors import NotFound
from lore.records import Conflict, Decision
from lore.store import actions, conflicts, edges, fragments, items, judgements, superseding
from lore.store.befores import Before, Link, Successor
from lore.store.db import Connection, Database
from lore.store.judgements import Judgement

_GROUP = "decision"
"""What undo calls the settling of a conflict."""


def open_conflicts(db: Connection, *, project_n: int | None = None) -> list[Conflict]:
    """Return the conflicts that wait for a person, newest first."""
    found = conflicts.standing(db, project_n=project_n)
    said = fragments.by_number(db, sorted({n for pair in found for n in pair}))
    return [Conflict(said[newer], said[older]) for newer, older in found]


def resolve(database: Database, one: str, other: str, decision: Decision) -> None:
    """Settle the conflict between two fragments.

    'keep' lets the first supersede the second, whoever said it: a person decides; 'both'
    lets both hold, as related; 'dismiss' says that there was none. All of it can be undone.
    """
    database.write(lambda db: _resolve(db, database, one, other, decision))


def _resolve(db: Connection, database: Database, one: str, other: str, decision: Decision) -> None:
    now = database.now()
    a, b = (items.resolve(db, id_, type="fragment").n for id_ in (one, other))
    edge = _find(db, a, b)
    if edge is None:
        msg = f"There is no conflict between '{one}' and '{other}'."
        raise NotFound(msg, hint="'lore conflicts' lists those that there are.")
    if decision == "keep":
        before = Before(successor=Successor(a, fragments.get(db, b).superseded_by))
        superseding.supersede(db, b, a, now=now)
        actions.record(db, "supersede", b, before, now=now)
        return
    source, target = edge
    former = Link(target, "contradicts", edges.find(db, source, target, "contradicts"))
    edges.remove(db, source, target, "contradicts")
    actions.record(db, "link", source, Before(link=former, together=_GROUP), now=now)
    if decision == "both" and edges.find(db, source, target, "related_to") is None:
        edges.put(db, source, target, "related_to", now=now)
        drawn = Link(target, "related_to")
        actions.record(db, "link", source, Before(link=drawn, together=_GROUP), now=now)
    versions = {n: fragments.get(db, n).version for n in (a, b)}
    low, high = sorted((a, b))
    judged = Judgement(low, high, "judge", "agrees", versions[low], versions[high])
    judgements.put(db, [judged], now=now)


def _find(db: Connection, a: int, b: int) -> tuple[int, int] | None:
    for source, target in ((a, b), (b, a)):
        if edges.find(db, source, target, "contradicts") is not None:
            return source, target
    return None
