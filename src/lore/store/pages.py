"""Keyset pagination: rows in a fixed order, after the key of the last page.

Each list is ordered by a unique key and continues after the key of the last row, so that rows added
or removed meanwhile do not shift the pages.
"""

from __future__ import annotations

from collections.abc import Sequence

from lore.records import Edge, Project, Spend
from lore.store.codec import unpack_time
from lore.store.fragments import VISIBLE_FRAGMENT
from lore.store.spend import ENTRY_COLUMNS, ENTRY_TABLES, unpack_entry
from lore.store.sqlite import Connection, Row, id_text

BEFORE_NEWEST = 2**62
"""A key before every number and time, where the newest come first."""


def sessions(
    db: Connection, after: Sequence[int], *, project_n: int | None, limit: int
) -> list[tuple[int, int]]:
    """Return (time of the last message, number) of sessions, newest first."""
    at, n = after or (BEFORE_NEWEST, 0)
    return _pairs(
        db.rows(
            "SELECT last_message_at, n FROM sessions WHERE (last_message_at, n) < (:at, :n)"
            " AND (:project_n IS NULL OR project_n = :project_n)"
            " ORDER BY last_message_at DESC, n DESC LIMIT :limit",
            at=at,
            n=n,
            project_n=project_n,
            limit=limit,
        )
    )


def distillations(
    db: Connection,
    after: Sequence[int],
    *,
    session_n: int | None,
    project_n: int | None,
    limit: int,
) -> list[int]:
    """Return the numbers of distillations, newest first."""
    (n,) = after or (BEFORE_NEWEST,)
    return db.column(
        "SELECT d.n FROM distillations d JOIN items i ON i.n = d.n WHERE d.n < :n"
        " AND (:session_n IS NULL OR d.session_n = :session_n)"
        " AND (:project_n IS NULL OR i.project_n = :project_n) ORDER BY d.n DESC LIMIT :limit",
        n=n,
        session_n=session_n,
        project_n=project_n,
        limit=limit,
    )


def fragments(
    db: Connection,
    after: Sequence[int],
    *,
    kind: str,
    origin: str,
    project_n: int | None,
    limit: int,
) -> list[int]:
    """Return the numbers of fragments that are not deleted, newest first."""
    (n,) = after or (BEFORE_NEWEST,)
    return db.column(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.n < :n"
        " AND f.deleted_at IS NULL AND (:kind = '' OR f.kind = :kind)"
        " AND (:origin = '' OR f.origin = :origin)"
        " AND (:project_n IS NULL OR i.project_n = :project_n) ORDER BY f.n DESC LIMIT :limit",
        n=n,
        kind=kind,
        origin=origin,
        project_n=project_n,
        limit=limit,
    )


def episodes(
    db: Connection, after: Sequence[int], *, project_n: int | None, limit: int
) -> list[tuple[int, int]]:
    """Return (end of the session, number) of episodes, newest first."""
    at, n = after or (BEFORE_NEWEST, 0)
    return _pairs(
        db.rows(
            "SELECT ended, n FROM (SELECT coalesce(s.last_message_at, i.created_at) AS ended,"
            " f.n AS n FROM fragments f JOIN items i ON i.n = f.n"
            " LEFT JOIN sessions s ON s.n = i.session_n"
            " WHERE f.kind = 'episode' AND f.deleted_at IS NULL AND f.superseded_by IS NULL"
            " AND (:project_n IS NULL OR i.project_n = :project_n)) AS told"
            " WHERE (ended, n) < (:at, :n) ORDER BY ended DESC, n DESC LIMIT :limit",
            at=at,
            n=n,
            project_n=project_n,
            limit=limit,
        )
    )


def roots(
    db: Connection, after: Sequence[float], *, project_n: int | None, limit: int
) -> list[tuple[float, int]]:
    """Return (relevance, number) of root fragments, strongest first."""
    relevance, n = after or (BEFORE_NEWEST, 0)
    rows = db.rows(
        "SELECT f.relevance, f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE f.depth = 0 AND {VISIBLE_FRAGMENT}"
        " AND (f.relevance, f.n) < (:relevance, :n)"
        " AND (:project_n IS NULL OR i.project_n IS NULL OR i.project_n = :project_n)"
        " ORDER BY f.relevance DESC, f.n DESC LIMIT :limit",
        relevance=relevance,
        n=n,
        project_n=project_n,
        limit=limit,
    )
    return [(strength, n_) for strength, n_ in rows]


def edges(
    db: Connection, after: Sequence[int | str], *, fragment_n: int | None, kind: str, limit: int
) -> list[tuple[tuple[int, int, str], Edge]]:
    """Return edges between fragments that are not deleted, each with its key."""
    source_n, target_n, after_kind = after or (0, 0, "")
    rows = db.rows(
        f"SELECT e.source_n, e.target_n, e.kind, {id_text('a.id')}, {id_text('b.id')},"
        " e.weight, e.note, e.created_at FROM edges e"
        " JOIN items a ON a.n = e.source_n JOIN items b ON b.n = e.target_n"
        " JOIN fragments f ON f.n = e.source_n JOIN fragments o ON o.n = e.target_n"
        " WHERE (e.source_n, e.target_n, e.kind) > (:source_n, :target_n, :after_kind)"
        " AND f.deleted_at IS NULL AND o.deleted_at IS NULL"
        " AND (:n IS NULL OR e.source_n = :n OR e.target_n = :n)"
        " AND (:kind = '' OR e.kind = :kind)"
        " ORDER BY e.source_n, e.target_n, e.kind LIMIT :limit",
        source_n=source_n,
        target_n=target_n,
        after_kind=after_kind,
        n=fragment_n,
        kind=kind,
        limit=limit,
    )
    return [
        ((a_n, b_n, kind_), Edge(source, target, kind_, weight, note, unpack_time(at)))
        for a_n, b_n, kind_, source, target, weight, note, at in rows
    ]


def spend(
    db: Connection, after: Sequence[int], *, limit: int
) -> list[tuple[tuple[int, int], Spend]]:
    """Return the entries of the spend ledger, newest first, each with its key."""
    at, n = after or (BEFORE_NEWEST, 0)
    rows = db.rows(
        f"SELECT e.at, e.n, {ENTRY_COLUMNS} FROM {ENTRY_TABLES} WHERE (e.at, e.n) < (:at, :n)"
        " ORDER BY e.at DESC, e.n DESC LIMIT :limit",
        at=at,
        n=n,
        limit=limit,
    )
    return [((at_, n_), unpack_entry(tuple(columns))) for at_, n_, *columns in rows]


def projects(
    db: Connection, after: Sequence[int], *, limit: int
) -> list[tuple[tuple[int], Project]]:
    """Return projects in the order they were added, each with its key."""
    (n,) = after or (0,)
    rows = db.rows(
        "SELECT n, id, path, remote, name, created_at FROM projects WHERE n > :n"
        " ORDER BY n LIMIT :limit",
        n=n,
        limit=limit,
    )
    return [
        ((n_,), Project(id_, path, remote, name, unpack_time(at)))
        for n_, id_, path, remote, name, at in rows
    ]


def conflicts(
    db: Connection, after: Sequence[int], *, project_n: int | None, limit: int
) -> list[tuple[int, int, int]]:
    """Return (time, newer, older) of conflicts between live fragments, newest first."""
    at, newer, older = after or (BEFORE_NEWEST, 0, 0)
    rows = db.rows(
        "SELECT e.created_at, e.source_n, e.target_n FROM edges e"
        " JOIN fragments f ON f.n = e.source_n JOIN fragments o ON o.n = e.target_n"
        " JOIN items i ON i.n = e.source_n"
        " WHERE e.kind = 'contradicts' AND f.deleted_at IS NULL AND f.superseded_by IS NULL"
        " AND o.deleted_at IS NULL AND o.superseded_by IS NULL"
        " AND (:project_n IS NULL OR i.project_n IS NULL OR i.project_n = :project_n)"
        " AND (e.created_at, e.source_n, e.target_n) < (:at, :newer, :older)"
        " ORDER BY e.created_at DESC, e.source_n DESC, e.target_n DESC LIMIT :limit",
        at=at,
        newer=newer,
        older=older,
        project_n=project_n,
        limit=limit,
    )
    return [(at_, newer_, older_) for at_, newer_, older_ in rows]


def _pairs(rows: list[Row]) -> list[tuple[int, int]]:
    return [(at, n) for at, n in rows]
