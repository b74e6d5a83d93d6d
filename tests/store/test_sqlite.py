from __future__ import annotations

import errno
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import (
    InvalidInput,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from lore.store import keywords, sqlite
from lore.store.db import Database
from lore.store.sqlite import Connection
from tests.store.samples import add_fragment

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
//box/share /mnt/with\\040space cifs rw 0 0
host /mnt/host 9p rw 0 0
me@there: /mnt/there fuse.sshfs rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lore", ""),
        ("/home/me/.lore/memory.db", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead/me", ""),
        ("/home/local/lore", ""),
        ("/mnt/with space/lore", "cifs"),
        ("/mnt/host/lore", "9p"),
        ("/mnt/there/lore", "fuse.sshfs"),
    ],
)
def test_a_shared_file_system_is_known_by_its_mount(
    tmp_path: Path, path: str, expected: str
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert sqlite.shared_file_system(Path(path), mounts) == expected


def test_a_system_without_a_list_of_mounts_has_none_that_are_shared(tmp_path: Path) -> None:
    assert sqlite.shared_file_system(tmp_path, tmp_path / "missing") == ""


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
    told = sqlite.translated(kind("something"), tmp_path / "memory.db")
    assert type(told) is ERRORS.get(kind, StoreError)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_an_io_error_for_want_of_space_is_a_full_disk(tmp_path: Path, number: int) -> None:
    told = sqlite.translated(apsw.IOError("x"), tmp_path / "memory.db", number)
    assert isinstance(told, StoreFull)


@given(st.lists(st.integers(0, 2**62), max_size=20))
def test_numbers_bind_as_a_list_even_when_there_are_none(values: list[int]) -> None:
    raw = apsw.Connection(":memory:")
    raw.execute("CREATE TABLE t (n)")
    raw.executemany("INSERT INTO t VALUES (?)", [(n,) for n in {*values, 5}])
    sql = f"SELECT n FROM t WHERE {sqlite.among('n', 'ns')}"
    found = {row[0] for row in raw.execute(sql, {"ns": sqlite.numbers(values)})}
    assert found == set(values)


@pytest.mark.parametrize("value", ["\ud800", 2**70])
def test_a_value_that_cannot_be_stored_is_the_callers_fault(db: Connection, value: object) -> None:
    with pytest.raises(InvalidInput):
        db.rows("SELECT :value", value=value)
    with pytest.raises(InvalidInput):
        db.run_many("INSERT INTO meta VALUES (:v, :v)", [{"v": value}])


def test_text_that_is_no_unicode_is_damage(db: Connection) -> None:
    with pytest.raises(StoreDamaged):
        db.rows("SELECT CAST(x'b2ff' AS TEXT)")


def test_a_check_sees_no_damage_where_others_have_only_written(database: Database) -> None:
    for i in range(20):
        database.write(partial(add_fragment, i=i, content=f"fact {i}"))
    with database.read() as db:
        assert keywords.search(db, "fragment_words", '"fact"', limit=9, weights=(1, 1, 1))
    for i in range(20, 60):
        database.write(partial(add_fragment, i=i, content=f"fact {i}"))
    database.write(keywords.optimize)
    with database.read():
        assert sqlite.damage(database.path) == []


def test_the_log_is_not_emptied_under_a_reader_but_told(database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1))
    impatient = sqlite.open_connection(database.path, busy_timeout_s=0.05, read_only=False)
    with database.read() as db:
        assert db.value("SELECT count(*) FROM fragments") == 1
        database.write(lambda db: add_fragment(db, 2))
        with pytest.raises(StoreBusy, match="kept reading"):
            sqlite.empty_log(impatient)
    sqlite.empty_log(impatient)
    impatient.close()
    assert database.path.with_name("memory.db-wal").stat().st_size == 0


def test_a_lock_held_too_long_is_told_as_busy(database: Database) -> None:
    holder = sqlite.open_connection(database.path, busy_timeout_s=1, read_only=False)
    impatient = sqlite.open_connection(database.path, busy_timeout_s=0.05, read_only=False)
    holder.rows("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="too long"):
        impatient.rows("BEGIN IMMEDIATE")
    holder.rows("ROLLBACK")
    for connection in (holder, impatient):
        connection.close()


def test_a_number_changes_when_another_connection_has_written(
    database: Database, db: Connection
) -> None:
    before = db.data_version()
    assert db.data_version() == before
    database.write(lambda db: add_fragment(db, 1))
    assert db.data_version() != before


@pytest.mark.parametrize(("word", "kept"), [("running", "run"), ("Éclair", "eclair"), ("", "")])
def test_a_word_is_stemmed_as_the_index_does_it(word: str, kept: str) -> None:
    assert sqlite.stem(word) == kept


def test_the_library_is_described() -> None:
    assert sqlite.describe_library().startswith("apsw 3.")
