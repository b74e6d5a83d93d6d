"""Actions: what was done to fragments by hand, so that the last of it can be undone."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from lore import clock
from lore.store import befores
from lore.store.befores import NOTHING, Before
from lore.store.packing import moment
from lore.store.sqlite import Connection, Row

_FINAL = 1
"""An action that stands has 0; one that was undone for good has this; those that can be done
again count up from here, in the order in which they were undone."""

_STANDS, _UNDONE = "undone = 0", f"undone > {_FINAL}"

Verb = Literal["store", "update", "delete", "link", "supersede"]


class Action(NamedTuple):
    """One thing done, with what is needed to undo it."""

    n: int
    at: datetime
    verb: Verb
    fragment_n: int
    before: Before


def record(
    db: Connection, verb: Verb, fragment_n: int, before: Before = NOTHING, *, now: datetime
) -> None:
    """Remember an action; what was undone before it can no longer be done again."""
    db.run("UPDATE actions SET undone = :final WHERE undone > :final", final=_FINAL)
    db.run(
        "INSERT INTO actions (at, verb, fragment_n, before, undone)"
        " VALUES (:at, :verb, :fragment_n, :before, 0)",
        at=clock.to_us(now),
        verb=verb,
        fragment_n=fragment_n,
        before=befores.pack(before),
    )


def find_last(db: Connection, *, fragment_n: int | None = None) -> Action | None:
    """Return the last action that was not undone, of all or of one fragment."""
    return _find(db, _STANDS, "n", fragment_n)


def find_undone(db: Connection, *, fragment_n: int | None = None) -> Action | None:
    """Return the action that was undone last and can be done again."""
    return _find(db, _UNDONE, "undone", fragment_n)


def _find(db: Connection, condition: str, order: str, fragment_n: int | None) -> Action | None:
    row = db.find(
        f"SELECT n, at, verb, fragment_n, before FROM actions WHERE {condition}"
        f" AND (:fragment_n IS NULL OR fragment_n = :fragment_n) ORDER BY {order} DESC LIMIT 1",
        fragment_n=fragment_n,
    )
    if row is None:
        return None
    return _action(row)


class Past(NamedTuple):
    """One thing that was done to a fragment by hand, and taken back since or not."""

    at: datetime
    verb: Verb
    undone: bool


def of_fragment(db: Connection, fragment_n: int) -> list[Past]:
    """Return what was done to a fragment, oldest first."""
    rows = db.rows(
        "SELECT at, verb, undone FROM actions WHERE fragment_n = :n ORDER BY n", n=fragment_n
    )
    return [Past(moment(at), verb, bool(undone)) for at, verb, undone in rows]


def together_with(db: Connection, action: Action, *, undone: bool = False) -> list[Action]:
    """Return the actions of the same moment and verb that stand, or were undone, in order."""
    rows = db.rows(
        "SELECT n, at, verb, fragment_n, before FROM actions"
        f" WHERE {_UNDONE if undone else _STANDS} AND at = :at AND verb = :verb ORDER BY n",
        at=clock.to_us(action.at),
        verb=action.verb,
    )
    return [_action(row) for row in rows]


def _action(row: Row) -> Action:
    n, at, verb, fragment_n, before = row
    return Action(n, moment(at), verb, fragment_n, befores.unpack(before))


def mark_undone(db: Connection, n: int, before: Before = NOTHING) -> None:
    """Remember that an action was undone, as the last of all, with what redoing it needs."""
    db.run(
        "UPDATE actions SET before = :before,"
        " undone = (SELECT coalesce(max(undone), :final) + 1 FROM actions"
        " WHERE undone > :final) WHERE n = :n",
        before=befores.pack(before),
        final=_FINAL,
        n=n,
    )


def mark_done(db: Connection, n: int) -> None:
    """Remember that an action stands again."""
    db.run("UPDATE actions SET undone = 0 WHERE n = :n", n=n)
