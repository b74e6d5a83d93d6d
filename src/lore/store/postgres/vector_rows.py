"""Vectors on PostgreSQL: a row of pgvector's `halfvec` for each passage of an item.

The rows of an owner with few of them are scanned, which is exact, and read into memory when the
owner searches again. Those of others are in a graph (HNSW) that holds no rows of small owners, so
that these neither pay for it nor dilute it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lore.index.nearest_items import DatabaseItems
from lore.index.numbers import is_among
from lore.index.owner_vectors import OwnerVectors
from lore.index.quantization import SCALE_BYTES, unit_rows, unpack_rows
from lore.index.vector_index import MOST_PASSAGES, PASSAGES
from lore.store.postgres.owner_vector_cache import CacheKey, VectorState
from lore.store.sql_connection import among, int_array, text_array
from lore.store.vectors import filter_conditions, find_embedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lore.index.nearest_items import Nearest
    from lore.index.quantization import Float32s, Int64s
    from lore.index.vector_index import VectorFilter
    from lore.store.postgres.server_database import PostgresDatabase
    from lore.store.sql_connection import Connection, Row

EXACT_ROWS = 20_000
"""Up to this many rows are scanned: 10,000 of 256 dimensions take about as long as the graph."""

MOST_GRAPH_DIMENSIONS = 4_000
"""pgvector's graph of `halfvec` takes no more; beyond, it is of sign bits, and rescored."""

_GRAPH_STEP = 1_000
"""Rows that a write moves into the graph, which takes some milliseconds each."""

_SIGN_CANDIDATES = 8
"""Candidates by sign bits for each item that is wanted, before they are rescored."""


def add(db: Connection, stored: Sequence[Row], exact_rows: int = EXACT_ROWS) -> None:
    """Add the passages of stored vectors, each an item, an embedder and a blob."""
    for embedder_n in sorted({row[1] for row in stored}):
        sql = "SELECT dimension FROM embedders WHERE n = :n"
        dimension = db.number(sql, n=embedder_n) or 0
        size = dimension + SCALE_BYTES
        blobs = [(n, b) for n, of, b in stored if of == embedder_n and not len(b) % size]
        _add(db, embedder_n, dimension, blobs)
        _extend_graph(db, embedder_n, dimension, exact_rows)


def _add(
    db: Connection, embedder_n: int, dimension: int, blobs: Sequence[tuple[int, bytes]]
) -> None:
    ns, parts, texts = [], [], []
    for n, blob in blobs:
        for part, row in enumerate(unit_rows(unpack_rows(blob, dimension)) if blob else ()):
            ns.append(n)
            parts.append(part)
            texts.append(vector_text(row))
    if not ns:
        return
    db.run(
        "INSERT INTO vector_rows (n, embedder_n, part, dimension, project_n, type, created_at,"
        " embedding) SELECT i.n, :embedder_n, new.part, :dimension, coalesce(i.project_n, 0),"
        " i.type, i.created_at, new.embedding::halfvec"
        " FROM unnest(:ns, :parts, :texts) AS new (n, part, embedding)"
        " JOIN items i ON i.n = new.n",
        embedder_n=embedder_n,
        dimension=dimension,
        ns=int_array(ns),
        parts=int_array(parts),
        texts=text_array(texts),
    )


def vector_text(vector: Float32s) -> str:
    """Return a vector as pgvector reads it, at the precision of `halfvec`."""
    return f"[{','.join([f'{x:.5g}' for x in vector.tolist()])}]"


@lru_cache(maxsize=64)
def _query_text(query: bytes) -> str:
    """Return the vector of a question, which is searched for more than once, as a text."""
    return vector_text(unit_rows(np.frombuffer(query, np.float32))[0])


def _extend_graph(db: Connection, embedder_n: int, dimension: int, exact_rows: int) -> None:
    """Move some rows of an owner with many into the graph."""
    count = db.value(
        "SELECT count(*) FROM"
        " (SELECT 1 FROM vector_rows WHERE embedder_n = :n LIMIT :most) AS counted",
        n=embedder_n,
        most=exact_rows + 1,
    )
    if int(count) <= exact_rows:
        return
    db.rows("SELECT ensure_graph(:dimension::integer)", dimension=dimension)
    db.run(
        "UPDATE vector_rows SET in_graph = true WHERE (embedder_n, n, part) IN"
        " (SELECT embedder_n, n, part FROM vector_rows"
        " WHERE embedder_n = :n AND NOT in_graph LIMIT :most)",
        n=embedder_n,
        most=_GRAPH_STEP,
    )


def finish_graphs(db: Connection, exact_rows: int = EXACT_ROWS) -> None:
    """Move all rows of an owner with many into the graph; writes only move some at a time."""
    outside = "SELECT 1 FROM vector_rows WHERE embedder_n = :n AND NOT in_graph LIMIT 1"
    for n, dimension in db.rows("SELECT n, dimension FROM embedders"):
        count = db.number("SELECT count(*) FROM vector_rows WHERE embedder_n = :n", n=n) or 0
        while count > exact_rows and db.find(outside, n=n):
            _extend_graph(db, n, dimension, exact_rows)


class PostgresVectorIndex(DatabaseItems):
    """Finds the items whose vectors are most similar to a query, in the owner's rows."""

    def __init__(self, database: PostgresDatabase, identity: str, dimension: int) -> None:
        self._database = database
        self._identity = identity
        self._dimension = dimension
        self._key = CacheKey(database.owner, identity)
        self._was_read = False

    def __len__(self) -> int:
        with self._database.read() as db:
            return int(db.value(f"SELECT count(*) FROM vector_rows WHERE {_OWN}", **self._own(db)))

    def numbers(self) -> Int64s:
        """Return the numbers of the items that have a vector."""
        with self._database.read() as db:
            sql = f"SELECT DISTINCT n FROM vector_rows WHERE {_OWN} ORDER BY n"
            return np.array(db.column(sql, **self._own(db)), np.int64)

    def search(self, query: Float32s, k: int, *, where: VectorFilter | None = None) -> Nearest:
        """Return the numbers and cosines of the k nearest items, best first."""
        with self._database.read() as db:
            cached = self._find_cached(db)
            if cached is not None:
                return cached.search(query, k, where)
            params: dict[str, object] = {
                **self._own(db),
                "query": _query_text(np.asarray(query, np.float32).tobytes()),
            }
            bounds, more = filter_conditions(where)
            params |= more
            if not self._uses_graph(db, params["embedder_n"]):
                return _items(db.rows(_EXACT.format(bounds=bounds), **params, k=k))
            ns, scores = self._search_graph(db, bounds, params, k, PASSAGES * k)
            if len(ns) < k:  # a few long texts took most of the rows
                ns, scores = self._search_graph(db, bounds, params, k, MOST_PASSAGES * k)
            return ns, scores

    def _search_graph(
        self, db: Connection, bounds: str, params: dict[str, object], k: int, rows: int
    ) -> Nearest:
        is_narrow = self._dimension <= MOST_GRAPH_DIMENSIONS
        sql = (_BY_VECTOR if is_narrow else _BY_SIGNS).format(bounds=bounds, d=self._dimension)
        nearest = rows if is_narrow else _SIGN_CANDIDATES * rows
        db.rows(_GRAPH_SEARCH)
        try:
            return _items(db.rows(sql, **params, rows=nearest, k=k))
        finally:
            db.rows("SET LOCAL enable_sort = on")

    def cosines(self, query: Float32s, ns: Int64s) -> NDArray[np.float64]:
        """Return the cosine of each item's best passage; 0 for an item without a vector."""
        if not np.any(ns):  # 0 stands for no item
            return np.zeros(len(ns))
        with self._database.read() as db:
            cached = self._find_cached(db)
            if cached is not None:
                return cached.cosines(query, ns)
            rows = db.rows(
                "SELECT n, max(-(embedding <#> :query::halfvec)) FROM vector_rows"
                f" WHERE {_OWN} AND {among('n', 'ns')} GROUP BY n",
                query=_query_text(np.asarray(query, np.float32).tobytes()),
                ns=int_array(ns),
                **self._own(db),
            )
        by_n: dict[int, float] = dict(rows)
        return np.array([by_n.get(n, 0.0) for n in ns.tolist()], np.float64)

    def release_pages(self) -> None:
        """Free the owner's vectors in memory unless they were read since the last call."""
        if not self._was_read:
            self._database.vector_cache.release(self._key.owner)
        self._was_read = False

    def _find_cached(self, db: Connection) -> OwnerVectors | None:
        """Return the vectors of this snapshot from memory, if they are there or belong there."""
        self._was_read = True

        def find() -> OwnerVectors | None:
            epoch, changes = db.rows(_STATE)[0]
            if epoch is None:  # a memory that was removed
                return None
            state = VectorState(str(epoch), int(changes))
            return self._database.vector_cache.find(
                self._key, state, lambda former: self._load(db, former)
            )

        return db.once(("vectors", self._identity), find)

    def _load(self, db: Connection, former: OwnerVectors | None) -> OwnerVectors | None:
        """Read the owner's vectors, or what has changed since; None if they are too many."""
        embedder_n = self._own(db)["embedder_n"]
        if former is None:
            count = db.value(_COUNT, embedder_n=embedder_n, most=EXACT_ROWS + 1)
            return self._read(db, embedder_n) if int(count) <= EXACT_ROWS else None
        present: Int64s | None = db.value(_CHANGE_NUMBERS, embedder_n=embedder_n)
        if present is None:
            present = np.empty(0, np.int64)
        if len(present) > EXACT_ROWS:
            return None
        added = present[~is_among(present, former.seq)]
        if not len(former) or 2 * len(added) > len(present):
            return self._read(db, embedder_n)
        return former.changed(
            former.seq[~is_among(former.seq, present)], self._read(db, embedder_n, added)
        )

    def _read(
        self, db: Connection, embedder_n: int | None, seqs: Int64s | None = None
    ) -> OwnerVectors:
        """Return the owner's vectors, or those of some change numbers."""
        some = "" if seqs is None else f" AND {among('v.seq', 'seqs')}"
        params = {} if seqs is None else {"seqs": int_array(seqs)}
        size = self._dimension + SCALE_BYTES
        rows = db.rows(_STORED.format(some=some), embedder_n=embedder_n, size=size, **params)
        blobs = [row[5] for row in rows]
        columns = np.array([row[:5] for row in rows], np.int64).reshape(-1, 5)
        passages = [len(blob) // size for blob in blobs]
        vectors = unpack_rows(b"".join(blobs), self._dimension)
        return OwnerVectors.of(vectors, *np.repeat(columns, passages, axis=0).T.copy())

    def _own(self, db: Connection) -> dict[str, int | None]:
        """Return the number of the embedder in this snapshot: a restore gives it another one."""
        key = ("embedder", self._identity)
        return {"embedder_n": db.once(key, lambda: find_embedder(db, self._identity))}

    def _uses_graph(self, db: Connection, embedder_n: object) -> bool:
        """Return whether all rows are in the graph; those of small owners never are."""
        sql = f"SELECT 1 FROM vector_rows WHERE {_OWN} AND NOT in_graph LIMIT 1"
        return db.find(sql, embedder_n=embedder_n) is None


_OWN = "embedder_n = :embedder_n"

_STATE = (
    "SELECT (SELECT value FROM meta WHERE key = 'epoch'),"
    " coalesce((SELECT last FROM used_numbers WHERE name = 'vector changes'), 0)"
)

_COUNT = f"SELECT count(*) FROM (SELECT 1 FROM vector_rows WHERE {_OWN} LIMIT :most) AS counted"

_CHANGE_NUMBERS = f"SELECT array_agg(seq) FROM vectors WHERE {_OWN}"

_STORED = (
    "SELECT v.seq, v.n, coalesce(i.project_n, 0), i.type, i.created_at, v.vector"
    " FROM vectors v JOIN items i ON i.n = v.n WHERE v.embedder_n = :embedder_n"
    " AND length(v.vector) > 0 AND length(v.vector) % :size = 0{some} ORDER BY v.seq"
)

_EXACT = (
    "SELECT n, max(-(embedding <#> :query::halfvec)) AS score FROM vector_rows"
    f" WHERE {_OWN}{{bounds}} GROUP BY n ORDER BY score DESC, n LIMIT :k"
)

_BY_VECTOR = (
    "SELECT n, max(-distance) AS score FROM (SELECT n,"
    " embedding::halfvec({d}) <#> :query::halfvec({d}) AS distance FROM vector_rows"
    f" WHERE {_OWN} AND in_graph AND dimension = {{d}}{{bounds}}"
    " ORDER BY distance LIMIT :rows) AS nearest GROUP BY n ORDER BY score DESC, n LIMIT :k"
)

_BY_SIGNS = (
    "SELECT n, max(-(embedding <#> :query::halfvec)) AS score FROM (SELECT n, embedding"
    f" FROM vector_rows WHERE {_OWN} AND in_graph AND dimension = {{d}}{{bounds}}"
    " ORDER BY binary_quantize(embedding)::bit({d})"
    " <~> binary_quantize(:query::halfvec)::bit({d}) LIMIT :rows) AS nearest"
    " GROUP BY n ORDER BY score DESC, n LIMIT :k"
)

_GRAPH_SEARCH = (
    "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = 200;"
    " SET LOCAL hnsw.max_scan_tuples = 200000; SET LOCAL enable_sort = off"
)
"""Without sorting, the order of the rows can only come from the graph."""


def _items(rows: Sequence[Row]) -> Nearest:
    return (
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.float32),
    )
