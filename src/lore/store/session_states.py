"""Session states: what a session carries from turn to turn, as named JSON values."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import orjson

from lore import clock
from lore.store.packing import unpack_json
from lore.store.sqlite import Connection

Name = Literal[
    "layer_floor", "calibration", "working", "other_project", "distilled", "digested",
]  # fmt: skip


def put(db: Connection, session_n: int, name: Name, value: Any, *, now: datetime) -> None:
    """Keep a value of a session in the place of the former one."""
    db.run(
        "INSERT INTO session_states (session_n, name, value, updated_at)"
        " VALUES (:session_n, :name, :value, :at)"
        " ON CONFLICT (session_n, name) DO UPDATE SET value = excluded.value,"
        " updated_at = excluded.updated_at",
        session_n=session_n,
        name=name,
        value=orjson.dumps(value).decode(),
        at=clock.to_us(now),
    )


def sessions_with(db: Connection, name: Name) -> list[str]:
    """Return the ids of the sessions that have a value of this name."""
    rows = db.rows(
        "SELECT s.id FROM session_states t JOIN sessions s ON s.n = t.session_n"
        " WHERE t.name = :name ORDER BY s.id",
        name=name,
    )
    return [row[0] for row in rows]


def find(db: Connection, session_n: int, name: Name) -> Any:
    """Return a value of a session, or None if it has none."""
    found = db.value(
        "SELECT value FROM session_states WHERE session_n = :session_n AND name = :name",
        session_n=session_n,
        name=name,
    )
    return None if found is None else unpack_json(found)


def remove(db: Connection, session_n: int, name: Name) -> None:
    """Drop a value of a session."""
    db.run(
        "DELETE FROM session_states WHERE session_n = :session_n AND name = :name",
        session_n=session_n,
        name=name,
    )
