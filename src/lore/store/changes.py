"""The change log and the tombstones: what another machine must be told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from lore import clock
from lore.records import Change
from lore.store.items import type_name
from lore.store.sqlite import Connection

Action = Literal["add", "change", "delete", "forget"]


def log(db: Connection, action: Action, ns: Sequence[int], at: datetime) -> None:
    """Write down that items were added or changed."""
    us = clock.to_us(at)
    db.run_many(
        "INSERT INTO changes (at, action, item_n) VALUES (:at, :action, :n)",
        ({"at": us, "action": action, "n": n} for n in ns),
    )


def bury(db: Connection, ids: Sequence[str], at: datetime) -> None:
    """Leave a tombstone for each id, so that a later sync does not bring it back."""
    us = clock.to_us(at)
    for id_ in ids:
        seq = db.value(
            "INSERT INTO changes (at, action, item_n) VALUES (:at, 'forget', 0) RETURNING seq",
            at=us,
        )
        db.run(
            "INSERT INTO tombstones (id, at, seq) VALUES (:id, :at, :seq)"
            " ON CONFLICT (id) DO NOTHING",
            id=id_,
            at=us,
            seq=seq,
        )


def buried(db: Connection, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that have been forgotten."""
    return {
        id_ for id_ in ids if db.find("SELECT 1 FROM tombstones WHERE id = :id", id=id_)
    }


def since(db: Connection, seq: int, *, limit: int = 1_000) -> list[Change]:
    """Return the changes after a number, oldest first."""
    rows = db.rows(
        "SELECT c.seq, c.at, c.action, coalesce(i.type, 0), coalesce(i.id, t.id)"
        " FROM changes c LEFT JOIN items i ON i.n = c.item_n"
        " LEFT JOIN tombstones t ON t.seq = c.seq"
        " WHERE c.seq > :seq AND coalesce(i.id, t.id) IS NOT NULL ORDER BY c.seq LIMIT :limit",
        seq=seq,
        limit=limit,
    )
    return [
        Change(n, clock.from_us(at), action, type_name(type_) if type_ else "tombstone", id_)
        for n, at, action, type_, id_ in rows
    ]
