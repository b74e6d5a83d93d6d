"""Qdrant as derived state: over HTTP, when it is away, when it comes back, and for many owners."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lore.index.nearest_items import NearestItems, VectorServer
from lore.index.qdrant_points import Outage, QdrantPoints, connect, erase_owner
from lore.index.vector_index import VectorFilter, VectorRow
from lore.store import vectors
from lore.store.database import Database
from lore.store.qdrant_index import RETRY_AFTER_S, VERIFY_AFTER_S, QdrantIndex
from tests.index.qdrant_server import QdrantServer
from tests.index.qdrant_server import qdrant as qdrant
from tests.index.qdrant_server import running as running
from tests.store.samples import minutes
from tests.store.test_nearest_items import DIMENSION, ITEMS, Vectors, add_items, feed, put

pytestmark = pytest.mark.only_sqlite("test_nearest_items has both engines; this is of Qdrant")


class Seconds:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def open_index(
    database: Database,
    qdrant: QdrantServer,
    seconds: Seconds | None = None,
    *,
    identity: str = "wide",
    dimension: int = DIMENSION,
    points: type[QdrantPoints] = QdrantPoints,
    epoch: str = "one",
    outage: Outage | None = None,
) -> QdrantIndex:
    server = VectorServer(qdrant.url, "", "an owner's hash", timeout_s=60)
    return QdrantIndex(
        database,
        points(server, identity=identity, dimension=dimension, epoch=epoch),
        identity=identity,
        fallback=lambda db, unit, k, where: database.search_stored(identity, db, unit, k, where),
        monotonic=seconds or Seconds(),
        outage=outage,
    )


def hits(index: NearestItems, query: Vectors, k: int = 5) -> list[int]:
    ns: list[int] = index.search(query, k)[0].tolist()
    return ns


def remote_hits(qdrant: QdrantServer, index: NearestItems, query: Vectors, k: int = 5) -> list[int]:
    """Return what Qdrant finds, not the database."""
    before = qdrant.searches
    found = hits(index, query, k)
    assert qdrant.searches > before
    return found


def delete(database: Database, *ns: int) -> None:
    database.write(lambda db: db.run_many("DELETE FROM items WHERE n = :n", [(n,) for n in ns]))


def stored(qdrant: QdrantServer) -> list[int]:
    return sorted(payload["n"] for payload in qdrant.payloads())


def test_points_have_numbers_and_hashes_and_no_text(
    database: Database, qdrant: QdrantServer
) -> None:
    add_items(database, DIMENSION)
    feed(database, open_index(database, qdrant))
    numbers = {"seq", "n", "part", "project", "type", "created"}
    for payload in qdrant.payloads():
        assert set(payload) == numbers | {"owner", "space"}
        assert payload["owner"] == "an owner's hash"
        assert all(isinstance(payload[name], int) for name in numbers)
    assert [one.name for one in qdrant.engine.get_collections().collections] == ["lore_64"]
    assert set(qdrant.indexed) == {"owner", "space", "seq", "n", "project", "type", "created"}


def test_owners_with_the_same_ids_never_see_each_other(tmp_path: Path) -> None:
    matrix = np.eye(DIMENSION, dtype=np.float32)
    one, other = (
        QdrantPoints(
            VectorServer(":memory:", "", f"{tmp_path} {name}"),
            identity="same", dimension=DIMENSION, epoch="same",
        )
        for name in ("one", "other")
    )  # fmt: skip
    for points, vectors_ in ((one, matrix), (other, matrix[::-1].copy())):
        points.prepare()
        points.put([VectorRow(n, n, 0, 0, 0) for n in range(1, 65)], [0] * 64, vectors_)
    assert one.search(matrix[0], 1, None, is_exact=True)[0].tolist() == [1]
    assert other.search(matrix[0], 1, None, is_exact=True)[0].tolist() == [64]
    named = VectorFilter(ns=np.array([1]))
    assert other.search(matrix[0], 9, named, is_exact=True)[1].tolist() == [0]
    one.remove_items([1, 2])
    one.remove_changes([3])
    assert one.count(99) == 61
    assert other.count(99) == len(other.list_points()) == 64
    one.remove_all()
    one.prepare()
    assert one.count(99) == 0
    assert other.count(99) == 64
    erase_owner(VectorServer(":memory:", "", f"{tmp_path} other"))
    assert other.count(99) == 0


def test_a_point_is_sent_again_without_a_copy(database: Database, qdrant: QdrantServer) -> None:
    add_items(database, DIMENSION)
    feed(database, open_index(database, qdrant))
    ids = {record.id for record in qdrant.engine.scroll("lore_64", limit=999)[0]}
    second = open_index(database, qdrant)
    with database.read() as db:
        rows = vectors.list_passages(db, 1, DIMENSION)
    points = second._points
    points.put([VectorRow(seq, n, 0, 0, 0) for seq, n, _ in rows.tolist()], [0] * ITEMS,
               np.ones((ITEMS, DIMENSION), np.float32))  # fmt: skip
    assert {record.id for record in qdrant.engine.scroll("lore_64", limit=999)[0]} == ids


def test_the_database_answers_while_qdrant_is_away(
    database: Database, qdrant: QdrantServer, seconds: Seconds
) -> None:
    matrix = add_items(database, DIMENSION)
    index = open_index(database, qdrant, seconds)
    feed(database, index)
    before = index.search(matrix[3], 10)
    assert remote_hits(qdrant, index, matrix[3], 10) == before[0].tolist()
    only = VectorFilter(ns=np.array([7, 9, 60]), until_us=round(minutes(20).timestamp() * 1e6))
    filtered = index.search(matrix[3], 10, where=only)
    assert set(filtered[0].tolist()) == {7, 9}
    qdrant.stop()
    away = index.search(matrix[3], 10)
    assert away[0].tolist() == before[0].tolist()
    assert away[1] == pytest.approx(before[1], abs=0.01)
    assert index.search(matrix[3], 10, where=only)[0].tolist() == filtered[0].tolist()
    assert "cannot be reached" in index.notice
    assert feed(database, index) == 0


def test_one_memory_waits_for_a_silent_server_and_no_other(
    database: Database, qdrant: QdrantServer, seconds: Seconds
) -> None:
    asked: list[str] = []

    class Counted(QdrantPoints):
        def search(self, *arguments, **named):
            asked.append("search")
            return super().search(*arguments, **named)

        def prepare(self) -> None:
            asked.append("prepare")
            super().prepare()

        def count(self, *arguments):
            asked.append("count")
            return super().count(*arguments)

    matrix = add_items(database, DIMENSION)
    outage = Outage()
    one = open_index(database, qdrant, seconds, outage=outage)
    other = open_index(database, qdrant, seconds, outage=outage, points=Counted)
    for index in (one, other):
        feed(database, index)
    before = other.search(matrix[3], 10)[0].tolist()
    qdrant.stop()
    one.search(matrix[3], 10)
    asked.clear()
    assert other.search(matrix[3], 10)[0].tolist() == before
    assert asked == []
    assert "cannot be reached" in other.notice
    qdrant.start()
    seconds.now += RETRY_AFTER_S
    assert other.search(matrix[3], 10)[0].tolist() == before
    assert "search" in asked
    assert other.notice == ""


def test_a_server_that_was_away_at_the_start_is_filled_when_it_is_back(
    database: Database, qdrant: QdrantServer, seconds: Seconds
) -> None:
    matrix = add_items(database, DIMENSION)
    qdrant.stop()
    index = open_index(database, qdrant, seconds)
    feed(database, index)
    assert hits(index, matrix[3], 1) == [4]
    qdrant.start()
    feed(database, index)
    assert stored(qdrant) == []  # not asked again at once
    seconds.now += RETRY_AFTER_S
    feed(database, index)
    assert stored(qdrant) == list(range(1, ITEMS + 1))
    assert index.notice == ""
    assert remote_hits(qdrant, index, matrix[3], 1) == [4]


def test_what_is_deleted_while_qdrant_is_away_is_removed_before_it_is_searched(
    database: Database, qdrant: QdrantServer, seconds: Seconds
) -> None:
    matrix = add_items(database, DIMENSION)
    index = open_index(database, qdrant, seconds)
    feed(database, index)
    qdrant.stop()
    delete(database, 4)
    index.remove([4])
    assert 4 not in hits(index, matrix[3])
    qdrant.start()
    assert 4 in stored(qdrant)
    seconds.now += RETRY_AFTER_S
    assert 4 not in remote_hits(qdrant, index, matrix[3])
    assert index.notice == ""
    assert 4 not in stored(qdrant)


def test_what_another_process_deletes_while_qdrant_is_away_is_not_found(
    database: Database, qdrant: QdrantServer
) -> None:
    matrix = add_items(database, DIMENSION)
    index = open_index(database, qdrant)
    feed(database, index)
    other = open_index(database, qdrant)
    feed(database, other)
    qdrant.stop()
    delete(database, 4)
    other.remove([4])
    qdrant.start()
    assert index.last_seq == ITEMS  # this one never saw Qdrant away
    assert 4 not in stored(qdrant)
    assert 4 not in remote_hits(qdrant, index, matrix[3])


def test_what_was_deleted_is_gone_when_the_index_is_opened(
    database: Database, qdrant: QdrantServer
) -> None:
    matrix = add_items(database, DIMENSION)
    feed(database, open_index(database, qdrant))
    delete(database, 4, 5)  # by a process that died
    index = open_index(database, qdrant)
    assert not {4, 5} & set(remote_hits(qdrant, index, matrix[3]))
    assert not {4, 5} & set(stored(qdrant))


def test_a_vector_that_is_deleted_while_it_is_sent_does_not_stay(
    database: Database, qdrant: QdrantServer
) -> None:
    class SlowPoints(QdrantPoints):
        def put(self, rows: Sequence[VectorRow], parts: Sequence[int], vectors: Vectors) -> None:
            delete(database, 4)
            super().put(rows, parts, vectors)

    matrix = add_items(database, DIMENSION)
    index = open_index(database, qdrant, points=SlowPoints)
    feed(database, index)
    assert stored(qdrant) == [n for n in range(1, ITEMS + 1) if n != 4]
    assert 4 not in remote_hits(qdrant, index, matrix[3])


def test_a_qdrant_that_lost_its_data_is_filled_again(
    database: Database, qdrant: QdrantServer, seconds: Seconds
) -> None:
    matrix = add_items(database, DIMENSION)
    index = open_index(database, qdrant, seconds)
    feed(database, index)
    qdrant.lose_all()
    assert hits(index, matrix[3], 1) == [4]  # the collection is missing: the database answers
    seconds.now += RETRY_AFTER_S
    feed(database, index)
    assert stored(qdrant) == list(range(1, ITEMS + 1))


def test_missing_and_changed_points_are_noticed_and_sent_again(
    database: Database, qdrant: QdrantServer, seconds: Seconds
) -> None:
    matrix = add_items(database, DIMENSION)
    put(database, DIMENSION, [3], [matrix[[2, 10, 11]]])
    index = open_index(database, qdrant, seconds)
    feed(database, index)
    points = index._points
    qdrant.engine.delete("lore_64", [points.point_id(7, 0), points.point_id(3, 1)])
    qdrant.engine.set_payload("lore_64", {"n": 999}, points=[points.point_id(8, 0)])
    assert index.check() == ["3 vectors are missing in Qdrant", "1 of Qdrant are not stored"]
    seconds.now += VERIFY_AFTER_S
    feed(database, index)
    assert index.check() == []
    assert remote_hits(qdrant, index, matrix[7], 1) == [8]


def test_points_of_former_vectors_are_deleted(database: Database, qdrant: QdrantServer) -> None:
    add_items(database, DIMENSION)
    feed(database, open_index(database, qdrant))
    assert open_index(database, qdrant, epoch="two").last_seq == 0
    assert stored(qdrant) == []
    feed(database, open_index(database, qdrant, epoch="two"))
    assert len(stored(qdrant)) == ITEMS
    assert open_index(database, qdrant, identity="other", dimension=32).last_seq == 0
    assert stored(qdrant) == []


def test_a_refused_key_is_reported(database: Database, qdrant: QdrantServer) -> None:
    matrix = add_items(database, DIMENSION)
    qdrant.api_key = "secret"
    try:
        index = open_index(database, qdrant)
        assert hits(index, matrix[3], 1) == [4]
        assert "refuses the API key" in index.notice
        connect(VectorServer(qdrant.url, "secret", "x")).get_collections()
    finally:
        qdrant.api_key = ""


def test_a_search_sends_some_vectors_and_the_background_the_rest(
    database: Database, qdrant: QdrantServer
) -> None:
    matrix = add_items(database, DIMENSION, items=600)
    index = open_index(database, qdrant)
    with database.read() as db:
        vectors.update_index(db, index, 1, DIMENSION, within_s=0)
        assert 0 < len(stored(qdrant)) < 600
        assert hits(index, matrix[599], 1) == [600]  # the database has what is not there yet
    feed(database, index)
    assert len(stored(qdrant)) == 600
    assert remote_hits(qdrant, index, matrix[599], 1) == [600]


def test_a_large_memory_is_not_scanned(database: Database) -> None:
    matrix = add_items(database, DIMENSION)
    with database.read() as db:
        assert vectors.scan_stored(db, 1, matrix[0], 5, None, most_bytes=1_000) is None
        nearest = vectors.scan_stored(db, 1, matrix[0], 5, None)
    assert nearest is not None
    assert nearest[0].tolist() == (1 + np.argsort(-(matrix @ matrix[0]))[:5]).tolist()
