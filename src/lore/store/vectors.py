"""Embedding vectors: stored with their embedder, and the source of the vector index."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore.index.nearest_items import NEWEST, NearestItems
from lore.index.quantization import SCALE_BYTES, pack_rows, unit_rows, unpack_rows
from lore.index.vector_index import VectorFilter, VectorRow
from lore.store import database, replacements
from lore.store.codec import unpack_parts
from lore.store.items import NEVER_EMBEDDED
from lore.store.overview import PENDING, find_overview
from lore.store.sql_connection import Connection, among, int_array
from lore.text import passages
from lore.text.message_features import spoken_text

if TYPE_CHECKING:
    from lore.index.nearest_items import Nearest

_BATCH_ROWS = 4_096
_SHORT_BATCH_ROWS = 512
"""Rows between two looks at the clock, where there is a time limit."""

_SCANNED_BYTES = 10_000_000
"""Stored vectors up to this size are read for one search: 25,000 of 384 dimensions take 60 ms."""

Matrix = NDArray[np.float32]

_WHOLE_BLOB = f"length(v.vector) > 0 AND length(v.vector) % (:dimension + {SCALE_BYTES}) = 0"
"""A damaged vector is as good as none."""


class PendingItem(NamedTuple):
    """An item without a vector, with the text or the passages to embed."""

    n: int
    texts: list[str]


def ensure_embedder(db: Connection, identity: str, dimension: int) -> int:
    """Return the number of an embedder, created if it is new."""
    return find_embedder(db, identity) or db.insert_numbered(
        "embedders", identity=identity, dimension=dimension
    )


def find_embedder(db: Connection, identity: str) -> int | None:
    """Return the number of an embedder, or None if it never stored vectors."""
    return db.number("SELECT n FROM embedders WHERE identity = :identity", identity=identity)


def find_active_identity(db: Connection) -> str | None:
    """Return the identity of the embedder whose vectors are searched."""
    return database.find_meta(db, "embedder")


def find_next_identity(db: Connection) -> str | None:
    """Return the identity of the embedder that will be searched once every item has its vector."""
    return database.find_meta(db, "next_embedder")


def set_active_embedder(db: Connection, identity: str, dimension: int) -> int:
    """Search the vectors of an embedder from now on, queue other items, and count pending ones."""
    n = ensure_embedder(db, identity, dimension)
    database.set_meta(db, "embedder", identity)
    _drop_next_embedder(db)
    db.run(
        "UPDATE items SET embedder_n = NULL WHERE embedder_n <> :never AND embedder_n <> :n",
        never=NEVER_EMBEDDED,
        n=n,
    )
    return count_pending(db)


def set_next_embedder(db: Connection, identity: str, dimension: int) -> int:
    """Queue all embedded items for the embedder to search next, and count them.

    The vectors of the active one serve until `switch_embedder`.
    """
    ensure_embedder(db, identity, dimension)
    _drop_next_embedder(db)
    database.set_meta(db, "next_embedder", identity)
    db.run(
        "INSERT INTO next_vectors_queue SELECT n FROM items WHERE embedder_n <> :never",
        never=NEVER_EMBEDDED,
    )
    return count_pending(db, following=True)


def switch_embedder(db: Connection) -> bool:
    """Search the vectors of the next embedder from now on, unless an item lacks its vector."""
    identity = find_next_identity(db)
    if identity is None or count_pending(db, following=True):
        return False
    n = find_embedder(db, identity)
    database.set_meta(db, "embedder", identity)
    _drop_next_embedder(db)
    db.run("UPDATE items SET embedder_n = :n WHERE embedder_n <> :never", n=n, never=NEVER_EMBEDDED)
    # A process of a former version knows neither the queue nor how vectors are stored now.
    db.run(
        "UPDATE items SET embedder_n = NULL WHERE embedder_n = :n AND NOT EXISTS"
        f" (SELECT 1 FROM vectors v WHERE v.n = items.n AND v.embedder_n = :n AND {_WHOLE_BLOB})",
        n=n,
        dimension=db.number("SELECT dimension FROM embedders WHERE n = :n", n=n),
    )
    return True


def _drop_next_embedder(db: Connection) -> None:
    db.run("DELETE FROM meta WHERE key = 'next_embedder'")
    db.run("DELETE FROM next_vectors_queue")


def covers_most(db: Connection, identity: str) -> bool:
    """Return whether at least as many items have a vector of the embedder as wait for one."""
    n = find_embedder(db, identity)
    embedded = db.value("SELECT count(*) FROM items WHERE embedder_n = :n", n=n)
    return bool(embedded) and int(embedded) >= count_pending(db)


def count_active(db: Connection) -> int:
    """Count the items with a vector that is searched."""
    sql = "SELECT count(*) FROM vectors v JOIN embedders e ON e.n = v.embedder_n"
    return int(db.value(f"{sql} WHERE e.identity = :identity", identity=find_active_identity(db)))


_RETIRED = (
    "FROM vectors v JOIN embedders e ON e.n = v.embedder_n WHERE e.identity NOT IN"
    " (SELECT value FROM meta WHERE key IN ('embedder', 'next_embedder'))"
    " AND EXISTS (SELECT 1 FROM meta WHERE key = 'embedder')"
)


def has_retired(db: Connection) -> bool:
    """Return whether there are vectors of an embedder that is no longer used."""
    return db.find(f"SELECT 1 {_RETIRED} LIMIT 1") is not None


def delete_retired(db: Connection, *, limit: int) -> int:
    """Delete some vectors of embedders that are no longer used; return how many."""
    sql = f"DELETE FROM vectors WHERE seq IN (SELECT v.seq {_RETIRED} LIMIT :limit)"
    return db.run(sql, limit=limit)


_QUEUES = {
    False: PENDING,
    True: "next_vectors_queue q JOIN items i ON i.n = q.n"
    f" WHERE i.embedder_n IS NOT {NEVER_EMBEDDED}",
}
"""The items that wait for a vector of the active embedder, or of the one to follow."""


def count_pending(db: Connection, *, following: bool = False) -> int:
    """Count the items that wait for their vector."""
    return int(db.value(f"SELECT count(*) FROM {_QUEUES[following]}"))


def has_pending(db: Connection) -> bool:
    """Return whether an item waits for its vector."""
    if (overview := find_overview(db)) is not None:
        return overview.has_pending
    return db.find(f"SELECT 1 FROM {PENDING} LIMIT 1") is not None


def pending_items(db: Connection, *, limit: int, following: bool = False) -> list[PendingItem]:
    """Return items that wait for their vector, newest first: these are searched for soonest."""
    sql = (
        f"WITH pending AS (SELECT i.n FROM {_QUEUES[following]} ORDER BY 1 DESC LIMIT :limit)"
        " SELECT p.n, m.parts, d.text, f.summary, f.content FROM pending p"
        " LEFT JOIN messages m ON m.n = p.n LEFT JOIN distillations d ON d.n = p.n"
        " LEFT JOIN fragments f ON f.n = p.n ORDER BY p.n DESC"
    )
    return [PendingItem(n, _embedded_texts(*rest)) for n, *rest in db.rows(sql, limit=limit)]


def _embedded_texts(
    parts: str | None, distilled: str | None, summary: str | None, content: str | None
) -> list[str]:
    """Return the passages of a message or distillation, or the text of a fragment."""
    if parts is not None:
        return passages.texts(spoken_text(unpack_parts(parts)))
    if distilled is not None:
        return passages.texts(distilled)
    return [fragment_text(summary or "", content or "")]


def fragment_text(summary: str, content: str) -> str:
    """Return the text of a fragment to embed; a summary that repeats the content is left out."""
    return content if content.startswith(summary.rstrip("…")) else f"{summary}\n{content}"


def put(db: Connection, embedder_n: int, ns: Sequence[int], matrices: Iterable[Matrix]) -> None:
    """Store the vectors of items that still exist: for each item a row per passage, in one blob.

    An item with a vector of the active embedder is queued to be judged (what it replaces, what
    replaces it), and for the embedder to follow, if any.
    """
    visible = f"embedder_n IS NOT {NEVER_EMBEDDED}"
    sql = f"SELECT n FROM items WHERE {visible} AND {among('n', 'ns')}"
    there = set(db.column(sql, ns=int_array(ns)))
    stored = sorted(
        (n, embedder_n, pack_rows(matrix))
        for n, matrix in zip(ns, matrices, strict=True)
        if n in there
    )
    db.run_many(
        "DELETE FROM vectors WHERE n = :n AND embedder_n = :embedder_n",
        [row[:2] for row in stored],
    )
    db.insert_many("vectors", ("n", "embedder_n", "vector"), stored)
    db.index_vectors(stored)
    following = find_next_identity(db)
    if following is not None and find_embedder(db, following) == embedder_n:
        db.run_many("DELETE FROM next_vectors_queue WHERE n = :n", [(n,) for n in ns])
        return
    db.run_many(
        "UPDATE items SET embedder_n = :embedder_n WHERE n = :n",
        [(embedder_n, n) for n, _, _ in stored],
    )
    replacements.queue(db, [n for n, _, _ in stored])
    if following is not None:
        sql = "INSERT INTO next_vectors_queue VALUES (:n) ON CONFLICT DO NOTHING"
        db.run_many(sql, [(n,) for n, _, _ in stored])


def renumber(db: Connection, n: int) -> None:
    """Give an item's vectors new change numbers, as if they had been stored just now."""
    rows = db.rows("DELETE FROM vectors WHERE n = :n RETURNING n, embedder_n, vector", n=n)
    db.insert_many("vectors", ("n", "embedder_n", "vector"), rows)
    db.index_vectors(rows)


def load(db: Connection, embedder_n: int | None, ns: NDArray[np.int64], dimension: int) -> Matrix:
    """Return a vector of each item in their order; a row of zeros for a missing vector.

    That of a text of several passages is the normalized mean of theirs.
    """
    matrix = np.zeros((len(ns), dimension), dtype=np.float32)
    by_n = load_passages(db, embedder_n, ns, dimension)
    for place, n in enumerate(ns.tolist()):
        rows = by_n.get(n)
        if rows is not None:
            mean = rows.mean(axis=0)
            matrix[place] = rows[0] if len(rows) == 1 else mean / (np.linalg.norm(mean) or 1.0)
    return matrix


def load_passages(
    db: Connection, embedder_n: int | None, ns: NDArray[np.int64], dimension: int
) -> dict[int, Matrix]:
    """Return the vectors of the passages of items, one row each; no entry for a missing one."""
    if not len(ns) or embedder_n is None:
        return {}
    rows = db.rows(
        "SELECT v.n, v.vector FROM vectors v"
        f" WHERE v.embedder_n = :embedder_n AND {_WHOLE_BLOB} AND {among('v.n', 'ns')}",
        embedder_n=embedder_n,
        dimension=dimension,
        ns=int_array(ns),
    )
    matrix = unpack_rows(b"".join(blob for _, blob in rows), dimension)
    size = dimension + SCALE_BYTES
    ends = accumulate(len(blob) // size for _, blob in rows)
    return {
        n: matrix[end - len(blob) // size : end] for (n, blob), end in zip(rows, ends, strict=True)
    }


def best_cosines(query: Matrix, matrices: Sequence[Matrix]) -> Matrix:
    """Return the cosine of the best row of each matrix with a query of length 1."""
    if not matrices:
        return np.empty(0, np.float32)
    starts = np.cumsum([0, *(len(rows) for rows in matrices[:-1])])
    best: Matrix = np.maximum.reduceat(np.concatenate(matrices) @ query, starts)
    return best


def stored_cosines(
    db: Connection, embedder_n: int | None, query: Matrix, ns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the cosine of each item's best stored passage; 0 for an item without a vector."""
    by_n = load_passages(db, embedder_n, ns, len(query))
    best = best_cosines(unit_rows(query)[0], list(by_n.values()))
    cosines = dict(zip(by_n, best.tolist(), strict=True))
    return np.array([cosines.get(n, 0.0) for n in ns.tolist()], np.float64)


def scan_stored(
    db: Connection,
    embedder_n: int | None,
    query: Matrix,
    k: int,
    where: VectorFilter | None,
    *,
    most_bytes: int = _SCANNED_BYTES,
) -> Nearest | None:
    """Return the k nearest items by reading every stored vector; None if there are too many."""
    dimension = len(query)
    count = db.value("SELECT count(*) FROM vectors WHERE embedder_n = :n", n=embedder_n)
    if int(count) * (dimension + SCALE_BYTES) > most_bytes:
        return None
    conditions, params = filter_conditions(where)
    rows = db.rows(
        "SELECT n, vector FROM (SELECT v.n, v.vector, coalesce(i.project_n, 0) AS project_n,"
        " i.type, i.created_at FROM vectors v JOIN items i ON i.n = v.n"
        f" WHERE v.embedder_n = :embedder_n AND {_WHOLE_BLOB}) AS stored WHERE true{conditions}",
        embedder_n=embedder_n,
        dimension=dimension,
        **params,
    )
    scores = best_cosines(unit_rows(query)[0], [unpack_rows(blob, dimension) for _, blob in rows])
    best = np.argsort(-scores, kind="stable")[:k]
    return np.array([rows[at][0] for at in best.tolist()], np.int64), scores[best]


def filter_conditions(where: VectorFilter | None) -> tuple[str, dict[str, object]]:
    """Return a filter of items as conditions of SQL, each with AND before it, and parameters."""
    if where is None:
        return "", {}
    bounds: list[str] = []
    params: dict[str, object] = {}
    if where.projects is not None:
        of_projects = among("project_n", "projects")
        params["projects"] = int_array(where.projects)
        if where.beside is not None:
            of_projects = f"({of_projects} OR {among('n', 'beside')})"
            params["beside"] = int_array(where.beside)
        bounds.append(of_projects)
    if where.types is not None:
        bounds.append(among("type", "types"))
        params["types"] = int_array(where.types)
    if where.ns is not None:
        bounds.append(among("n", "ns"))
        params["ns"] = int_array(where.ns)
    if where.since_us is not None:
        bounds.append("created_at >= :since_us")
        params["since_us"] = where.since_us
    if where.until_us is not None:
        bounds.append("created_at < :until_us")
        params["until_us"] = where.until_us
    return "".join(f" AND {bound}" for bound in bounds), params


def update_index(
    db: Connection,
    index: NearestItems,
    embedder_n: int,
    dimension: int,
    *,
    within_s: float | None = None,
) -> int:
    """Append new vectors to the index until the time is up; return how many were added."""
    added = 0
    if index.last_seq >= NEWEST:
        return 0
    newest = newest_seq(db)
    started = time.monotonic()
    while (last_seq := index.last_seq) < newest:
        rows = db.rows(
            "SELECT v.seq, v.n, coalesce(i.project_n, 0), i.type, i.created_at, v.vector"
            " FROM vectors v JOIN items i ON i.n = v.n"
            f" WHERE v.seq > :seq AND v.embedder_n = :embedder_n AND {_WHOLE_BLOB}"
            " ORDER BY v.seq LIMIT :limit",
            seq=last_seq,
            embedder_n=embedder_n,
            dimension=dimension,
            limit=_BATCH_ROWS if within_s is None else _SHORT_BATCH_ROWS,
        )
        if not rows:
            break
        matrix = unpack_rows(b"".join(row[5] for row in rows), dimension)
        size = dimension + SCALE_BYTES
        entries = [VectorRow(*row[:5]) for row in rows for _ in range(len(row[5]) // size)]
        index.append(entries, matrix, after_seq=last_seq)
        added += len(entries)
        if within_s is not None and time.monotonic() - started > within_s:
            break
    return added


def list_passages(db: Connection, embedder_n: int | None, dimension: int) -> NDArray[np.int64]:
    """Return for each stored vector its change number, its item and its number of passages."""
    size = dimension + SCALE_BYTES
    rows = db.rows(
        "SELECT v.seq, v.n, CASE WHEN length(v.vector) % :size = 0"
        " THEN length(v.vector) / :size ELSE 0 END"
        " FROM vectors v WHERE v.embedder_n = :embedder_n ORDER BY v.seq",
        size=size,
        embedder_n=embedder_n,
    )
    return np.array(rows, np.int64).reshape(-1, 3)


def count_through(db: Connection, embedder_n: int | None, seq: int) -> int:
    """Count the stored vectors up to a change number; it can only shrink."""
    sql = "SELECT count(*) FROM vectors WHERE embedder_n = :n AND seq <= :seq"
    return int(db.value(sql, n=embedder_n, seq=seq))


def newest_change(db: Connection, embedder_n: int | None) -> int:
    """Return the highest change number of an embedder's stored vectors; 0 if there are none."""
    return db.number("SELECT max(seq) FROM vectors WHERE embedder_n = :n", n=embedder_n) or 0


def existing_changes(db: Connection, embedder_n: int | None, seqs: Iterable[int]) -> set[int]:
    """Return those of the change numbers whose vectors are still stored."""
    sql = f"SELECT seq FROM vectors WHERE embedder_n = :n AND {among('seq', 'seqs')}"
    return set(db.column(sql, n=embedder_n, seqs=int_array(list(seqs))))


def items_without_vectors(db: Connection, embedder_n: int | None, ns: Sequence[int]) -> list[int]:
    """Return those of the items that have no vector of an embedder."""
    sql = f"SELECT n FROM vectors WHERE embedder_n = :embedder_n AND {among('n', 'ns')}"
    there = db.column(sql, embedder_n=embedder_n, ns=int_array(ns))
    return sorted(set(ns).difference(there))


def newest_seq(db: Connection) -> int:
    """Return the highest change number that a vector ever had, also one that was deleted."""
    return db.next_number("vectors") - 1
