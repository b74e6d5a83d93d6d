"""Vectors in the memory of a process: right after every change, apart by owner, within a limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray

from lore.errors import StoreError
from lore.index.owner_vectors import OwnerVectors
from lore.index.quantization import unit_rows
from lore.records import Draft
from lore.store import vectors
from lore.store.postgres import owner_rows
from lore.store.postgres.owner_vector_cache import CacheKey, VectorCache, VectorState
from lore.store.postgres.server_database import PostgresDatabase, open_postgres
from lore.store.postgres.vector_rows import PostgresVectorIndex
from lore.store.sql_connection import Connection, among, int_array
from tests import engines
from tests.store.samples import HashEmbedder, add_fragment, open_memory

DIMENSION = 16
QUERY = np.ones(DIMENSION, np.float32)


def some_vectors(count: int, seed: int = 1) -> NDArray[np.float32]:
    return unit_rows(np.random.default_rng(seed).standard_normal((count, DIMENSION)))


def add_items(database: PostgresDatabase, count: int, *, first: int = 0) -> list[int]:
    """Store items with a vector each and return their numbers."""

    def work(db: Connection) -> list[int]:
        ns = [add_fragment(db, i) for i in range(first, first + count)]
        embedder_n = vectors.ensure_embedder(db, "narrow", DIMENSION)
        vectors.put(db, embedder_n, ns, [row[None] for row in some_vectors(count, first)])
        return ns

    return database.write(work)


def delete(database: PostgresDatabase, *ns: int) -> None:
    for n in ns:
        database.write(lambda db, n=n: db.run("DELETE FROM items WHERE n = :n", n=n))  # type: ignore[misc]


def open_index(database: PostgresDatabase) -> PostgresVectorIndex:
    """Open an index whose owner's vectors are in memory."""
    index = PostgresVectorIndex(database, "narrow", DIMENSION)
    for _ in range(2):
        index.search(QUERY, 1)
    return index


def found(index: PostgresVectorIndex) -> list[int]:
    return sorted(index.search(QUERY, 10_000)[0].tolist())


def size_of(count: int) -> int:
    return own_vectors(count).size


def own_vectors(count: int, *, first_seq: int = 1) -> OwnerVectors:
    seqs = np.arange(first_seq, first_seq + count)
    zeros = np.zeros(count, np.int64)
    return OwnerVectors.of(some_vectors(count, first_seq), seqs, seqs, zeros, zeros, zeros)


@pytest.fixture
def other(tmp_path: Path, database: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """The memory of another owner on the same server and in the same pool."""
    url = engines.current_url()
    with_it = open_postgres(url, f"{tmp_path} other", tmp_path / "other", busy_timeout_s=30)
    yield with_it
    with_it.close()


def test_the_first_search_of_an_owner_reads_nothing_into_memory(database: PostgresDatabase) -> None:
    add_items(database, 5)
    index = PostgresVectorIndex(database, "narrow", DIMENSION)
    index.search(QUERY, 3)
    assert database.vector_cache.size == 0
    index.search(QUERY, 3)
    assert database.vector_cache.size == size_of(5)


def test_items_from_memory_are_those_of_the_database(database: PostgresDatabase) -> None:
    add_items(database, 50)
    index = PostgresVectorIndex(database, "narrow", DIMENSION)
    scanned, scores = index.search(QUERY, 10)
    cosines = index.cosines(QUERY, np.array([3, 99, 1]))
    open_index(database)
    assert database.vector_cache.size == size_of(50)
    assert index.search(QUERY, 10)[0].tolist() == scanned.tolist()
    assert index.search(QUERY, 10)[1] == pytest.approx(scores, abs=0.02)
    assert index.cosines(QUERY, np.array([3, 99, 1])) == pytest.approx(cosines, abs=0.02)


def test_what_is_added_is_found_at_once(database: PostgresDatabase) -> None:
    first = add_items(database, 5)
    index = open_index(database)
    more = add_items(database, 3, first=5)
    assert found(index) == [*first, *more]


def test_what_is_deleted_is_not_found_again(database: PostgresDatabase) -> None:
    ns = add_items(database, 9)
    index = open_index(database)
    delete(database, ns[2], ns[7])
    assert found(index) == [n for n in ns if n not in {ns[2], ns[7]}]
    assert index.cosines(QUERY, np.array([ns[2]])).tolist() == [0.0]
    assert database.vector_cache.size == size_of(7)
    delete(database, *ns)
    assert found(index) == []


def test_a_vector_that_is_replaced_counts_with_its_new_value(database: PostgresDatabase) -> None:
    ns = add_items(database, 9)
    index = open_index(database)
    opposite = unit_rows(-QUERY)

    def replace(db: Connection) -> None:
        vectors.put(db, vectors.find_embedder(db, "narrow") or 0, ns[:1], [opposite])

    database.write(replace)
    assert index.cosines(QUERY, np.array(ns[:1])) == pytest.approx([-1.0], abs=0.01)


def test_a_change_that_is_rolled_back_changes_nothing(database: PostgresDatabase) -> None:
    ns = add_items(database, 5)
    index = open_index(database)

    def fail(db: Connection) -> None:
        db.run("DELETE FROM items")
        msg = "no"
        raise StoreError(msg)

    with pytest.raises(StoreError):
        database.write(fail)
    assert found(index) == ns
    delete(database, ns[0])
    assert found(index) == ns[1:]


def test_a_database_that_was_set_back_is_searched_itself(database: PostgresDatabase) -> None:
    ns = add_items(database, 5)
    index = open_index(database)
    counter = "SELECT last FROM used_numbers WHERE name = 'vector changes'"
    with database.read() as db:
        before = db.number(counter)
    more = add_items(database, 3, first=5)
    assert found(index) == [*ns, *more]

    def set_back(db: Connection) -> None:
        db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=int_array(more))
        sql = "UPDATE used_numbers SET last = :n WHERE name = 'vector changes'"
        db.run(sql, n=before)

    database.write(set_back)
    assert found(index) == ns
    assert database.vector_cache.size == 0


def test_a_reader_of_an_older_moment_does_not_bring_back_what_is_deleted(
    database: PostgresDatabase,
) -> None:
    ns = add_items(database, 5)
    index = open_index(database)
    with database.read() as db, ThreadPoolExecutor(1) as thread:
        assert db.number("SELECT count(*) FROM vectors") == 5
        delete(database, ns[0])
        assert thread.submit(found, index).result() == ns[1:]
        assert found(index) == ns  # of its own moment
    for _ in range(3):
        assert found(index) == ns[1:]


def test_owners_find_their_own_vectors(database: PostgresDatabase, other: PostgresDatabase) -> None:
    ns = add_items(database, 6)
    fewer = add_items(other, 2)
    mine, theirs = open_index(database), open_index(other)
    assert found(mine) == ns
    assert found(theirs) == fewer
    delete(other, *fewer)
    assert found(mine) == ns
    assert found(theirs) == []


def test_removing_an_owner_frees_and_forgets_their_vectors(
    database: PostgresDatabase, other: PostgresDatabase
) -> None:
    add_items(database, 6)
    add_items(other, 2)
    mine, theirs = open_index(database), open_index(other)
    database.erase_rows()
    assert database.vector_cache.size == size_of(2)
    assert found(mine) == []
    assert len(found(theirs)) == 2


def test_an_owner_whom_another_process_removed_has_no_vectors(
    database: PostgresDatabase,
) -> None:
    ns = add_items(database, 6)
    index = open_index(database)
    vectors_here = database.vector_cache.size
    with database._transaction() as db:
        owner_rows.erase(db)
    assert database.vector_cache.size == vectors_here
    assert found(index) == []
    assert index.cosines(QUERY, np.array(ns)).tolist() == [0.0] * 6


def test_a_switch_of_the_embedder_searches_the_new_vectors(tmp_path: Path, engine: str) -> None:
    class Other(HashEmbedder):
        identity = "hash-64-other"

        def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
            return super().embed([f"other {text}" for text in texts], query=query)

    texts = [f"The port of service {i} is {9000 + i}" for i in range(12)]
    with open_memory(tmp_path, HashEmbedder()) as memory:
        memory.knowledge.store_all([Draft(content=text, kind="fact") for text in texts])
        memory.context.embed_waiting(judge=False)
        for _ in range(3):
            assert memory.recall(texts[3]).hits
    with open_memory(tmp_path, Other()) as memory:
        memory.context.embed_waiting(judge=False)
        for _ in range(3):
            assert texts[3] in memory.recall(texts[3]).hits[0].text


def test_an_embedder_that_has_another_number_by_now_is_searched_under_it(
    database: PostgresDatabase,
) -> None:
    add_items(database, 5)
    index = open_index(database)

    def restore(db: Connection) -> int:
        db.run("UPDATE meta SET value = 'another life' WHERE key = 'epoch'")
        db.run("UPDATE embedders SET identity = 'former' WHERE identity = 'narrow'")
        n = add_fragment(db, 100)
        vectors.put(db, vectors.ensure_embedder(db, "narrow", DIMENSION), [n], [some_vectors(1)])
        return n

    n = database.write(restore)
    assert found(index) == [n]
    assert found(PostgresVectorIndex(database, "narrow", DIMENSION)) == [n]


def test_idle_vectors_are_released(database: PostgresDatabase) -> None:
    add_items(database, 5)
    index = open_index(database)
    index.release_pages()
    assert database.vector_cache.size == size_of(5)
    index.release_pages()
    assert database.vector_cache.size == 0
    assert len(found(index)) == 5


def test_vectors_are_read_anew_after_the_server_was_away(database: PostgresDatabase) -> None:
    ns = add_items(database, 5)
    index = open_index(database)
    with engines.stopped_server(engines.current_url()):
        pass
    assert found(index) == ns
    assert database.vector_cache.size == 0


WRITER = """
import sys
from pathlib import Path
from lore.store.postgres.server_database import open_postgres
from tests.store.postgres.test_owner_vector_cache import add_items, delete

url, owner, path = sys.argv[1:]
database = open_postgres(url, owner, Path(path), busy_timeout_s=60)
for i in range(25):
    ns = add_items(database, 3, first=1000 + 3 * i)
    delete(database, ns[i % 3])
database.close()
"""


def test_every_search_beside_another_writing_process_finds_what_its_moment_has(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    add_items(database, 5)
    index = open_index(database)
    command = [sys.executable, "-c", WRITER, engines.current_url(), str(tmp_path), str(tmp_path)]
    states = set()
    with subprocess.Popen(command) as writer:
        while writer.poll() is None:
            with database.read() as db:
                stored = db.column("SELECT DISTINCT n FROM vectors ORDER BY n")
                assert found(index) == stored
            states.add(tuple(stored))
    assert writer.returncode == 0
    assert len(states) > 2
    assert len(found(index)) == 5 + 25 * 2


def test_changes_are_counted_once_in_a_transaction(database: PostgresDatabase) -> None:
    def changes() -> int:
        with database.read() as db:
            sql = "SELECT last FROM used_numbers WHERE name = 'vector changes'"
            return db.number(sql) or 0

    add_items(database, 20)
    before = changes()
    delete(database, 1)
    assert changes() == before + 1
    database.write(lambda db: db.run("DELETE FROM items WHERE n IN (2, 3, 4)"))
    assert changes() == before + 2
    database.write(lambda db: add_fragment(db, 99))
    assert changes() == before + 2


STATE = VectorState("a", 1)
ANNA, BERT, CARL = (CacheKey(UUID(int=i), "narrow") for i in range(3))


def search(cache: VectorCache, key: CacheKey, count: int = 10) -> bool:
    """Search as an owner; return whether the vectors came from memory."""
    return cache.find(key, STATE, lambda _: own_vectors(count)) is not None


def test_vectors_of_all_owners_stay_within_the_limit() -> None:
    cache = VectorCache(size_of(25))
    for key in (ANNA, BERT, CARL) * 5:
        search(cache, key)
        assert cache.size <= size_of(25)
    assert cache.size == size_of(20)


def test_an_owner_who_searches_less_than_others_does_not_replace_them() -> None:
    cache = VectorCache(size_of(20))
    assert [search(cache, key) for key in (ANNA, BERT, ANNA, BERT)] == [False, False, True, True]
    assert [search(cache, key) for key in (CARL, ANNA, BERT, CARL)] == [False, True, True, False]
    assert [search(cache, key) for key in (ANNA, CARL, CARL)] == [True, True, True]
    assert search(cache, ANNA)
    assert not search(cache, BERT)


def test_vectors_larger_than_the_limit_are_not_kept() -> None:
    cache = VectorCache(size_of(5))
    for _ in range(3):
        search(cache, ANNA)
        assert cache.size == 0


def test_a_limit_of_zero_reads_nothing_into_memory() -> None:
    cache = VectorCache(0)
    assert [search(cache, ANNA) for _ in range(3)] == [False] * 3


def test_an_owner_with_too_many_vectors_is_not_asked_for_them_again() -> None:
    cache = VectorCache(1000)
    loads: list[object] = []
    for changes in range(5):
        assert cache.find(ANNA, VectorState("a", changes), loads.append) is None
    assert len(loads) == 1
    cache.find(ANNA, VectorState("another life", 0), loads.append)
    assert len(loads) == 2


def test_a_load_that_fails_is_repeated() -> None:
    def fail(_: OwnerVectors | None) -> OwnerVectors:
        msg = "away"
        raise StoreError(msg)

    cache = VectorCache(size_of(10))
    search(cache, ANNA)
    with pytest.raises(StoreError):
        cache.find(ANNA, STATE, fail)
    assert [search(cache, ANNA) for _ in range(2)] == [False, True]


def test_changed_vectors_are_those_that_would_be_read_anew() -> None:
    former, added = own_vectors(6), own_vectors(3, first_seq=9)
    changed = former.changed([2, 5], added)
    assert changed.seq.tolist() == [1, 3, 4, 6, 9, 10, 11]
    assert changed.codes.tolist() == [
        *former.codes[[0, 2, 3, 5]].tolist(), *added.codes.tolist(),
    ]  # fmt: skip
    assert changed.search(some_vectors(3, 9)[1], 1, None)[0].tolist() == [10]
    assert added.changed([10], former).seq.tolist() == [1, 2, 3, 4, 5, 6, 9, 11]


def test_the_first_items_are_compared_with_the_question_itself() -> None:
    vectors = own_vectors(200)
    rows = some_vectors(200, 1)
    query = some_vectors(1, 500)[0]
    ns, scores = vectors.search(query, 20, None)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    kept = vectors.codes[:, : units.shape[1]] * vectors.scale[:, None]
    cosines = kept @ (query / np.linalg.norm(query))
    assert ns.tolist() == (np.argsort(-cosines)[:20] + 1).tolist()
    assert scores == pytest.approx(np.sort(cosines)[::-1][:20], abs=1e-6)
