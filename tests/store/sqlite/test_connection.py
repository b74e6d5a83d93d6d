from __future__ import annotations

import errno
from contextlib import closing
from pathlib import Path
from uuid import UUID

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreReadOnly
from lore.store import sqlite
from lore.store.database import Database
from lore.store.sql_connection import Connection, among, id_blob, id_text, int_array, text_array
from lore.store.sqlite.connection import open_connection, translate_error


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
def test_a_value_that_cannot_be_stored_is_invalid_input(db: Connection, value: object) -> None:
    with pytest.raises(InvalidInput):
        db.rows("SELECT :value", value=value)
    with pytest.raises(InvalidInput):
        db.run_many("INSERT INTO meta VALUES (:v, :v)", [{"v": value}])


def test_undecodable_text_is_reported_as_damage(db: Connection) -> None:
    with pytest.raises(StoreDamaged):
        db.rows("SELECT CAST(x'b2ff' AS TEXT)")


def test_a_lock_held_too_long_is_reported_as_busy(database: Database) -> None:
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


def test_run_many_binds_by_name_or_in_order(db: Connection) -> None:
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


ERRORS = {
    apsw.BusyError: StoreBusy,
    apsw.LockedError: StoreBusy,
    apsw.ProtocolError: StoreBusy,
    apsw.FullError: StoreFull,
    apsw.ReadOnlyError: StoreReadOnly,
    apsw.CantOpenError: StoreReadOnly,
    apsw.PermissionsError: StoreReadOnly,
    apsw.AuthError: StoreReadOnly,
    apsw.CorruptError: StoreDamaged,
    apsw.NotADBError: StoreDamaged,
}


def all_errors() -> list[type[apsw.Error]]:
    return [
        kind
        for kind in vars(apsw).values()
        if isinstance(kind, type) and issubclass(kind, apsw.Error)
    ]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_of_sqlite_has_its_translation(tmp_path: Path, kind: type[apsw.Error]) -> None:
    told = translate_error(kind("something"), tmp_path / "memory.db")
    assert type(told) is ERRORS.get(kind, StoreError)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_an_io_error_without_space_is_a_full_disk(tmp_path: Path, number: int) -> None:
    told = translate_error(apsw.IOError("x"), tmp_path / "memory.db", number)
    assert isinstance(told, StoreFull)


@given(st.lists(st.integers(0, 2**62), max_size=20))
def test_numbers_bind_as_a_list_even_when_there_are_none(values: list[int]) -> None:
    with sqlite.open_scratch() as db:
        db.rows("CREATE TABLE t (n)")
        db.run_many("INSERT INTO t VALUES (:n)", [(n,) for n in {*values, 5}])
        found = db.column(f"SELECT n FROM t WHERE {among('n', 'ns')}", ns=int_array(values))
    assert set(found) == set(values)


def test_texts_bind_as_a_list(db: Connection) -> None:
    db.run("INSERT INTO speakers (name) VALUES ('Ada'), ('Bob'), ('Cy')")
    rows = db.rows(
        f"SELECT name FROM speakers WHERE {among('name', 'names')}", names=text_array(["Bob"])
    )
    assert rows == [("Bob",)]


def test_has_table_finds_a_table_by_name(db: Connection) -> None:
    assert db.has_table("items")
    assert not db.has_table("unheard_of")
    assert not db.is_empty_database()


@given(st.uuids())
def test_an_id_is_stored_in_sixteen_bytes_and_read_as_text(id_: UUID) -> None:
    raw = apsw.Connection(":memory:")
    raw.execute("CREATE TABLE t (id BLOB)")
    raw.execute(f"INSERT INTO t VALUES ({id_blob(':id')}), (NULL)", {"id": str(id_)})
    sql = f"SELECT length(id), {id_text('id')} FROM t"
    assert raw.execute(sql).fetchall() == [(16, str(id_)), (None, None)]


def test_rows_are_inserted_replaced_and_updated_by_column_names(db: Connection) -> None:
    n = db.insert_numbered("entities", name="a", uses=1)
    assert not db.insert_unless_exists("entities", name="a", uses=2)
    assert db.insert_unless_exists("entities", name="b", uses=2)
    db.upsert("entities", ("name",), name="b", uses=3)
    assert db.update("entities", n, uses=4) == 1
    assert db.rows("SELECT name, uses FROM entities ORDER BY n") == [("a", 4), ("b", 3)]
    assert db.number("SELECT uses FROM entities WHERE name = 'c'") is None


class BriefJournal(apsw.VFS):
    """A file system on which a writer ends just when a reader has seen its journal."""

    def __init__(self, times: int) -> None:
        self.times = times
        super().__init__("brief-journal", "", makedefault=True)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802 - SQLite's name
        if pathname.endswith("-journal"):
            if self.times:
                Path(pathname).write_bytes(b"x" * 600)
            else:
                Path(pathname).unlink(missing_ok=True)
            self.times = max(0, self.times - 1)
        return super().xAccess(pathname, flags)


def test_a_writer_that_ends_while_its_journal_is_looked_at_fails_no_reader(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(apsw.Connection(str(path))) as raw:
        raw.execute("CREATE TABLE one (n)").fetchall()
    file_system = BriefJournal(times=3)
    try:
        with closing(open_connection(path, busy_timeout_s=5, read_only=True)) as opened:
            assert file_system.times == 0
            file_system.times = 2
            assert opened.rows("SELECT * FROM one") == []
        assert file_system.times == 0
        file_system.times = 1_000
        with pytest.raises(StoreReadOnly):
            open_connection(path, busy_timeout_s=5, read_only=True)
    finally:
        file_system.unregister()
