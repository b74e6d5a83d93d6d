"""What every vector index does: that of SQLite, that of PostgreSQL, and Qdrant beside either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lore.index.nearest_items import NearestItems, VectorServer
from lore.index.quantization import unit_rows
from lore.index.vector_index import VectorFilter
from lore.store import vectors
from lore.store.database import Database
from lore.store.postgres.server_database import PostgresDatabase
from lore.store.sql_connection import Connection
from tests.store.samples import add_fragment, minutes

ITEMS, DIMENSION = 60, 64
Open = Callable[[int], NearestItems]
Vectors = NDArray[np.float32]


@pytest.fixture(params=["own", "in memory", "qdrant"])
def open_index(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Open:
    if request.param == "in memory" and not isinstance(database, PostgresDatabase):
        pytest.skip("SQLite has a file")
    if request.param == "qdrant":
        database.vector_server = VectorServer(":memory:", "", str(tmp_path))

    def opened(dimension: int) -> NearestItems:
        index = database.open_index(tmp_path / "v", identity="wide", dimension=dimension)
        request.addfinalizer(index.close)
        if request.param == "in memory":  # the second search reads vectors into memory
            for _ in range(2):
                index.search(np.ones(dimension, np.float32), 1)
        return index

    return opened


def add_items(database: Database, dimension: int, *, items: int = ITEMS) -> Vectors:
    """Store a vector for each of some items, numbered from 1; return the vectors."""
    matrix = unit_rows(np.random.default_rng(3).standard_normal((items, dimension)))
    ns = database.write(
        lambda db: [add_fragment(db, i, created_at=minutes(i)) for i in range(items)]
    )
    put(database, dimension, ns, [matrix[i : i + 1] for i in range(items)])
    return matrix


def put(database: Database, dimension: int, ns: Sequence[int], rows: Sequence[Vectors]) -> None:
    def work(db: Connection) -> None:
        vectors.put(db, vectors.ensure_embedder(db, "wide", dimension), ns, rows)

    database.write(work)


def feed(database: Database, index: NearestItems, dimension: int = DIMENSION) -> int:
    with database.read() as db:
        return vectors.update_index(db, index, vectors.find_embedder(db, "wide") or 0, dimension)


@pytest.mark.parametrize("dimension", [DIMENSION, 4_096])
def test_the_nearest_items_are_those_of_an_exact_search(
    dimension: int, database: Database, open_index: Open
) -> None:
    index = open_index(dimension)
    matrix = add_items(database, dimension)
    feed(database, index, dimension)
    assert len(index) == ITEMS
    for query in matrix[:5] + matrix[5:10]:
        ns, scores = index.search(query, 2)
        # the two that it is the sum of; others are far behind, whatever the precision
        assert set(ns.tolist()) == set((1 + np.argsort(-(matrix @ query))[:2]).tolist())
        assert scores.tolist() == sorted(scores.tolist(), reverse=True)
        assert scores == pytest.approx(np.sort(matrix @ unit_rows(query)[0])[::-1][:2], abs=0.02)


def test_a_filter_of_items_and_projects_holds(database: Database, open_index: Open) -> None:
    index = open_index(DIMENSION)
    matrix = add_items(database, DIMENSION)
    feed(database, index)
    wanted = np.arange(5, 15)
    ns, _ = index.search(matrix[0], 8, where=VectorFilter(ns=wanted))
    assert len(ns) == 8
    assert set(ns.tolist()) <= set(wanted.tolist())
    ns, _ = index.search(matrix[0], 8, where=VectorFilter(projects=(9,), beside=wanted[:3]))
    assert set(ns.tolist()) == set(wanted[:3].tolist())
    ns, _ = index.search(matrix[0], 8, where=VectorFilter(projects=(0, 9)))
    assert len(ns) == 8
    for none in (
        VectorFilter(types=(7,)),
        VectorFilter(types=()),
        VectorFilter(projects=()),
        VectorFilter(ns=wanted[:0]),
    ):
        assert len(index.search(matrix[0], 8, where=none)[0]) == 0


def test_a_filter_of_times_holds(database: Database, open_index: Open) -> None:
    index = open_index(DIMENSION)
    matrix = add_items(database, DIMENSION)
    feed(database, index)
    since, until = (round(minutes(i).timestamp() * 1e6) for i in (10, 13))
    ns, _ = index.search(matrix[0], 8, where=VectorFilter(since_us=since, until_us=until))
    assert sorted(ns.tolist()) == [11, 12, 13]
    ns, _ = index.search(matrix[0], 99, where=VectorFilter(since_us=since))
    assert sorted(ns.tolist()) == list(range(11, ITEMS + 1))


def test_cosines_are_of_the_best_passage(database: Database, open_index: Open) -> None:
    index = open_index(DIMENSION)
    matrix = add_items(database, DIMENSION)
    put(database, DIMENSION, [3], [matrix[[2, 4]]])
    feed(database, index)
    cosines = index.cosines(matrix[4], np.array([5, 1, 9_999, 3]))
    assert cosines == pytest.approx([1, matrix[4] @ matrix[0], 0, 1], abs=0.02)


def test_an_item_is_found_once_by_its_best_passage(database: Database, open_index: Open) -> None:
    index = open_index(DIMENSION)
    matrix = add_items(database, DIMENSION)
    put(database, DIMENSION, [3], [np.repeat(matrix[4:5], 40, axis=0)])
    feed(database, index)
    ns, scores = index.search(matrix[4], 5)
    assert set(ns[:2].tolist()) == {3, 5}
    assert len(set(ns.tolist())) == 5
    assert scores[:2] == pytest.approx([1, 1], abs=0.02)


def test_a_new_vector_replaces_all_passages(database: Database, open_index: Open) -> None:
    index = open_index(DIMENSION)
    matrix = add_items(database, DIMENSION)
    put(database, DIMENSION, [3], [matrix[[2, 10, 11]]])
    feed(database, index)
    put(database, DIMENSION, [3], [matrix[20:21]])
    feed(database, index)
    assert 3 in index.search(matrix[20], 2)[0]
    for former in matrix[[2, 10, 11]]:
        assert 3 not in index.search(former, 1)[0]
    assert len(index) == ITEMS


def test_vectors_go_with_their_items(database: Database, open_index: Open) -> None:
    index = open_index(DIMENSION)
    matrix = add_items(database, DIMENSION)
    feed(database, index)
    database.write(lambda db: db.run("DELETE FROM items WHERE n = 1"))
    index.remove([1])
    assert 1 not in index.search(matrix[0], 5)[0]
    assert 1 not in index.numbers()
    assert len(index) == ITEMS - 1
    assert index.check() == []


def test_a_cleared_index_is_filled_again(database: Database, open_index: Open) -> None:
    index = open_index(DIMENSION)
    matrix = add_items(database, DIMENSION)
    feed(database, index)
    index.clear()
    feed(database, index)
    assert len(index) == ITEMS
    assert index.search(matrix[7], 1)[0].tolist() == [8]
    assert index.notice == ""
