"""Revocations: the messages and fragments that come from one session, origin or file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lore.records import Origin, Part
from lore.store.packing import holds, may_mix, unpack_parts
from lore.store.sqlite import Connection, among, numbers

_IN_PROJECT = "(:project_n IS NULL OR i.project_n = :project_n)"


def messages_of(db: Connection, session_ns: Sequence[int]) -> set[int]:
    """Return the messages of some sessions."""
    rows = db.rows(
        f"SELECT n FROM messages WHERE {among('session_n', 'ns')}", ns=numbers(session_ns)
    )
    return {row[0] for row in rows}


def fragments_of(db: Connection, session_ns: Sequence[int]) -> set[int]:
    """Return the fragments that were stored in some sessions."""
    rows = db.rows(
        f"SELECT f.n FROM items i JOIN fragments f ON f.n = i.n WHERE {among('i.session_n', 'ns')}",
        ns=numbers(session_ns),
    )
    return {row[0] for row in rows}


def fragments_by(db: Connection, origin: str, *, project_n: int | None) -> set[int]:
    """Return the fragments that an origin is the author of."""
    rows = db.rows(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE f.origin = :origin AND {_IN_PROJECT}",
        origin=origin,
        project_n=project_n,
    )
    return {row[0] for row in rows}


def mixed_messages(
    db: Connection, origin: str, *, project_n: int | None
) -> Iterator[tuple[int, Origin, tuple[Part, ...]]]:
    """Return the messages in which an origin may speak, with their parts."""
    rows = db.rows(
        "SELECT m.n, m.origin, m.parts FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE {_IN_PROJECT} AND (m.origin = :origin OR {may_mix('m.parts')})",
        origin=origin,
        project_n=project_n,
    )
    yield from ((n, of_message, unpack_parts(parts)) for n, of_message, parts in rows)


def messages_naming(
    db: Connection, name: str, *, project_n: int | None
) -> Iterator[tuple[int, int, tuple[Part, ...]]]:
    """Return the messages with tool calls that have a name in them, with session and parts."""
    escaped = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = db.rows(
        "SELECT m.n, m.session_n, m.parts FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE {_IN_PROJECT} AND m.parts LIKE :pattern ESCAPE '\\'"
        f" AND {holds('m.parts', 'tool_call')}",
        pattern=f"%{escaped}%",
        project_n=project_n,
    )
    yield from ((n, session_n, unpack_parts(parts)) for n, session_n, parts in rows)


def results_of(
    db: Connection, session_ns: Iterable[int]
) -> Iterator[tuple[int, int, tuple[Part, ...]]]:
    """Return the messages of some sessions that hold tool results, with session and parts."""
    rows = db.rows(
        "SELECT n, session_n, parts FROM messages"
        f" WHERE {among('session_n', 'ns')} AND {holds('parts', 'tool_result')}",
        ns=numbers(sorted(session_ns)),
    )
    yield from ((n, session_n, unpack_parts(parts)) for n, session_n, parts in rows)


def living(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return those of the items that are fragments and not deleted."""
    rows = db.rows(
        f"SELECT n FROM fragments WHERE {among('n', 'ns')} AND deleted_at IS NULL ORDER BY n",
        ns=numbers(ns),
    )
    return [row[0] for row in rows]
