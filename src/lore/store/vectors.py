"""Embedding vectors: stored with their embedder, and the source of the vector index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore.index.quantization import SCALE_BYTES, pack_rows, unpack_rows
from lore.index.vector_index import VectorIndex, VectorRow
from lore.store import database
from lore.store.codec import unpack_parts
from lore.store.items import NEVER_EMBEDDED
from lore.store.sqlite import Connection, among, int_array
from lore.text import passages
from lore.text.message_features import spoken_text

_BATCH_ROWS = 4_096

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


def set_active_embedder(db: Connection, identity: str, dimension: int) -> int:
    """Make an embedder the one that is searched, queue items of others, and count pending items."""
    n = ensure_embedder(db, identity, dimension)
    database.set_meta(db, "embedder", identity)
    db.run(
        "UPDATE items SET embedder_n = NULL WHERE embedder_n <> :never AND embedder_n <> :n",
        never=NEVER_EMBEDDED,
        n=n,
    )
    return count_pending(db)


def count_pending(db: Connection) -> int:
    """Count the items that wait for their vector."""
    return int(db.value("SELECT count(*) FROM items WHERE embedder_n IS NULL"))


def pending_items(db: Connection, *, limit: int) -> list[PendingItem]:
    """Return items that wait for their vector, newest first: these are searched for soonest."""
    sql = (
        "SELECT i.n, m.parts, d.text, f.summary, f.content FROM items i"
        " LEFT JOIN messages m ON m.n = i.n LEFT JOIN distillations d ON d.n = i.n"
        " LEFT JOIN fragments f ON f.n = i.n"
        " WHERE i.embedder_n IS NULL ORDER BY i.n DESC LIMIT :limit"
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
    """Store the vectors of items that still exist: for each item a row per passage, in one blob."""
    there = set(db.column(f"SELECT n FROM items WHERE {among('n', 'ns')}", ns=int_array(ns)))
    stored = sorted(
        (n, embedder_n, pack_rows(matrix))
        for n, matrix in zip(ns, matrices, strict=True)
        if n in there
    )
    db.run_many("DELETE FROM vectors WHERE n = :n", [row[:1] for row in stored])
    db.insert_many("vectors", ("n", "embedder_n", "vector"), stored)
    db.run_many(
        "UPDATE items SET embedder_n = :embedder_n WHERE n = :n",
        [(embedder_n, n) for n, _, _ in stored],
    )


def renumber(db: Connection, n: int) -> None:
    """Give an item's vector a new change number, as if it had been stored just now."""
    row = db.find("DELETE FROM vectors WHERE n = :n RETURNING embedder_n, vector", n=n)
    if row:
        db.insert("vectors", n=n, embedder_n=row[0], vector=row[1])


def load(db: Connection, ns: NDArray[np.int64], dimension: int) -> Matrix:
    """Return a vector of each item in their order; a row of zeros for a missing vector.

    That of a text of several passages is the normalized mean of theirs.
    """
    matrix = np.zeros((len(ns), dimension), dtype=np.float32)
    by_n = load_passages(db, ns, dimension)
    for place, n in enumerate(ns.tolist()):
        rows = by_n.get(n)
        if rows is not None:
            mean = rows.mean(axis=0)
            matrix[place] = rows[0] if len(rows) == 1 else mean / (np.linalg.norm(mean) or 1.0)
    return matrix


def load_passages(db: Connection, ns: NDArray[np.int64], dimension: int) -> dict[int, Matrix]:
    """Return the vectors of the passages of items, one row each; no entry for a missing one."""
    if not len(ns):
        return {}
    rows = db.rows(
        "SELECT v.n, v.vector FROM vectors v JOIN embedders e ON e.n = v.embedder_n"
        " JOIN items i ON i.n = v.n AND i.embedder_n = v.embedder_n"
        f" WHERE e.dimension = :dimension AND {_WHOLE_BLOB} AND {among('v.n', 'ns')}",
        dimension=dimension,
        ns=int_array(ns),
    )
    return {n: unpack_rows(blob, dimension) for n, blob in rows}


def update_index(db: Connection, index: VectorIndex, embedder_n: int, dimension: int) -> int:
    """Append new vectors to the index; return how many were added."""
    added = 0
    newest = newest_seq(db)
    while (last_seq := index.last_seq) < newest:
        rows = db.rows(
            "SELECT v.seq, v.n, coalesce(i.project_n, 0), i.type, i.created_at, v.vector"
            " FROM vectors v JOIN items i ON i.n = v.n"
            f" WHERE v.seq > :seq AND v.embedder_n = :embedder_n AND {_WHOLE_BLOB}"
            " ORDER BY v.seq LIMIT :limit",
            seq=last_seq,
            embedder_n=embedder_n,
            dimension=dimension,
            limit=_BATCH_ROWS,
        )
        if not rows:
            break
        matrix = unpack_rows(b"".join(row[5] for row in rows), dimension)
        size = dimension + SCALE_BYTES
        entries = [VectorRow(*row[:5]) for row in rows for _ in range(len(row[5]) // size)]
        index.append(entries, matrix, after_seq=last_seq)
        added += len(entries)
    return added


def items_without_vectors(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return those of the items that have no vector."""
    sql = f"SELECT n FROM vectors WHERE {among('n', 'ns')}"
    return sorted(set(ns).difference(db.column(sql, ns=int_array(ns))))


def newest_seq(db: Connection) -> int:
    """Return the highest change number of a vector."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM vectors"))
