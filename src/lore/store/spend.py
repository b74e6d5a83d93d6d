"""The spend ledger: what calls to models cost; entries outlive the sessions they belong to."""

from __future__ import annotations

from datetime import datetime

import orjson

from lore import clock
from lore.records import Spend
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection

UNPRICED = "unpriced"
"""Stands in the usage of an entry whose price nobody knows."""

BACKGROUND = "background"
"""The word that purposes of background work begin with, before the question."""


def add(
    db: Connection, entry: Spend, *, session_n: int | None = None, project_n: int | None = None
) -> bool:
    """Enter what a call cost, once; tell whether it was new."""
    return bool(
        db.run(
            "INSERT INTO spend (key, at, session_n, project_n, purpose, model, usage, usd)"
            " VALUES (:key, :at, :session_n, :project_n, :purpose, :model, :usage, :usd)"
            " ON CONFLICT (key) DO NOTHING",
            key=entry.key,
            at=clock.to_us(entry.at),
            session_n=session_n,
            project_n=project_n,
            purpose=entry.purpose,
            model=entry.model,
            usage=orjson.dumps(entry.usage).decode(),
            usd=entry.usd,
        )
    )


def newest(db: Connection, *, limit: int = 20) -> list[Spend]:
    """Return the latest entries, newest first."""
    rows = db.rows(
        "SELECT e.key, e.at, e.purpose, e.model, e.usage, e.usd, s.id, p.id FROM spend e"
        " LEFT JOIN sessions s ON s.n = e.session_n LEFT JOIN projects p ON p.n = e.project_n"
        " ORDER BY e.at DESC, e.n DESC LIMIT :limit",
        limit=limit,
    )
    return [
        Spend(key, moment(at), purpose, model, unpack_json(usage), usd, session, project)
        for key, at, purpose, model, usage, usd, session, project in rows
    ]


def total(db: Connection, purpose: str, *, since: datetime) -> float:
    """Return what was spent since a moment on all purposes that begin with a word and a colon."""
    return float(
        db.value(
            "SELECT COALESCE(SUM(usd), 0) FROM spend"
            " WHERE at >= :since AND substr(purpose, 1, length(:begin)) = :begin",
            since=clock.to_us(since),
            begin=f"{purpose}:",
        )
    )


def unpriced(db: Connection, purpose: str, *, since: datetime) -> int:
    """Return how many entries since a moment have no price that anybody knows."""
    return int(
        db.value(
            "SELECT COUNT(*) FROM spend WHERE at >= :since"
            " AND substr(purpose, 1, length(:begin)) = :begin"
            " AND usage LIKE :mark",
            since=clock.to_us(since),
            begin=f"{purpose}:",
            mark=f'%"{UNPRICED}"%',
        )
    )


def reserve(db: Connection, key: str, purpose: str, *, usd: float, now: datetime) -> None:
    """Set money aside for a call that is about to be made."""
    db.run(
        "INSERT INTO spend_reservations (key, at, purpose, usd) VALUES (:key, :at, :purpose, :usd)",
        key=key,
        at=clock.to_us(now),
        purpose=purpose,
        usd=usd,
    )


def release(db: Connection, key: str) -> None:
    """Give back what was set aside for a call."""
    db.run("DELETE FROM spend_reservations WHERE key = :key", key=key)


def reserved(db: Connection, purpose: str, *, since: datetime) -> float:
    """Return what is set aside for calls that began since a moment."""
    return float(
        db.value(
            "SELECT COALESCE(SUM(usd), 0) FROM spend_reservations"
            " WHERE at >= :since AND substr(purpose, 1, length(:begin)) = :begin",
            since=clock.to_us(since),
            begin=f"{purpose}:",
        )
    )


def drop_reservations(db: Connection, *, before: datetime) -> None:
    """Give back what was set aside before a moment: whoever did so was killed."""
    db.run("DELETE FROM spend_reservations WHERE at < :before", before=clock.to_us(before))
