from __future__ import annotations

import pytest

from lore.errors import InvalidInput, StoreBusy, StoreDamaged, StoreError
from lore.store import sqlite
from lore.store.db import Database
from lore.store.sqlite import Connection


@pytest.mark.parametrize(
    ("version", "fits"),
    [("3.51.3", True), ("3.54.1", True), ("4.0.0", True), ("3.51.2", False), ("3.40.1", False)],
)
def test_a_library_that_can_corrupt_files_is_refused(version: str, fits: bool) -> None:
    if fits:
        sqlite.check_library(version)
    else:
        with pytest.raises(StoreError, match=version):
            sqlite.check_library(version)


@pytest.mark.parametrize("value", ["\ud800", 2**70])
def test_a_value_that_cannot_be_stored_is_the_callers_fault(db: Connection, value: object) -> None:
    with pytest.raises(InvalidInput):
        db.rows("SELECT :value", value=value)
    with pytest.raises(InvalidInput):
        db.run_many("INSERT INTO meta VALUES (:v, :v)", [{"v": value}])


def test_text_that_is_no_unicode_is_damage(db: Connection) -> None:
    with pytest.raises(StoreDamaged):
        db.rows("SELECT CAST(x'b2ff' AS TEXT)")


def test_a_lock_held_too_long_is_told_as_busy(database: Database) -> None:
    holder = sqlite.open_connection(database.path, busy_timeout_s=1, read_only=False)
    impatient = sqlite.open_connection(database.path, busy_timeout_s=0.05, read_only=False)
    holder.begin_write()
    with pytest.raises(StoreBusy, match="too long"):
        impatient.begin_write()
    holder.rows("ROLLBACK")
    assert not holder.in_transaction
    for connection in (holder, impatient):
        connection.close()


def test_the_library_is_described() -> None:
    assert sqlite.describe_library().startswith("apsw 3.")


def test_rows_are_added_by_name_or_in_order(db: Connection) -> None:
    sql = "INSERT INTO meta (key, value) VALUES (:key, :value)"
    db.run_many(sql, [{"value": "1", "key": "a"}])
    db.run_many(sql, [("b", "2")])
    assert db.rows("SELECT * FROM meta WHERE key IN ('a', 'b')") == [("a", "1"), ("b", "2")]


def test_a_statement_stays_prepared_while_many_rows_are_written(database: Database) -> None:
    connection = sqlite.open_connection(database.path, busy_timeout_s=1, read_only=False)
    connection.rows("SELECT 1")
    rows = [(f"key {i}", "") for i in range(300)]
    connection.run_many("INSERT INTO meta (key, value) VALUES (:key, :value)", rows)
    before = connection.raw.cache_stats()["misses"]
    connection.rows("SELECT 1")
    assert connection.raw.cache_stats()["misses"] == before
    connection.close()
