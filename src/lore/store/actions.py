"""Actions: what was done to fragments by hand, so that the last of it can be undone."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

import orjson

from lore import clock
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection

Verb = Literal["store", "update", "delete", "link", "supersede"]


class Action(NamedTuple):
    """One thing done, with what is needed to undo it."""

    n: int
    at: datetime
    verb: Verb
    fragment_n: int
    before: dict[str, Any]


def record(
    db: Connection, verb: Verb, fragment_n: int, before: dict[str, Any], *, now: datetime
) -> None:
    """Remember an action."""
    db.run(
        "INSERT INTO actions (at, verb, fragment_n, before, undone)"
        " VALUES (:at, :verb, :fragment_n, :before, 0)",
        at=clock.to_us(now),
        verb=verb,
        fragment_n=fragment_n,
        before=orjson.dumps(before).decode(),
    )


def find_last(db: Connection, *, fragment_n: int | None = None) -> Action | None:
    """Return the last action that was not undone, of all or of one fragment."""
    row = db.find(
        "SELECT n, at, verb, fragment_n, before FROM actions WHERE undone = 0"
        " AND (:fragment_n IS NULL OR fragment_n = :fragment_n) ORDER BY n DESC LIMIT 1",
        fragment_n=fragment_n,
    )
    if row is None:
        return None
    n, at, verb, fragment, before = row
    return Action(n, moment(at), verb, fragment, unpack_json(before))


def together_with(db: Connection, action: Action) -> list[Action]:
    """Return the actions of the same moment and verb that were not undone, in order."""
    rows = db.rows(
        "SELECT n, at, verb, fragment_n, before FROM actions WHERE undone = 0 AND at = :at"
        " AND verb = :verb ORDER BY n",
        at=clock.to_us(action.at),
        verb=action.verb,
    )
    return [
        Action(n, moment(at), verb, fragment, unpack_json(b)) for n, at, verb, fragment, b in rows
    ]


def mark_undone(db: Connection, n: int) -> None:
    """Remember that an action was undone."""
    db.run("UPDATE actions SET undone = 1 WHERE n = :n", n=n)
