from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from lore.errors import InvalidInput, NotFound, StoreError, StoreReadOnly
from lore.store import sqlite
from lore.store.database import Connection, Database, find_meta, open_database, set_meta
from lore.store.sqlite import SqliteConnection
from tests.store.samples import add_fragment, open_at
from tests.waiting import PATIENCE_S


def count(db: Connection) -> int:
    return int(db.value("SELECT count(*) FROM fragments"))


def put_meta(key: str, value: str):
    def work(db: Connection) -> str:
        db.run("INSERT INTO meta (key, value) VALUES (:key, :value)", key=key, value=value)
        return value

    return work


def held_back(database: Database) -> threading.Event:
    """Occupy the writer until the event is set, so that what follows forms one group."""
    release, begun = threading.Event(), threading.Event()

    def wait(_db: Connection) -> None:
        begun.set()
        release.wait(10)

    database.submit(wait)
    begun.wait(10)
    return release


def test_a_write_is_seen_by_the_next_read(database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1))
    with database.read() as db:
        assert count(db) == 1


def test_reads_in_one_block_see_one_snapshot(database: Database) -> None:
    with database.read() as db:
        assert count(db) == 0
        database.write(lambda db: add_fragment(db, 1))
        assert count(db) == 0
        with database.read() as inner:
            assert inner is db
    with database.read() as db:
        assert count(db) == 1


def test_a_connection_is_usable_after_an_error(database: Database) -> None:
    with pytest.raises(StoreError), database.read() as db:
        db.rows("SELECT nonsense")
    with pytest.raises(ZeroDivisionError), database.read():
        raise ZeroDivisionError
    with database.read() as db:
        assert count(db) == 0


def test_many_threads_share_few_connections(database: Database) -> None:
    def look(_: int) -> int:
        with database.read() as db:
            return count(db)

    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(look, range(50))) == {0}
    assert len(database._idle) <= 8


def test_a_failed_write_does_not_affect_the_others_of_its_group(database: Database) -> None:
    release = held_back(database)
    good = database.submit(put_meta("a", "1"))
    bad = database.submit(lambda db: (put_meta("b", "2")(db), 1 / 0))
    other = database.submit(put_meta("c", "3"))
    release.set()
    assert (good.result(5), other.result(5)) == ("1", "3")
    with pytest.raises(ZeroDivisionError):
        bad.result(5)
    with database.read() as db:
        found = {row[0] for row in db.rows("SELECT key FROM meta WHERE key IN ('a', 'b', 'c')")}
    assert found == {"a", "c"}


def test_a_failed_commit_fails_all_its_writes_and_the_writer_continues(
    database: Database,
) -> None:
    release = held_back(database)
    gone = StoreError("the disk is gone")

    def break_off(db: Connection) -> None:
        db.rows("ROLLBACK")  # what SQLite does by itself when the disk fails
        raise gone

    good = database.submit(put_meta("a", "1"))
    bad = database.submit(break_off)
    late = database.submit(put_meta("c", "3"))
    release.set()
    for future in (good, bad, late):
        with pytest.raises(StoreError, match="the disk is gone"):
            future.result(5)
    with database.read() as db:
        assert not db.find("SELECT 1 FROM meta WHERE key IN ('a', 'c')")
    assert database.write(put_meta("d", "4")) == "4"


def test_a_write_with_a_known_key_runs_once(tmp_path: Path, database: Database) -> None:
    assert database.write(put_meta("a", "1"), key="k") == "1"
    assert database.write(put_meta("b", "2"), key="k") == "1"
    database.close()
    again = open_at(tmp_path)
    assert again.write(put_meta("c", "3"), key="k") == "1"
    with again.read() as db:
        assert [row[0] for row in db.rows("SELECT key FROM meta WHERE key < 'd'")] == ["a"]
    again.close()


def test_a_key_twice_in_one_group_runs_the_write_once(database: Database) -> None:
    release = held_back(database)
    futures = [database.submit(put_meta("a", "1"), key="k") for _ in range(3)]
    release.set()
    assert [future.result(5) for future in futures] == ["1", "1", "1"]


def test_a_failed_write_can_be_retried_with_its_key(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        database.write(lambda _db: 1 / 0, key="k")
    assert database.write(put_meta("a", "1"), key="k") == "1"


def test_an_idempotency_key_is_stored_as_a_digest(database: Database) -> None:
    database.write(put_meta("a", "1"), key="store jabberwock")
    with database.read() as db:
        assert "jabberwock" not in str(db.rows("SELECT * FROM receipts"))


def test_a_keyed_write_without_a_json_result_is_rolled_back(database: Database) -> None:
    with pytest.raises(TypeError):
        database.write(lambda db: (put_meta("a", "1")(db), object()), key="k")
    with database.read() as db:
        assert not db.find("SELECT 1 FROM meta WHERE key = 'a'")


def test_a_cancelled_write_does_not_run(database: Database) -> None:
    release = held_back(database)
    cancelled = database.submit(put_meta("a", "1"))
    assert cancelled.cancel()
    release.set()
    assert database.write(put_meta("b", "2")) == "2"
    with database.read() as db:
        assert not db.find("SELECT 1 FROM meta WHERE key = 'a'")


def test_a_write_inside_a_write_raises(database: Database) -> None:
    with pytest.raises(StoreError, match="cannot wait"):
        database.write(lambda _db: database.write(put_meta("a", "1")))


def test_close_finishes_queued_writes(tmp_path: Path, database: Database) -> None:
    release = held_back(database)
    future = database.submit(put_meta("a", "1"))
    threading.Timer(0.05, release.set).start()
    database.close()
    assert future.result(5) == "1"
    database.close()


def test_patient_writes_are_committed_in_their_order_with_the_next_write(
    database: Database,
) -> None:
    order: list[int] = []
    patient = [
        database.submit(lambda _, n=n: order.append(n), patient=True)  # type: ignore[misc]
        for n in range(3)
    ]
    database.write(lambda _: order.append(3))
    assert all(write.done() for write in patient)
    assert order == [0, 1, 2, 3]


def test_patient_writes_are_committed_without_another_write(database: Database) -> None:
    writes = [database.submit(lambda _: None, patient=True) for _ in range(600)]
    for write in writes:
        write.result(PATIENCE_S)


def test_a_place_is_of_one_memory_and_stays(tmp_path: Path, database: Database) -> None:
    again, other = open_at(tmp_path), open_at(tmp_path / "other")
    assert again.place == database.place
    assert other.place != database.place
    again.close()
    other.close()


def test_a_closed_database_raises(database: Database) -> None:
    with database.read() as db:
        database.close()
        assert count(db) == 0
    with pytest.raises(StoreError, match="closed"):
        database.write(put_meta("a", "1"))
    with pytest.raises(StoreError, match="closed"), database.read():
        pass
    with pytest.raises(StoreError, match="closed"):
        db.rows("SELECT 1")


@pytest.mark.only_sqlite("a file")
def test_a_closed_database_leaves_no_wal_file(tmp_path: Path, database: Database) -> None:
    database.write(put_meta("a", "1"))
    database.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["memory.db"]


@pytest.mark.only_sqlite("a file")
def test_a_database_opened_for_reading_refuses_writes(tmp_path: Path, database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1))
    reader = open_database(database.path, busy_timeout_s=1, backups=None, read_only=True)
    with reader.read() as db:
        assert count(db) == 1
    with pytest.raises(StoreReadOnly):
        reader.write(put_meta("a", "1"))
    reader.close()


def test_two_databases_can_write_one_file(tmp_path: Path, database: Database) -> None:
    other = open_at(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        works = [
            pool.submit(each.write, put_meta(f"{name}{i}", "x"))
            for i in range(30)
            for name, each in (("a", database), ("b", other))
        ]
        assert {work.result(20) for work in works} == {"x"}
    other.close()


def test_connections_have_the_required_pragmas(database: Database) -> None:
    connection = sqlite.open_connection(database.path, busy_timeout_s=1, read_only=False)
    values = {
        name: connection.value(f"PRAGMA {name}")
        for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
    }
    connection.close()
    assert values == {
        "journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1,
    }  # fmt: skip


@pytest.mark.parametrize("error", [NotFound("no"), InvalidInput("no")])
def test_errors_of_lore_reach_the_caller_unchanged(database: Database, error: Exception) -> None:
    def fail(_db: Connection) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        database.write(fail)
    assert caught.value is error


def test_the_writer_survives_a_base_exception(
    database: Database,
) -> None:
    def leave(_db: Connection) -> None:
        raise SystemExit(3)

    with pytest.raises((StoreError, SystemExit)):
        database.submit(leave).result(timeout=20)
    assert database.submit(lambda _db: 7).result(timeout=20) == 7


def test_a_damaged_receipt_is_reported_and_the_next_write_works(database: Database) -> None:
    database.write(lambda _db: 1, key="k")
    database.write(lambda db: db.run("UPDATE receipts SET result = '{'"))
    with pytest.raises(StoreError):
        database.submit(lambda _db: 2, key="k").result(timeout=20)
    assert database.submit(lambda _db: 7).result(timeout=20) == 7


def test_a_value_is_computed_once_in_a_snapshot(database: Database) -> None:
    database.write(put_meta("colour", "blue"))
    with database.read() as db:
        assert find_meta(db, "colour") == "blue"
        database.write(lambda db: set_meta(db, "colour", "red"))
        assert find_meta(db, "colour") == "blue"
        assert db.once("answer", lambda: 42) == db.once("answer", lambda: 43) == 42
    with database.read() as db:
        assert find_meta(db, "colour") == "red"
        assert db.once("answer", lambda: 43) == 43


def test_a_writer_sees_its_own_changes(database: Database) -> None:
    def change(db: Connection) -> list[str | None]:
        seen = [find_meta(db, "colour")]
        set_meta(db, "colour", "red")
        return [*seen, find_meta(db, "colour")]

    database.write(put_meta("colour", "blue"))
    assert database.write(change) == ["blue", "red"]


@pytest.mark.only_sqlite("a page cache")
def test_the_page_cache_of_a_connection_can_be_freed(database: Database) -> None:
    with database.read() as db:
        count(db)
    assert isinstance(db, SqliteConnection)
    used = db.raw.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]
    db.release_memory()
    assert db.raw.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0] < used
