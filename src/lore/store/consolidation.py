"""Consolidation: what its phases read, in sets and by index."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.records import TRUST, FragmentKind
from lore.store import vectors
from lore.store.fragments import LIVING_FRAGMENT
from lore.store.sqlite import Connection, among, numbers

Matrix = NDArray[np.float32]
Numbers = NDArray[np.int64]


class Embedding(NamedTuple):
    """The embedder whose vectors are compared."""

    n: int
    dimension: int


class Root(NamedTuple):
    """What merging and linking need to know of a root."""

    n: int
    seq: int
    project_n: int
    trust: int
    kind: FragmentKind
    access_count: int
    created_at: int


class Waiting(NamedTuple):
    """A session that waits to be digested."""

    n: int
    id: str
    last_message_at: int


def find_embedding(db: Connection) -> Embedding | None:
    """Return the embedder whose vectors are searched, if there is one."""
    row = db.find(
        "SELECT e.n, e.dimension FROM embedders e JOIN meta m ON m.value = e.identity"
        " WHERE m.key = 'embedder'"
    )
    return None if row is None else Embedding(*row)


def roots(db: Connection, embedding: Embedding) -> tuple[list[Root], Matrix]:
    """Return the living roots that have a vector, but for episodes, with their vectors."""
    rows = db.rows(
        "SELECT f.n, v.seq, coalesce(i.project_n, 0), f.trust, f.kind, f.access_count,"
        " i.created_at, v.vector FROM fragments f JOIN items i ON i.n = f.n"
        " JOIN vectors v ON v.n = f.n"
        f" WHERE f.depth = 0 AND {LIVING_FRAGMENT} AND f.kind <> 'episode'"
        " AND v.embedder_n = :embedder_n AND length(v.vector) = :size ORDER BY f.n",
        embedder_n=embedding.n,
        size=2 * embedding.dimension,
    )
    blobs = b"".join(row[-1] for row in rows)
    halves = np.frombuffer(blobs, dtype=np.float16).reshape(len(rows), embedding.dimension)
    return [Root(*row[:-1]) for row in rows], halves.astype(np.float32)


def newest_children(db: Connection) -> dict[int, int]:
    """Return for each fragment with living children the newest change number of theirs."""
    rows = db.rows(
        "SELECT e.source_n, max(v.seq) FROM edges e JOIN fragments f ON f.n = e.target_n"
        f" JOIN vectors v ON v.n = e.target_n WHERE e.kind = 'hierarchical' AND {LIVING_FRAGMENT}"
        " GROUP BY e.source_n"
    )
    return dict(rows)


def children_of(db: Connection, ns: Sequence[int]) -> dict[int, list[int]]:
    """Return the living children of each of some fragments, in the order they were learned."""
    rows = db.rows(
        "SELECT e.source_n, e.target_n FROM edges e JOIN fragments f ON f.n = e.target_n"
        f" WHERE e.kind = 'hierarchical' AND {LIVING_FRAGMENT} AND {among('e.source_n', 'ns')}"
        " ORDER BY e.target_n",
        ns=numbers(ns),
    )
    found: dict[int, list[int]] = {}
    for parent, child in rows:
        found.setdefault(parent, []).append(child)
    return found


_CHILDREN_SINCE = (
    "FROM vectors v JOIN fragments f ON f.n = v.n"
    " JOIN edges e ON e.target_n = v.n AND e.kind = 'hierarchical'"
    f" WHERE v.seq > :seq AND {LIVING_FRAGMENT} AND f.kind <> 'episode'"
)


def children_since(db: Connection, seq: int, *, limit: int) -> list[tuple[int, int, int]]:
    """Return living children whose vectors came after a change number, oldest first.

    Each as (change number, child, parent).
    """
    rows = db.rows(
        f"SELECT v.seq, v.n, e.source_n {_CHILDREN_SINCE} ORDER BY v.seq LIMIT :limit",
        seq=seq,
        limit=limit,
    )
    return [(row[0], row[1], row[2]) for row in rows]


def count_children_since(db: Connection, seq: int) -> int:
    """Count the living children whose vectors came after a change number."""
    return int(db.value(f"SELECT count(*) {_CHILDREN_SINCE}", seq=seq))


def vectors_of(db: Connection, ns: Sequence[int], embedding: Embedding) -> Matrix:
    """Return the vectors of fragments, in their order; zeros for one that has none."""
    return vectors.load(db, np.array(ns, np.int64), embedding.dimension)


def associated(db: Connection, ns: Sequence[int]) -> set[tuple[int, int]]:
    """Return the associative edges from or to fragments, each from its lower end."""
    rows = db.rows(
        f"SELECT source_n, target_n FROM edges WHERE {among('source_n', 'ns')}"
        " AND kind = 'associative' UNION SELECT source_n, target_n FROM edges"
        f" WHERE {among('target_n', 'ns')} AND kind = 'associative'",
        ns=numbers(ns),
    )
    return {(a, b) if a < b else (b, a) for a, b in rows}


def root_links(db: Connection, *, least: float) -> list[tuple[int, int, float]]:
    """Return which living roots of one project are linked, by themselves or by children.

    Each as (lower, higher, weight of the strongest edge), strongest first.
    """
    tops = (
        "SELECT f.n AS n, f.n AS root FROM fragments f WHERE f.depth = 0 UNION ALL"
        " SELECT e.target_n, e.source_n FROM edges e JOIN fragments r ON r.n = e.source_n"
        " WHERE e.kind = 'hierarchical' AND r.depth = 0"
    )
    rows = db.rows(
        f"WITH tops AS ({tops}) SELECT CASE WHEN a.root < b.root THEN a.root ELSE b.root END AS x,"
        " CASE WHEN a.root < b.root THEN b.root ELSE a.root END AS y, max(l.weight) AS strongest"
        " FROM edges l JOIN tops a ON a.n = l.source_n JOIN tops b ON b.n = l.target_n"
        " JOIN items p ON p.n = a.root JOIN items q ON q.n = b.root"
        " WHERE l.kind = 'associative' AND l.weight >= :least AND a.root <> b.root"
        " AND coalesce(p.project_n, 0) = coalesce(q.project_n, 0)"
        " GROUP BY x, y ORDER BY strongest DESC, x, y",
        least=least,
    )
    living = _living_roots(db)
    return [(a, b, weight) for a, b, weight in rows if a in living and b in living]


def _living_roots(db: Connection) -> set[int]:
    rows = db.rows(
        f"SELECT f.n FROM fragments f WHERE f.depth = 0 AND {LIVING_FRAGMENT}"
        " AND f.kind NOT IN ('insight', 'episode')"
    )
    return {row[0] for row in rows}


def stale_overviews(db: Connection, *, least_children: int) -> list[int]:
    """Return roots that Lore made whose children changed since their last overview.

    What a person said, and what somebody stored or changed by hand, is not Lore's to reword.
    """
    rows = db.rows(
        "SELECT r.n FROM fragments r JOIN edges e ON e.source_n = r.n AND e.kind = 'hierarchical'"
        " JOIN fragments f ON f.n = e.target_n WHERE r.depth = 0 AND r.deleted_at IS NULL"
        " AND r.superseded_by IS NULL AND r.trust < :person AND r.source_messages <> '[]'"
        " AND r.kind NOT IN ('preference', 'episode', 'insight') AND r.n NOT IN"
        " (SELECT a.fragment_n FROM actions a WHERE a.verb IN ('store', 'update'))"
        " GROUP BY r.n, r.overview_at"
        f" HAVING sum(CASE WHEN {LIVING_FRAGMENT} THEN 1 ELSE 0 END) >= :least"
        " AND (r.overview_at IS NULL OR max(f.updated_at) > r.overview_at"
        " OR max(e.created_at) > r.overview_at OR max(coalesce(f.deleted_at, 0)) > r.overview_at"
        " OR max(coalesce(f.valid_to, 0)) > r.overview_at) ORDER BY r.n",
        person=TRUST["user"],
        least=least_children,
    )
    return [row[0] for row in rows]


def set_overview_at(db: Connection, n: int, now: datetime | None) -> None:
    """Remember when a root got its overview; None asks for a fresh one."""
    at = None if now is None else clock.to_us(now)
    db.run("UPDATE fragments SET overview_at = :at WHERE n = :n", at=at, n=n)


def ask_for_overviews(db: Connection, child_ns: Sequence[int]) -> None:
    """Let the parents of fragments get a fresh overview in the next cycle."""
    db.run(
        "UPDATE fragments SET overview_at = NULL WHERE overview_at IS NOT NULL AND n IN"
        " (SELECT source_n FROM edges WHERE kind = 'hierarchical'"
        f" AND {among('target_n', 'ns')})",
        ns=numbers(child_ns),
    )


def prunable(
    db: Connection,
    *,
    unread: tuple[float, timedelta],
    any_: tuple[float, timedelta],
    now: datetime,
) -> list[int]:
    """Return the children that have faded so far, for so long; deepest first.

    Each line is a relevance and an age: one for what was never read, one for the rest. What
    holds an older fragment superseded stays until that one is gone, for else it would stand again.
    """
    rows = db.rows(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.depth > 0"
        " AND f.deleted_at IS NULL AND ((f.relevance < :unread AND f.access_count = 0"
        " AND i.created_at < :unread_before)"
        " OR (f.relevance < :any AND i.created_at < :any_before))"
        " AND f.n NOT IN (SELECT source_n FROM edges WHERE kind = 'supersedes')"
        " AND f.n NOT IN (SELECT a_n FROM judgements WHERE verb = 'prune')"
        " ORDER BY f.depth DESC, f.n",
        unread=unread[0],
        unread_before=clock.to_us(now - unread[1]),
        any=any_[0],
        any_before=clock.to_us(now - any_[1]),
    )
    return [row[0] for row in rows]


def waiting_sessions(db: Connection, *, idle: timedelta, now: datetime) -> list[Waiting]:
    """Return the sessions that said something since they were digested and are idle now."""
    rows = db.rows(
        "SELECT s.n, s.id, s.last_message_at FROM sessions s"
        " LEFT JOIN session_states d ON d.session_n = s.n AND d.name = 'digested'"
        " WHERE s.last_message_at <= :line AND EXISTS"
        " (SELECT 1 FROM messages m WHERE m.session_n = s.n)"
        " AND (d.value IS NULL OR d.value <> CAST(s.last_message_at AS TEXT))"
        " ORDER BY s.last_message_at, s.n",
        line=clock.to_us(now - idle),
    )
    return [Waiting(*row) for row in rows]


def own_words(db: Connection, ns: Sequence[int]) -> dict[int, str]:
    """Return what fragments said before the overviews that they show, of those that show one.

    Whatever was reworded since by anyone but an overview speaks for itself again.
    """
    rows = db.rows(
        "SELECT v.fragment_n, v.content FROM fragment_versions v JOIN (SELECT o.fragment_n AS n,"
        " min(o.version) AS version FROM fragment_versions o WHERE o.reason = 'overview'"
        f" AND {among('o.fragment_n', 'ns')} AND o.version > (SELECT coalesce(max(w.version), 0)"
        " FROM fragment_versions w WHERE w.fragment_n = o.fragment_n AND w.reason <> 'overview')"
        " GROUP BY o.fragment_n) AS first ON v.fragment_n = first.n AND v.version = first.version",
        ns=numbers(ns),
    )
    return dict(rows)
