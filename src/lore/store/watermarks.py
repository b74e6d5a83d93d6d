"""Watermarks: how far each source has been read, so that a restart goes on from there."""

from __future__ import annotations

from datetime import datetime

from lore import clock
from lore.records import Watermark
from lore.store.packing import moment
from lore.store.sqlite import Connection


def put(
    db: Connection,
    source: str,
    *,
    position: int,
    now: datetime,
    fingerprint: str = "",
    session_n: int | None = None,
) -> None:
    """Write down how far a source was read; belongs into the transaction of what was read."""
    db.run(
        "INSERT INTO watermarks (source, session_n, position, fingerprint, updated_at)"
        " VALUES (:source, :session_n, :position, :fingerprint, :at)"
        " ON CONFLICT (source) DO UPDATE SET session_n = excluded.session_n,"
        " position = excluded.position, fingerprint = excluded.fingerprint,"
        " updated_at = excluded.updated_at",
        source=source,
        session_n=session_n,
        position=position,
        fingerprint=fingerprint,
        at=clock.to_us(now),
    )


def find(db: Connection, source: str) -> Watermark | None:
    """Return how far a source was read, or None if it never was."""
    row = db.find(
        "SELECT w.source, s.id, w.position, w.fingerprint, w.updated_at FROM watermarks w"
        " LEFT JOIN sessions s ON s.n = w.session_n WHERE w.source = :source",
        source=source,
    )
    if row is None:
        return None
    name, session_id, position, fingerprint, at = row
    return Watermark(name, session_id, position, fingerprint, moment(at))
