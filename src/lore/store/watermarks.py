"""Watermarks: how far each source was read, so that a restart resumes there."""

from __future__ import annotations

from collections.abc import Sequence

from lore import clock
from lore.records import Watermark
from lore.store import database, forgotten_names
from lore.store.codec import unpack_record
from lore.store.sql_connection import Connection, among, int_array

FIELDS = (
    "file", "size", "modified_ns", "position", "fingerprint", "context", "problem", "updated_at",
)  # fmt: skip
"""The columns besides the source and its session."""

_SELECTED = ", ".join(f"w.{name}" for name in list(Watermark.__annotations__)[2:])
_SELECT = (
    f"SELECT w.source, s.id, {_SELECTED} FROM watermarks w"
    " LEFT JOIN sessions s ON s.n = w.session_n"
)


def put(db: Connection, mark: Watermark, *, session_n: int | None) -> None:
    """Store how far a file was read and what identifies it.

    Call it in the transaction that stores what was read.
    """
    source = mark.source
    values = {name: getattr(mark, name) for name in FIELDS}
    if forgotten_names.find(db, [source]):
        # Without its context the file is read from the beginning when it changes.
        source, values["context"] = forgotten_names.make_forgotten_name(source), ""
    if session_n is None:
        sql = "SELECT session_n FROM watermarks WHERE source = :source"
        session_n = db.number(sql, source=source)
    values |= {"session_n": session_n, "updated_at": clock.to_us(mark.updated_at)}
    db.upsert("watermarks", ("source",), source=source, **values)


def hide(db: Connection, source: str) -> None:
    """Replace the name of a source that was forgotten."""
    forgotten = forgotten_names.make_forgotten_name(source)
    db.run("DELETE FROM watermarks WHERE source = :forgotten", forgotten=forgotten)
    sql = "UPDATE watermarks SET source = :forgotten, context = '' WHERE source = :source"
    db.run(sql, source=source, forgotten=forgotten)


def clear_contexts(db: Connection, session_ns: Sequence[int]) -> None:
    """Clear the contexts of sessions: their files are read again when they change."""
    sql = f"UPDATE watermarks SET context = '' WHERE context <> '' AND {among('session_n', 'ns')}"
    db.run(sql, ns=int_array(session_ns))


def sources(db: Connection) -> list[str]:
    """Return all sources."""
    return db.column("SELECT source FROM watermarks")


def sources_of(db: Connection, session_ns: Sequence[int]) -> list[str]:
    """Return the sources of sessions."""
    sql = f"SELECT source FROM watermarks WHERE {among('session_n', 'ns')}"
    return db.column(sql, ns=int_array(session_ns))


def find(db: Connection, source: str) -> Watermark | None:
    """Return how far a source was read, or None."""
    row = db.find(
        f"{_SELECT} WHERE w.source IN (:source, :forgotten)",
        source=source,
        forgotten=forgotten_names.make_forgotten_name(source),
    )
    return None if row is None else unpack_record(Watermark, (source, *row[1:]))


def find_by_context(db: Connection, beginning: str) -> list[Watermark]:
    """Return the watermarks whose context begins with a text."""
    sql = f"{_SELECT} WHERE substr(w.context, 1, length(:beginning)) = :beginning ORDER BY w.source"
    rows = db.rows(sql, beginning=beginning)
    return [unpack_record(Watermark, row) for row in rows]


def find_renamed(db: Connection, file: str) -> Watermark | None:
    """Return the newest watermark of a file by device and inode, whatever its path."""
    row = db.find(
        f"{_SELECT} WHERE w.file = :file AND w.file <> '' ORDER BY w.updated_at DESC LIMIT 1",
        file=file,
    )
    return None if row is None else unpack_record(Watermark, row)


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
