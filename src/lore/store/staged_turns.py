"""Staged turns: what has begun and is not stored yet, kept over a restart."""

from __future__ import annotations

from datetime import datetime

from lore import clock
from lore.records import StagedTurn
from lore.store.packing import moment
from lore.store.sqlite import Connection


def put(db: Connection, session_n: int, key: str, body: str, *, now: datetime) -> None:
    """Keep a turn; staged again under its key, the newer body counts."""
    db.run(
        "INSERT INTO staged_turns (session_n, key, body, created_at)"
        " VALUES (:session_n, :key, :body, :at)"
        " ON CONFLICT (session_n, key) DO UPDATE SET body = excluded.body",
        session_n=session_n,
        key=key,
        body=body,
        at=clock.to_us(now),
    )


def of_session(db: Connection, session_n: int) -> list[StagedTurn]:
    """Return the turns of a session that are not stored yet, oldest first."""
    rows = db.rows(
        "SELECT s.id, t.key, t.body, t.created_at FROM staged_turns t"
        " JOIN sessions s ON s.n = t.session_n WHERE t.session_n = :n ORDER BY t.n",
        n=session_n,
    )
    return [StagedTurn(id_, key, body, moment(at)) for id_, key, body, at in rows]


def remove(db: Connection, session_n: int, key: str) -> bool:
    """Drop a turn, in the transaction that stores it; tell whether it was there."""
    return bool(
        db.run(
            "DELETE FROM staged_turns WHERE session_n = :session_n AND key = :key",
            session_n=session_n,
            key=key,
        )
    )
