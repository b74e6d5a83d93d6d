"""Edges: typed links between fragments, and the trees that the hierarchical ones form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from lore import clock
from lore.records import Edge, EdgeKind
from lore.store.packing import moment
from lore.store.sqlite import Connection, among, id_text, numbers

_DEEPEST = 64


class EdgeRow(NamedTuple):
    """One edge by the numbers of its ends."""

    source_n: int
    target_n: int
    kind: EdgeKind
    weight: float


class Drawn(NamedTuple):
    """What an edge has beside its ends and its kind."""

    weight: float
    note: str


def put(
    db: Connection,
    source_n: int,
    target_n: int,
    kind: EdgeKind,
    *,
    now: datetime,
    weight: float = 1.0,
    note: str = "",
) -> None:
    """Draw an edge; drawn again, it takes the new weight and note."""
    db.run(
        "INSERT INTO edges (source_n, target_n, kind, weight, note, created_at)"
        " VALUES (:source_n, :target_n, :kind, :weight, :note, :at)"
        " ON CONFLICT (source_n, target_n, kind)"
        " DO UPDATE SET weight = excluded.weight, note = excluded.note",
        source_n=source_n,
        target_n=target_n,
        kind=kind,
        weight=weight,
        note=note,
        at=clock.to_us(now),
    )


def remove(db: Connection, source_n: int, target_n: int, kind: EdgeKind) -> None:
    """Take an edge away."""
    db.run(
        "DELETE FROM edges WHERE source_n = :source_n AND target_n = :target_n AND kind = :kind",
        source_n=source_n,
        target_n=target_n,
        kind=kind,
    )


def find(db: Connection, source_n: int, target_n: int, kind: EdgeKind) -> Drawn | None:
    """Return weight and note of an edge, if it is there."""
    row = db.find(
        "SELECT weight, note FROM edges"
        " WHERE source_n = :source_n AND target_n = :target_n AND kind = :kind",
        source_n=source_n,
        target_n=target_n,
        kind=kind,
    )
    return None if row is None else Drawn(*row)


def of_fragment(db: Connection, n: int) -> list[Edge]:
    """Return the edges at a fragment, in both directions."""
    rows = db.rows(
        f"SELECT {id_text('a.id')}, {id_text('b.id')}, e.kind, e.weight, e.note, e.created_at"
        " FROM edges e"
        " JOIN items a ON a.n = e.source_n JOIN items b ON b.n = e.target_n"
        " WHERE e.source_n = :n OR e.target_n = :n ORDER BY e.kind, e.weight DESC",
        n=n,
    )
    return [
        Edge(source, target, kind, weight, note, moment(at))
        for source, target, kind, weight, note, at in rows
    ]


def among_fragments(db: Connection, ns: Sequence[int], kinds: Sequence[EdgeKind]) -> list[EdgeRow]:
    """Return the edges of some kinds that have one of the fragments at an end."""
    if not len(ns):
        return []
    wanted = ", ".join(f"'{kind}'" for kind in kinds)
    rows = db.rows(
        "SELECT source_n, target_n, kind, weight FROM edges"
        f" WHERE kind IN ({wanted})"
        f" AND ({among('source_n', 'ns')} OR {among('target_n', 'ns')})",
        ns=numbers(ns),
    )
    return [EdgeRow(*row) for row in rows]


def children(db: Connection, n: int) -> list[int]:
    """Return the numbers of a fragment's children, in the order they were learned."""
    rows = db.rows(
        "SELECT e.target_n FROM edges e JOIN fragments f ON f.n = e.target_n"
        " WHERE e.source_n = :n AND e.kind = 'hierarchical' AND f.deleted_at IS NULL"
        " ORDER BY e.target_n",
        n=n,
    )
    return [row[0] for row in rows]


def all_children(db: Connection, n: int) -> list[int]:
    """Return the numbers of a fragment's children, with those that are deleted."""
    rows = db.rows(
        "SELECT target_n FROM edges WHERE source_n = :n AND kind = 'hierarchical'"
        " ORDER BY target_n",
        n=n,
    )
    return [row[0] for row in rows]


def find_parent(db: Connection, n: int) -> int | None:
    """Return the number of a fragment's parent."""
    found = db.value(
        "SELECT source_n FROM edges WHERE target_n = :n AND kind = 'hierarchical'", n=n
    )
    return None if found is None else int(found)


def subtree(db: Connection, n: int, *, max_depth: int = _DEEPEST) -> list[tuple[int, int]]:
    """Return a fragment and all below it, each with its distance from the top."""
    rows = db.rows(
        "WITH RECURSIVE below (n, distance) AS (SELECT :n, 0 UNION"
        " SELECT e.target_n, b.distance + 1 FROM below b JOIN edges e ON e.source_n = b.n"
        " JOIN fragments f ON f.n = e.target_n"
        " WHERE e.kind = 'hierarchical' AND b.distance < :max_depth AND f.deleted_at IS NULL)"
        " SELECT n, min(distance) FROM below GROUP BY n ORDER BY 2, 1",
        n=n,
        max_depth=max_depth,
    )
    return [(n_, distance) for n_, distance in rows]


def ancestors(db: Connection, n: int) -> list[int]:
    """Return the numbers from a fragment's root down to its parent."""
    rows = db.rows(
        "WITH RECURSIVE above (n, distance) AS (SELECT :n, 0 UNION"
        " SELECT e.source_n, a.distance + 1 FROM above a JOIN edges e ON e.target_n = a.n"
        " WHERE e.kind = 'hierarchical' AND a.distance < :deepest)"
        " SELECT n FROM above WHERE distance > 0 ORDER BY distance DESC",
        n=n,
        deepest=_DEEPEST,
    )
    return [row[0] for row in rows]
