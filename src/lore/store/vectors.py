"""Vectors: kept with the name of the embedder that made them; the index is fed from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore.store.items import NEVER_EMBEDDED
from lore.store.packing import unpack_parts
from lore.store.sqlite import Connection, among, numbers
from lore.store.vector_index import VectorIndex, VectorRow
from lore.text.parts import said

_FEED = 4_096

Matrix = NDArray[np.float32]


class Waiting(NamedTuple):
    """An item that has no vector yet, with the text to embed."""

    n: int
    text: str


def ensure_embedder(db: Connection, identity: str, dimension: int) -> int:
    """Return the number of an embedder, made if it is new."""
    found = db.value("SELECT n FROM embedders WHERE identity = :identity", identity=identity)
    return int(
        found
        or db.value(
            "INSERT INTO embedders (identity, dimension)"
            " VALUES (:identity, :dimension) RETURNING n",
            identity=identity,
            dimension=dimension,
        )
    )


def find_embedder(db: Connection, identity: str) -> int | None:
    """Return the number of an embedder, if vectors of it were ever stored."""
    found = db.value("SELECT n FROM embedders WHERE identity = :identity", identity=identity)
    return None if found is None else int(found)


def find_adopted(db: Connection) -> str | None:
    """Return the identity of the embedder whose vectors are searched."""
    found = db.value("SELECT value FROM meta WHERE key = 'embedder'")
    return None if found is None else str(found)


def adopt(db: Connection, identity: str, dimension: int) -> int:
    """Search vectors of this embedder from now on; queue all others; count what waits."""
    n = ensure_embedder(db, identity, dimension)
    db.run(
        "INSERT INTO meta (key, value) VALUES ('embedder', :identity)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        identity=identity,
    )
    db.run(
        "UPDATE items SET embedder_n = NULL WHERE embedder_n <> :never AND embedder_n <> :n",
        never=NEVER_EMBEDDED,
        n=n,
    )
    return count_waiting(db)


def count_waiting(db: Connection) -> int:
    """Return how many items wait for their vector."""
    return int(db.value("SELECT count(*) FROM items WHERE embedder_n IS NULL"))


def waiting(db: Connection, *, limit: int) -> list[Waiting]:
    """Return items that wait for their vector, newest first: they are asked for soonest."""
    rows = db.rows(
        "SELECT i.n, m.parts, d.text, f.summary, f.content FROM items i"
        " LEFT JOIN messages m ON m.n = i.n LEFT JOIN distillations d ON d.n = i.n"
        " LEFT JOIN fragments f ON f.n = i.n"
        " WHERE i.embedder_n IS NULL ORDER BY i.n DESC LIMIT :limit",
        limit=limit,
    )
    return [Waiting(n, _embedded_text(*rest)) for n, *rest in rows]


def _embedded_text(
    parts: str | None, distilled: str | None, summary: str | None, content: str | None
) -> str:
    if parts is not None:
        return said(unpack_parts(parts))
    if distilled is not None:
        return distilled
    return fragment_text(summary or "", content or "")


def fragment_text(summary: str, content: str) -> str:
    """Return what of a fragment is embedded: a summary that was only derived adds nothing."""
    return content if content.startswith(summary.rstrip("…")) else f"{summary}\n{content}"


def put(db: Connection, embedder_n: int, ns: Sequence[int], matrix: Matrix) -> None:
    """Store vectors of items that still exist."""
    there = {
        row[0] for row in db.rows(f"SELECT n FROM items WHERE {among('n', 'ns')}", ns=numbers(ns))
    }
    halves = matrix.astype(np.float16)
    kept = sorted((n, halves[i].tobytes()) for i, n in enumerate(ns) if n in there)
    db.run_many("DELETE FROM vectors WHERE n = :n", ({"n": n} for n, _ in kept))
    db.run_many(
        "INSERT INTO vectors (n, embedder_n, vector) VALUES (:n, :embedder_n, :vector)",
        ({"n": n, "embedder_n": embedder_n, "vector": blob} for n, blob in kept),
    )
    db.run_many(
        "UPDATE items SET embedder_n = :embedder_n WHERE n = :n",
        ({"n": n, "embedder_n": embedder_n} for n, _ in kept),
    )


def renew(db: Connection, n: int) -> None:
    """Give the vector of an item a new change number, as if it had come just now."""
    row = db.find("DELETE FROM vectors WHERE n = :n RETURNING embedder_n, vector", n=n)
    if row:
        db.run(
            "INSERT INTO vectors (n, embedder_n, vector) VALUES (:n, :embedder_n, :vector)",
            n=n,
            embedder_n=row[0],
            vector=row[1],
        )


def load(db: Connection, ns: NDArray[np.int64], dimension: int) -> Matrix:
    """Return the stored vectors of items, in their order; zeros for one that has none."""
    matrix = np.zeros((len(ns), dimension), dtype=np.float32)
    if not len(ns):
        return matrix
    place = {int(n): i for i, n in enumerate(ns)}
    rows = db.rows(f"SELECT n, vector FROM vectors WHERE {among('n', 'ns')}", ns=numbers(ns))
    for n, blob in rows:
        if len(blob) == 2 * dimension:
            matrix[place[n]] = np.frombuffer(blob, dtype=np.float16)
    return matrix


def feed(db: Connection, index: VectorIndex, embedder_n: int, dimension: int) -> int:
    """Bring the index up to date with the database; return how many vectors it took."""
    taken = 0
    newest = newest_seq(db)
    while (seen := index.last_seq) < newest:
        rows = db.rows(
            "SELECT v.seq, v.n, coalesce(i.project_n, 0), i.type, i.created_at, v.vector"
            " FROM vectors v JOIN items i ON i.n = v.n"
            " WHERE v.seq > :seq AND v.embedder_n = :embedder_n ORDER BY v.seq LIMIT :limit",
            seq=seen,
            embedder_n=embedder_n,
            limit=_FEED,
        )
        if not rows:
            break
        blobs = b"".join(row[5] for row in rows)
        halves = np.frombuffer(blobs, dtype=np.float16).reshape(len(rows), dimension)
        index.append([VectorRow(*row[:5]) for row in rows], halves, after_seq=seen)
        taken += len(rows)
    return taken


def without(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return those of the items that have no vector."""
    rows = db.rows(f"SELECT n FROM vectors WHERE {among('n', 'ns')}", ns=numbers(ns))
    return sorted(set(ns) - {row[0] for row in rows})


def newest_seq(db: Connection) -> int:
    """Return the highest change number of a vector."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM vectors"))


def count(db: Connection, embedder_n: int) -> int:
    """Return how many vectors an embedder has made."""
    return int(db.value("SELECT count(*) FROM vectors WHERE embedder_n = :n", n=embedder_n))
