"""Databases of other programs are read and never written."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import apsw
import pytest

from lore.errors import StoreBusy, StoreDamaged, StoreError, StoreReadOnly
from lore.store import database, keywords, sqlite
from lore.store.database import Database
from lore.store.sql_connection import Connection
from lore.store.sqlite import database_file
from tests.store.samples import add_fragment


def test_a_copy_that_cannot_be_written_leaves_nothing(tmp_path: Path, db: Connection) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "full").touch()
    with pytest.raises(StoreError, match="could not be written"):
        database_file.copy_database(db, target)
    assert not list(tmp_path.glob("*.part-*"))


def test_only_files_of_processes_that_are_gone_are_left_overs(tmp_path: Path) -> None:
    gone = 99_999_999
    names = [
        f"a.db.part-{gone}", f"m.db.restored-{gone}-wal", f"a.db.part-{os.getpid()}",
        "a.part-x", "memory.db",
    ]  # fmt: skip
    for name in names:
        (tmp_path / name).touch()
    assert [path.name for path in database_file.leftover_copies(tmp_path)] == names[:2]


def test_the_integrity_check_reports_no_damage_after_other_writes(database: Database) -> None:
    for i in range(20):
        database.write(partial(add_fragment, i=i, content=f"fact {i}"))
    with database.read() as db:
        assert keywords.search(db, "fragment_words", '"fact"', limit=9, weights=(1, 1, 1))
    for i in range(20, 60):
        database.write(partial(add_fragment, i=i, content=f"fact {i}"))
    database.write(keywords.optimize)
    with database.read():
        assert sqlite.integrity_problems(database.path) == []


def test_a_checkpoint_under_a_reader_fails(database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1))
    impatient = sqlite.open_connection(database.path, busy_timeout_s=0.05, read_only=False)
    with database.read() as db:
        assert db.value("SELECT count(*) FROM fragments") == 1
        database.write(lambda db: add_fragment(db, 2))
        with pytest.raises(StoreBusy, match="kept reading"):
            sqlite.checkpoint(impatient, patience_s=0.2)
    sqlite.checkpoint(impatient)
    impatient.close()
    assert database.path.with_name("memory.db-wal").stat().st_size == 0


def test_a_database_reports_its_size_and_journal_mode(db: Connection) -> None:
    sqlite.checkpoint(db)
    assert db.size() == db.path.stat().st_size
    assert db.journal_mode() == "wal"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "theirs.db"
    db = apsw.Connection(str(path))
    db.execute('CREATE TABLE talk (id TEXT PRIMARY KEY, at INTEGER, "odd ""name" TEXT)')
    db.executemany(
        "INSERT INTO talk VALUES (?, ?, ?)", [("b", 2, "x"), ("a", 1, "y"), ("c", 3, "x")]
    )
    db.close()
    return path


def test_rows_from_a_value_on_come_in_order(path):
    with database.open_external(path) as db:
        assert database.external_rows(db, "talk", ("id",), least={"at": 2}, order=("at",)) == [
            ("b",),
            ("c",),
        ]
        assert database.external_rows(db, "talk", ("at",), equal={"id": "a"}) == [(1,)]


def test_external_names_are_quoted(path):
    with database.open_external(path) as db:
        assert database.external_rows(db, "talk", ("id",), equal={'odd "name': "y"}) == [("a",)]
        assert database.external_rows(db, 'talk"; DROP TABLE talk; --', ("id",)) == []
        assert database.external_columns(db, "talk") == ("id", "at", 'odd "name')


def test_a_missing_external_column_is_null_and_matches_nothing(path):
    with database.open_external(path) as db:
        assert database.external_rows(db, "talk", ("id", "later"), equal={"at": 1}) == [("a", None)]
        assert database.external_rows(db, "talk", ("id",), equal={"later": 1}) == []
        assert database.external_rows(db, "nothing", ("id",)) == []


def test_an_external_database_is_read_only(path):
    with database.open_external(path) as db, pytest.raises(StoreReadOnly):
        db.run("DELETE FROM talk")


def test_a_link_a_missing_file_and_garbage_are_distinguished(path, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="symbolic link"), database.open_external(link):
        pass
    with pytest.raises(StoreReadOnly), database.open_external(tmp_path / "missing.db"):
        pass
    with pytest.raises(StoreDamaged), database.open_external(garbage) as db:
        database.external_rows(db, "talk", ("id",))


def test_a_database_that_another_program_is_writing_can_be_read(path):
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO talk VALUES ('d', 4, 'z')")
    with database.open_external(path) as db:
        assert len(database.external_rows(db, "talk", ("id",))) == 3
    writer.execute("COMMIT")
    with database.open_external(path) as db:
        assert len(database.external_rows(db, "talk", ("id",))) == 4
    writer.close()


@pytest.fixture
def logged(path):
    """Return a closed database that its program keeps with a log."""
    theirs = apsw.Connection(str(path))
    theirs.execute("PRAGMA journal_mode = wal").fetchall()
    theirs.execute("CREATE TABLE said (text)")
    theirs.close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    return path


def test_reading_a_closed_database_leaves_no_file_beside_it(logged):
    before = logged.read_bytes()
    with database.open_external(logged) as db:
        assert database.external_rows(db, "said", ("text",)) == []
    assert [each.name for each in logged.parent.iterdir()] == [logged.name]
    assert logged.read_bytes() == before


def test_the_wal_file_of_an_open_external_database_stays(logged):
    with database.open_external(logged) as db:
        theirs = apsw.Connection(str(logged))
        theirs.execute("INSERT INTO said VALUES ('hello')")
        assert database.external_rows(db, "said", ("text",)) == [("hello",)]
    assert logged.with_name(f"{logged.name}-wal").stat().st_size
    theirs.execute("INSERT INTO said VALUES ('again')")
    assert theirs.execute("SELECT count(*) FROM said").fetchall() == [(2,)]
    theirs.close()
