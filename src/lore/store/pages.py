"""Keyset pagination: rows in a fixed order, after the key of the last page.

Each list is ordered by a unique key and continues after the key of the last row, so that rows added
or removed meanwhile do not shift the pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lore.records import Edge, Project, Spend
from lore.store import items
from lore.store.codec import unpack_record
from lore.store.fragments import LIVING_FRAGMENT, VISIBLE_FRAGMENT
from lore.store.spend import ENTRY_COLUMNS, ENTRY_TABLES, unpack_entry
from lore.store.sql_connection import Connection, Row, id_text

BEFORE_NEWEST = 2**62
"""A key before every number and time, where the newest come first."""

_NEWEST = {"at": BEFORE_NEWEST, "n": 0}


def _rows_after(
    db: Connection, sql: str, after: Sequence[Any], first: Mapping[str, Any], **params: Any
) -> list[Row]:
    """Return the rows after a key; `first` names its values and has those before all rows."""
    key = dict(zip(first, after, strict=True)) if after else first
    return db.rows(f"{sql} LIMIT :limit", **key, **params)


def distillations(
    db: Connection,
    after: Sequence[int],
    *,
    session_n: int | None,
    project_n: int | None,
    limit: int,
) -> list[int]:
    """Return the numbers of distillations, newest first."""
    sql = (
        "SELECT d.n FROM distillations d JOIN items i ON i.n = d.n WHERE d.n < :n"
        " AND (:session_n IS NULL OR d.session_n = :session_n)"
        " AND (:project_n IS NULL OR i.project_n = :project_n) ORDER BY d.n DESC"
    )
    scope = {"session_n": session_n, "project_n": project_n}
    return [n for (n,) in _rows_after(db, sql, after, {"n": BEFORE_NEWEST}, **scope, limit=limit)]


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
    sql = (
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.n < :n"
        " AND f.deleted_at IS NULL AND (:kind = '' OR f.kind = :kind)"
        " AND (:origin = '' OR f.origin = :origin)"
        " AND (:project_n IS NULL OR i.project_n = :project_n) ORDER BY f.n DESC"
    )
    scope = {"kind": kind, "origin": origin, "project_n": project_n}
    return [n for (n,) in _rows_after(db, sql, after, {"n": BEFORE_NEWEST}, **scope, limit=limit)]


def episodes(
    db: Connection, after: Sequence[int], *, project_n: int | None, limit: int
) -> list[Row]:
    """Return (end of the session, number) of live episodes, newest first."""
    sql = (
        "SELECT ended, n FROM (SELECT coalesce(s.last_message_at, i.created_at) AS ended,"
        " f.n AS n FROM fragments f JOIN items i ON i.n = f.n"
        " LEFT JOIN sessions s ON s.n = i.session_n"
        f" WHERE f.kind = 'episode' AND {LIVING_FRAGMENT}"
        " AND (:project_n IS NULL OR i.project_n = :project_n)) AS ends"
        " WHERE (ended, n) < (:at, :n) ORDER BY ended DESC, n DESC"
    )
    return _rows_after(db, sql, after, _NEWEST, project_n=project_n, limit=limit)


def roots(
    db: Connection, after: Sequence[float], *, project_n: int | None, limit: int
) -> list[Row]:
    """Return (relevance, number) of visible root fragments, strongest first."""
    sql = (
        "SELECT f.relevance, f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE f.depth = 0 AND {VISIBLE_FRAGMENT} AND (f.relevance, f.n) < (:relevance, :n)"
        f" AND {items.applies_sql('i')}"
        " ORDER BY f.relevance DESC, f.n DESC"
    )
    strongest = {"relevance": BEFORE_NEWEST, "n": 0}
    return _rows_after(db, sql, after, strongest, project_n=project_n, limit=limit)


def edges(
    db: Connection, after: Sequence[int | str], *, fragment_n: int | None, kind: str, limit: int
) -> list[tuple[Row, Edge]]:
    """Return edges between fragments that are not deleted, each with its key."""
    # With "or" SQLite would read all edges.
    table = (
        "edges"
        if fragment_n is None
        else "(SELECT * FROM edges WHERE source_n = :n UNION ALL"
        " SELECT * FROM edges WHERE target_n = :n AND source_n <> :n)"
    )
    sql = (
        f"SELECT e.source_n, e.target_n, e.kind, {id_text('a.id')}, {id_text('b.id')}, e.kind,"
        f" e.weight, e.note, e.created_at FROM {table} e"
        " JOIN items a ON a.n = e.source_n JOIN items b ON b.n = e.target_n"
        " JOIN fragments f ON f.n = e.source_n JOIN fragments o ON o.n = e.target_n"
        " WHERE (e.source_n, e.target_n, e.kind) > (:source_n, :target_n, :after_kind)"
        " AND f.deleted_at IS NULL AND o.deleted_at IS NULL"
        " AND (:kind = '' OR e.kind = :kind) ORDER BY e.source_n, e.target_n, e.kind"
    )
    first = {"source_n": 0, "target_n": 0, "after_kind": ""}
    of_fragment = {} if fragment_n is None else {"n": fragment_n}
    rows = _rows_after(db, sql, after, first, **of_fragment, kind=kind, limit=limit)
    return [(row[:3], unpack_record(Edge, row[3:])) for row in rows]


def spend(db: Connection, after: Sequence[int], *, limit: int) -> list[tuple[Row, Spend]]:
    """Return the entries of the spend ledger, newest first, each with its key."""
    sql = (
        f"SELECT e.at, e.n, {ENTRY_COLUMNS} FROM {ENTRY_TABLES} WHERE (e.at, e.n) < (:at, :n)"
        " ORDER BY e.at DESC, e.n DESC"
    )
    rows = _rows_after(db, sql, after, _NEWEST, limit=limit)
    return [(row[:2], unpack_entry(row[2:])) for row in rows]


def projects(db: Connection, after: Sequence[int], *, limit: int) -> list[tuple[Row, Project]]:
    """Return projects in the order they were added, each with its key."""
    sql = "SELECT n, id, path, remote, name, created_at FROM projects WHERE n > :n ORDER BY n"
    rows = _rows_after(db, sql, after, {"n": 0}, limit=limit)
    return [(row[:1], unpack_record(Project, row[1:])) for row in rows]


def conflicts(
    db: Connection, after: Sequence[int], *, project_n: int | None, limit: int = BEFORE_NEWEST
) -> list[Row]:
    """Return (time, newer, older) of conflicts between live fragments, newest first."""
    sql = (
        "SELECT e.created_at, e.source_n, e.target_n FROM edges e"
        " JOIN fragments f ON f.n = e.source_n JOIN fragments o ON o.n = e.target_n"
        f" JOIN items i ON i.n = e.source_n WHERE e.kind = 'contradicts' AND {LIVING_FRAGMENT}"
        " AND o.deleted_at IS NULL AND o.superseded_by IS NULL"
        f" AND {items.applies_sql('i')}"
        " AND (e.created_at, e.source_n, e.target_n) < (:at, :newer, :older)"
        " ORDER BY e.created_at DESC, e.source_n DESC, e.target_n DESC"
    )
    newest = {"at": BEFORE_NEWEST, "newer": 0, "older": 0}
    return _rows_after(db, sql, after, newest, project_n=project_n, limit=limit)
