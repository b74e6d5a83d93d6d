"""Rows of a memory that moves between SQLite and PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from math import inf
from pathlib import Path

import numpy as np
import pytest

from lore.errors import StoreDamaged, StoreError
from lore.index.quantization import unit_rows
from lore.store import keywords, maintenance, vectors
from lore.store.database import Database, open_database
from lore.store.postgres import vector_rows
from lore.store.postgres.server_database import PostgresDatabase
from lore.store.postgres.vector_rows import PostgresVectorIndex
from lore.store.row_lines import RowTally
from lore.store.sql_connection import Connection
from tests.store.samples import add_fragment

ITEMS = 40
MATRIX = unit_rows(np.random.default_rng(3).standard_normal((ITEMS, 64)))


def fill(path: Path) -> Database:
    """Return a SQLite database with fragments and vectors, of which the last was deleted."""
    database = open_database(path, busy_timeout_s=5, backups=None)

    def work(db: Connection) -> None:
        embedder_n = vectors.ensure_embedder(db, "some", 64)
        ns = [add_fragment(db, i) for i in range(ITEMS)]
        vectors.put(db, embedder_n, ns, [MATRIX[i : i + 1] for i in range(ITEMS)])
        db.run("DELETE FROM items WHERE n = :n", n=ns[-1])

    database.write(work)
    return database


def empty(database: PostgresDatabase) -> PostgresDatabase:
    database.erase_rows()
    return database


def test_words_and_vectors_are_derived_again(tmp_path: Path, database: PostgresDatabase):
    with closing(fill(tmp_path / "memory.db")) as source:
        empty(database).load_rows(source.dump_rows())
    with database.read() as db:
        assert keywords.count_indexed(db) == ITEMS - 1
        assert db.value("SELECT count(*) FROM vector_rows") == ITEMS - 1
    ns, _ = PostgresVectorIndex(database, "some", 64).search(MATRIX[7], 1)
    assert list(ns) == [8]


def test_numbers_of_deleted_items_are_not_used_again(tmp_path: Path, database: PostgresDatabase):
    with closing(fill(tmp_path / "memory.db")) as source:
        empty(database).load_rows(source.dump_rows())
    assert database.write(lambda db: add_fragment(db, 101)) == ITEMS + 1
    with closing(open_database(tmp_path / "back.db", busy_timeout_s=5, backups=None)) as back:
        maintenance.load_file(back, database.dump_rows(portable=True))
        assert back.write(lambda db: add_fragment(db, 102)) == ITEMS + 2


def test_all_rows_of_a_large_owner_are_in_the_graph(tmp_path: Path, database: PostgresDatabase):
    with closing(fill(tmp_path / "memory.db")) as source:
        empty(database).load_rows(source.dump_rows())
    outside = "SELECT count(*) FROM vector_rows WHERE NOT in_graph"
    with database.read() as db:
        assert db.value(outside) == ITEMS - 1
    database.write(lambda db: vector_rows.finish_graphs(db, exact_rows=10))
    with database.read() as db:
        assert db.value(outside) == 0


def test_a_changed_value_is_a_difference(tmp_path: Path):
    with closing(fill(tmp_path / "memory.db")) as database:
        before = RowTally.of(database.dump_rows())
        assert RowTally.of(reversed_rows(list(database.dump_rows()))).differences(before) == []
        database.write(lambda db: db.update("fragments", 3, importance=0.123))
        assert RowTally.of(database.dump_rows()).differences(before) == ["fragments"]


def reversed_rows(lines: list[bytes]) -> list[bytes]:
    """Return a dump with the rows of its fragments in another order."""
    start = lines.index(b'{"table":"fragments"}') + 1
    end = next(i for i in range(start, len(lines)) if lines[i].startswith(b'{"table"'))
    return [*lines[:start], *reversed(lines[start:end]), *lines[end:]]


NUMBERS = (2.0**53 + 2, 1e17, 2.0**60, 1e19, 1e300, -1e300, 5e-324, 0.1, -0.0, inf, -inf)


def add_numbers(db: Connection) -> None:
    for n, value in enumerate(NUMBERS):
        at = 2**63 - 1 - n
        db.insert("task_metrics", kind="a", name=str(n), value=value, body="{}", at=at)


def test_every_number_of_a_file_comes_back_from_rows(tmp_path: Path, database: PostgresDatabase):
    with closing(fill(tmp_path / "memory.db")) as source:
        source.write(add_numbers)
        before = RowTally.of(source.dump_rows())
        empty(database).load_rows(source.dump_rows())
    assert before.differences(RowTally.of(database.dump_rows(portable=True))) == []
    with database.read() as db:
        stored = db.column("SELECT value FROM task_metrics ORDER BY CAST(name AS INTEGER)")
    assert tuple(stored) == NUMBERS
    with closing(open_database(tmp_path / "back.db", busy_timeout_s=5, backups=None)) as back:
        maintenance.load_file(back, database.dump_rows(portable=True))
        assert before.differences(RowTally.of(back.dump_rows())) == []


def test_a_number_that_is_none_is_refused_by_name(tmp_path: Path, database: PostgresDatabase):
    with closing(fill(tmp_path / "memory.db")) as source:
        empty(database).load_rows(source.dump_rows())
    database.write(lambda db: db.rows("UPDATE fragments SET importance = 'NaN' WHERE n = 3"))
    with (
        closing(open_database(tmp_path / "back.db", busy_timeout_s=5, backups=None)) as back,
        pytest.raises(StoreError, match="NaN"),
    ):
        maintenance.load_file(back, database.dump_rows(portable=True))


def test_a_dump_that_was_cut_off_leaves_nothing(tmp_path: Path, database: PostgresDatabase):
    with closing(fill(tmp_path / "memory.db")) as source:
        lines = list(source.dump_rows())[:-1]
    with pytest.raises(StoreDamaged, match="cut off"):
        empty(database).load_rows(lines)
    with closing(open_database(tmp_path / "new.db", busy_timeout_s=5, backups=None)) as fresh:
        with pytest.raises(StoreDamaged, match="cut off"):
            maintenance.load_file(fresh, lines)
        for one in (database, fresh):
            with one.read() as db:
                assert db.value("SELECT count(*) FROM fragments") == 0
