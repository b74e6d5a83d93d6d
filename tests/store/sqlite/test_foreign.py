"""Databases of other programs are read and never written."""

import apsw
import pytest

from lore.errors import StoreDamaged, StoreError, StoreReadOnly
from lore.store import foreign


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
    with foreign.open_foreign(path) as db:
        assert foreign.rows(db, "talk", ("id",), least={"at": 2}, order=("at",)) == [("b",), ("c",)]
        assert foreign.rows(db, "talk", ("at",), equal={"id": "a"}) == [(1,)]


def test_names_are_never_taken_for_sql(path):
    with foreign.open_foreign(path) as db:
        assert foreign.rows(db, "talk", ("id",), equal={'odd "name': "y"}) == [("a",)]
        assert foreign.rows(db, 'talk"; DROP TABLE talk; --', ("id",)) == []
        assert foreign.columns(db, "talk") == ("id", "at", 'odd "name')


def test_what_a_table_does_not_have_is_null_and_fits_no_condition(path):
    with foreign.open_foreign(path) as db:
        assert foreign.rows(db, "talk", ("id", "later"), equal={"at": 1}) == [("a", None)]
        assert foreign.rows(db, "talk", ("id",), equal={"later": 1}) == []
        assert foreign.rows(db, "nothing", ("id",)) == []


def test_nothing_can_be_written(path):
    with foreign.open_foreign(path) as db, pytest.raises(StoreReadOnly):
        db.run("DELETE FROM talk")


def test_a_link_a_missing_file_and_garbage_are_told_apart(path, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="symbolic link"), foreign.open_foreign(link):
        pass
    with pytest.raises(StoreReadOnly), foreign.open_foreign(tmp_path / "missing.db"):
        pass
    with pytest.raises(StoreDamaged), foreign.open_foreign(garbage) as db:
        foreign.rows(db, "talk", ("id",))


def test_a_database_that_another_program_is_writing_can_be_read(path):
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO talk VALUES ('d', 4, 'z')")
    with foreign.open_foreign(path) as db:
        assert len(foreign.rows(db, "talk", ("id",))) == 3
    writer.execute("COMMIT")
    with foreign.open_foreign(path) as db:
        assert len(foreign.rows(db, "talk", ("id",))) == 4
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
    with foreign.open_foreign(logged) as db:
        assert foreign.rows(db, "said", ("text",)) == []
    assert [each.name for each in logged.parent.iterdir()] == [logged.name]
    assert logged.read_bytes() == before


def test_the_log_of_a_program_that_has_its_database_open_stays(logged):
    with foreign.open_foreign(logged) as db:
        theirs = apsw.Connection(str(logged))
        theirs.execute("INSERT INTO said VALUES ('hello')")
        assert foreign.rows(db, "said", ("text",)) == [("hello",)]
    assert logged.with_name(f"{logged.name}-wal").stat().st_size
    theirs.execute("INSERT INTO said VALUES ('again')")
    assert theirs.execute("SELECT count(*) FROM said").fetchall() == [(2,)]
    theirs.close()
