"""Watermarks: how far each source was read, so that a restart resumes there."""

from __future__ import annotations

from lore import clock
from lore.records import Watermark
from lore.store import database
from lore.store.codec import unpack_time
from lore.store.sqlite import Connection, Row

FIELDS = (
    "file", "size", "modified_ns", "position", "fingerprint", "context", "problem", "updated_at",
)  # fmt: skip
"""The columns besides the source and its session."""

_SELECT = (
    f"SELECT w.source, s.id, {', '.join(f'w.{name}' for name in FIELDS)} FROM watermarks w"
    " LEFT JOIN sessions s ON s.n = w.session_n"
)


def put(db: Connection, mark: Watermark, *, session_n: int | None) -> None:
    """Store how far a file was read and what identifies it.

    Call it in the transaction that stores what was read.
    """
    assignments = ", ".join(f"{name} = excluded.{name}" for name in FIELDS)
    db.run(
        f"INSERT INTO watermarks (source, session_n, {', '.join(FIELDS)})"
        f" VALUES (:source, :session_n, {', '.join(f':{name}' for name in FIELDS)})"
        " ON CONFLICT (source) DO UPDATE SET"
        f" session_n = coalesce(excluded.session_n, session_n), {assignments}",
        source=mark.source,
        session_n=session_n,
        file=mark.file,
        size=mark.size,
        modified_ns=mark.modified_ns,
        position=mark.position,
        fingerprint=mark.fingerprint,
        context=mark.context,
        problem=mark.problem,
        updated_at=clock.to_us(mark.updated_at),
    )


def find(db: Connection, source: str) -> Watermark | None:
    """Return how far a source was read, or None."""
    row = db.find(f"{_SELECT} WHERE w.source = :source", source=source)
    return None if row is None else _watermark(row)


def find_renamed(db: Connection, file: str) -> Watermark | None:
    """Return the newest watermark of a file by device and inode, whatever its path."""
    row = db.find(
        f"{_SELECT} WHERE w.file = :file AND w.file <> '' ORDER BY w.updated_at DESC LIMIT 1",
        file=file,
    )
    return None if row is None else _watermark(row)


def remove(db: Connection, source: str) -> None:
    """Delete the watermark of a source."""
    db.run("DELETE FROM watermarks WHERE source = :source", source=source)


def find_read_speed(db: Connection) -> float | None:
    """Return the measured read speed in bytes per second, or None."""
    value = database.find_meta(db, "capture_bytes_per_s")
    return float(value) if value else None


def put_read_speed(db: Connection, bytes_per_s: float) -> None:
    """Store the measured read speed."""
    database.set_meta(db, "capture_bytes_per_s", f"{bytes_per_s:.0f}")


def _watermark(row: Row) -> Watermark:
    source, session_id, file, size, modified_ns, position, fingerprint, context, problem, at = row
    return Watermark(
        source=source,
        session_id=session_id,
        position=position,
        fingerprint=fingerprint,
        updated_at=unpack_time(at),
        file=file,
        size=size,
        modified_ns=modified_ns,
        context=context,
        problem=problem,
    )
