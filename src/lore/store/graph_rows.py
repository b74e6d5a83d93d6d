"""Which fragments and edges a picture of the graph shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lore.records import EdgeKind, FragmentKind, Origin
from lore.store import items
from lore.store.sql_connection import Connection, among, id_text, int_array

_SHOWN = "f.deleted_at IS NULL AND f.kind <> 'episode'"
_AT = "(:at IS NULL OR i.created_at <= :at)"


def strongest_roots(
    db: Connection, *, project_n: int | None, at_us: int | None, limit: int
) -> list[int]:
    """Return roots, also replaced ones, strongest first."""
    return db.column(
        f"SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.depth = 0 AND {_SHOWN}"
        f" AND {items.applies_sql('i')} AND {_AT} ORDER BY f.relevance DESC, f.n DESC LIMIT :limit",
        project_n=project_n,
        at=at_us,
        limit=limit,
    )


def neighbours_of(
    db: Connection,
    ns: Sequence[int],
    *,
    without: Sequence[int],
    project_n: int | None,
    at_us: int | None,
    limit: int,
) -> list[int]:
    """Return the fragments that edges join with some, the most relevant first."""
    return db.column(
        f"SELECT f.n FROM (SELECT target_n AS n FROM edges WHERE {among('source_n', 'ns')}"
        f" UNION SELECT source_n FROM edges WHERE {among('target_n', 'ns')}) e"
        " JOIN fragments f ON f.n = e.n JOIN items i ON i.n = f.n"
        f" WHERE NOT {among('e.n', 'without')} AND {_SHOWN} AND {items.applies_sql('i')} AND {_AT}"
        " ORDER BY f.relevance DESC, f.n DESC LIMIT :limit",
        ns=int_array(ns),
        without=int_array(without),
        project_n=project_n,
        at=at_us,
        limit=limit,
    )


def count_fragments(db: Connection, *, project_n: int | None) -> int:
    """Return how many fragments could be shown."""
    if project_n is None:
        return int(db.value("SELECT count(*) FROM fragments")) - int(
            db.value("SELECT count(*) FROM fragments WHERE deleted_at IS NOT NULL")
        )
    return int(
        db.value(
            "SELECT count(*) FROM items i JOIN fragments f ON f.n = i.n"
            " WHERE i.project_n = :project_n AND f.deleted_at IS NULL",
            project_n=project_n,
        )
    )


class NodeRow(NamedTuple):
    """What the graph shows of a fragment."""

    n: int
    id: str
    title: str
    kind: FragmentKind
    origin: Origin
    relevance: float
    importance: float
    depth: int
    created_at: int
    replaced_at: int | None
    project_id: str | None


def load_nodes(db: Connection, ns: Sequence[int]) -> list[NodeRow]:
    """Return fragments in the order of their numbers."""
    rows = db.rows(
        f"SELECT f.n, {id_text('i.id')}, f.summary, f.kind, f.origin, f.relevance, f.importance,"
        " f.depth, i.created_at, CASE WHEN f.superseded_by IS NOT NULL"
        " THEN coalesce(f.valid_to, f.updated_at) END, p.id FROM fragments f"
        " JOIN items i ON i.n = f.n LEFT JOIN projects p ON p.n = i.project_n"
        f" WHERE {among('f.n', 'ns')} ORDER BY f.n",
        ns=int_array(ns),
    )
    return [NodeRow(*row) for row in rows]


class EdgeBetween(NamedTuple):
    """An edge by the numbers of its fragments."""

    source_n: int
    target_n: int
    kind: EdgeKind
    weight: float
    created_at: int


def edges_between(db: Connection, ns: Sequence[int]) -> list[EdgeBetween]:
    """Return the edges between some fragments."""
    rows = db.rows(
        "SELECT source_n, target_n, kind, weight, created_at FROM edges"
        f" WHERE {among('source_n', 'ns')} ORDER BY source_n, target_n, kind",
        ns=int_array(ns),
    )
    # SQLite would compare each with each if it had to check both ends.
    inside = set(ns)
    return [EdgeBetween(*row) for row in rows if row[1] in inside]
