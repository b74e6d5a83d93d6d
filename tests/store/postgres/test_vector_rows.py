"""Nearest items by pgvector for many rows: by a graph, and by sign bits if they are wide.

An exact search of few rows is tested with the other indexes, in `test_nearest_items.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lore.index.quantization import pack_rows, unit_rows
from lore.index.vector_index import VectorFilter
from lore.store import vectors
from lore.store.postgres import vector_rows
from lore.store.postgres.server_database import PostgresDatabase
from lore.store.postgres.vector_rows import PostgresVectorIndex
from lore.store.sql_connection import Connection
from tests.store.samples import add_fragment

ITEMS = 300


def fill(database: PostgresDatabase, dimension: int, *, exact_rows: int) -> NDArray[np.float32]:
    """Store a vector for each of some items; return the vectors."""
    matrix = unit_rows(np.random.default_rng(3).standard_normal((ITEMS, dimension)))

    def work(db: Connection) -> None:
        embedder_n = vectors.ensure_embedder(db, "wide", dimension)
        stored = [
            (add_fragment(db, i), embedder_n, pack_rows(matrix[i : i + 1])) for i in range(ITEMS)
        ]
        db.insert_many("vectors", ("n", "embedder_n", "vector"), stored)
        vector_rows.add(db, stored, exact_rows)

    database.write(work)
    return matrix


@pytest.mark.parametrize(("dimension", "least"), [(64, 0.95), (4_096, 0.9)])
def test_the_nearest_items_are_found(
    dimension: int, least: float, database: PostgresDatabase
) -> None:
    matrix = fill(database, dimension, exact_rows=10)
    index = PostgresVectorIndex(database, "wide", dimension)
    assert len(index) == ITEMS
    shares = []
    for query in matrix[:10] + matrix[10:20]:
        expected = 1 + np.argsort(-(matrix @ query))[:10]
        ns, scores = index.search(query, 10)
        shares.append(len(set(ns) & set(expected)) / 10)
        assert list(scores) == sorted(scores, reverse=True)
    assert np.mean(shares) >= least


def test_a_filter_holds(database: PostgresDatabase) -> None:
    matrix = fill(database, 64, exact_rows=10)
    index = PostgresVectorIndex(database, "wide", 64)
    wanted = np.arange(5, 15)
    ns, _ = index.search(matrix[0], 8, where=VectorFilter(ns=wanted))
    assert len(ns) == 8
    assert set(ns) <= set(wanted)
    ns, _ = index.search(matrix[0], 8, where=VectorFilter(projects=(9,), beside=wanted[:3]))
    assert set(ns) == set(wanted[:3])
    assert len(index.search(matrix[0], 8, where=VectorFilter(types=(7,)))[0]) == 0


def test_rows_go_with_their_items(database: PostgresDatabase) -> None:
    matrix = fill(database, 64, exact_rows=10)
    index = PostgresVectorIndex(database, "wide", 64)
    database.write(lambda db: db.run("DELETE FROM items WHERE n = 1"))
    assert 1 not in index.search(matrix[0], 5)[0]
    assert 1 not in index.numbers()
    assert len(index) == ITEMS - 1


def test_the_graph_answers_for_an_owner_with_many_rows(database: PostgresDatabase) -> None:
    fill(database, 64, exact_rows=10)
    with database.read() as db:
        db.rows(vector_rows._GRAPH_SEARCH)
        plan = db.column(
            "EXPLAIN SELECT n FROM vector_rows WHERE embedder_n = 1 AND in_graph AND dimension = 64"
            " ORDER BY embedding::halfvec(64) <#> :query::halfvec(64) LIMIT 5",
            query=vector_rows.vector_text(np.ones(64, np.float32)),
        )
    assert any("vector_rows_graph_64" in line for line in plan)
