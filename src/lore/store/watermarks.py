"""Watermarks: how far each source has been read, so that a restart goes on from there."""

from __future__ import annotations

from lore import clock
from lore.records import Watermark
from lore.store.packing import moment
from lore.store.sqlite import Connection, Row

FIELDS = (
    "file", "size", "modified_ns", "position", "fingerprint", "context", "problem", "updated_at",
)  # fmt: skip
"""The columns beside the source and its session."""

_SELECT = (
    f"SELECT w.source, s.id, {', '.join(f'w.{name}' for name in FIELDS)} FROM watermarks w"
    " LEFT JOIN sessions s ON s.n = w.session_n"
)


def put_file(db: Connection, mark: Watermark, *, session_n: int | None) -> None:
    """Write down how far a file was read, and all by which it is known again.

    It belongs into the transaction of what was read.
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
    """Return how far a source was read, or None if it never was."""
    row = db.find(f"{_SELECT} WHERE w.source = :source", source=source)
    return None if row is None else _watermark(row)


def find_renamed(db: Connection, file: str) -> Watermark | None:
    """Return the newest watermark of a file by its device and inode, whatever its path was."""
    row = db.find(
        f"{_SELECT} WHERE w.file = :file AND w.file <> '' ORDER BY w.updated_at DESC LIMIT 1",
        file=file,
    )
    return None if row is None else _watermark(row)


def remove(db: Connection, source: str) -> None:
    """Forget how far a source was read."""
    db.run("DELETE FROM watermarks WHERE source = :source", source=source)


def speed(db: Connection) -> float | None:
    """Return how many bytes of files were read in a second, if any were."""
    found = db.value("SELECT value FROM meta WHERE key = 'capture_bytes_per_s'")
    return float(found) if found else None


def put_speed(db: Connection, bytes_per_s: float) -> None:
    """Write down how quickly files were read."""
    db.run(
        "INSERT INTO meta (key, value) VALUES ('capture_bytes_per_s', :value)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        value=f"{bytes_per_s:.0f}",
    )


def _watermark(row: Row) -> Watermark:
    source, session_id, file, size, modified_ns, position, fingerprint, context, problem, at = row
    return Watermark(
        source=source,
        session_id=session_id,
        position=position,
        fingerprint=fingerprint,
        updated_at=moment(at),
        file=file,
        size=size,
        modified_ns=modified_ns,
        context=context,
        problem=problem,
    )
