from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from lore.errors import InvalidInput, NotFound, SchemaTooNew, StoreDamaged
from lore.memory import Memory
from lore.relevance import relevance
from lore.store import distillations, jobs, keywords, maintenance, sessions, sqlite, vectors
from lore.store.database import Database, open_database
from lore.store.hard_delete import ForgetSelection
from lore.store.sql_connection import Connection
from tests.store.samples import (
    NOON,
    add_fragment,
    add_messages,
    new_distillation,
    new_message,
    new_session,
    open_at,
    open_memory,
)

ROOT = Path(__file__).parents[2]


def contents(path: Path) -> list[str]:
    db = sqlite.open_connection(path, busy_timeout_s=5, read_only=True)
    found = [row[0] for row in db.rows("SELECT content FROM fragments ORDER BY n")]
    db.close()
    return found


@pytest.mark.only_sqlite("copies of a file")
def test_a_backup_is_a_whole_database_with_no_log(tmp_path: Path, database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1, "a fact"))
    target = maintenance.backup(database, tmp_path / "copy.db")
    assert contents(target) == ["a fact"]
    assert not target.with_name("copy.db-wal").exists()
    (tmp_path / "folder").mkdir()
    assert maintenance.backup(database, tmp_path / "folder").name == "lore-20260301T120000.db"


def test_a_backup_overwrites_no_file_and_creates_no_folder(
    tmp_path: Path, database: Database
) -> None:
    (tmp_path / "there.db").touch()
    with pytest.raises(InvalidInput, match="exists"):
        maintenance.backup(database, tmp_path / "there.db")
    with pytest.raises(NotFound, match="no folder"):
        maintenance.backup(database, tmp_path / "nowhere" / "copy.db")


@pytest.mark.only_sqlite("copies of a file")
def test_a_backup_during_writes_is_consistent(tmp_path: Path, memory: Memory) -> None:
    stop = threading.Event()

    def write() -> None:
        i = 0
        while not stop.is_set():
            memory.capture("talk", [new_message(f"{i} {j}", key=f"{i} {j}") for j in range(3)])
            i += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copies = [memory.maintenance.backup(tmp_path / f"copy{i}.db") for i in range(5)]
    finally:
        stop.set()
        writer.join()
    for copy in copies:
        assert sqlite.integrity_problems(copy) == []
        db = sqlite.open_connection(copy, busy_timeout_s=1, read_only=True)
        said = db.value("SELECT count(*) FROM messages")
        assert said % 3 == 0
        assert said == db.value("SELECT count(*) FROM message_words_docsize")
        db.close()


@pytest.mark.only_sqlite("copies of a file")
def test_a_restore_saves_the_present_database(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with open_memory(home) as memory:
        memory.store("old")
        copy = memory.maintenance.backup(tmp_path / "copy.db")
        memory.store("new")
        with memory.database.read() as db:
            epoch = maintenance.get_epoch(db)
    kept = maintenance.restore(home / "memory.db", copy, home / "backups")
    assert contents(home / "memory.db") == ["old"]
    assert kept is not None
    assert contents(kept) == ["old", "new"]
    with open_memory(home) as memory, memory.database.read() as db:
        assert maintenance.get_epoch(db) != epoch
    assert sorted(p.name for p in home.iterdir()) == ["backups", "memory.db", "redaction.key"]


@pytest.mark.only_sqlite("copies of a file")
def test_a_restore_into_an_empty_home_saves_nothing(tmp_path: Path, database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1, "a fact"))
    copy = maintenance.backup(database, tmp_path / "copy.db")
    (tmp_path / "other").mkdir()
    target = tmp_path / "other" / "memory.db"
    assert maintenance.restore(target, copy, tmp_path / "other" / "backups") is None
    assert contents(target) == ["a fact"]
    assert target.stat().st_mode & 0o777 == 0o600


OTHER = """
import json, sys
from pathlib import Path
from tests.store.samples import open_memory
with open_memory(Path(sys.argv[1])) as memory:
    seen = [memory.maintenance.stats().fragments]
    print("open", flush=True)
    sys.stdin.readline()
    seen.append(memory.maintenance.stats().fragments)
    seen.append(len(memory.search("old", log=False)))
    memory.store("written after")
    seen.append(memory.maintenance.stats().fragments)
print(json.dumps(seen))
"""


@pytest.mark.only_sqlite("copies of a file")
def test_another_process_with_the_database_open_sees_the_restored_content(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with open_memory(home) as memory:
        memory.store("old")
        copy = memory.maintenance.backup(tmp_path / "copy.db")
        for i in range(50):
            memory.store(f"new {i} " + "and long " * 500)
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"open\n"
    maintenance.restore(home / "memory.db", copy, home / "backups")
    out, _ = other.communicate(b"go on\n", timeout=60)
    assert json.loads(out) == [51, 1, 1, 2]
    assert contents(home / "memory.db") == ["old", "written after"]
    assert sqlite.integrity_problems(home / "memory.db") == []


@pytest.mark.only_sqlite("copies of a file")
def test_a_damaged_database_is_replaced_by_its_backup(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_memory(home) as memory:
        id_ = memory.store("a secret")
        memory.store("a fact")
        external = memory.maintenance.backup(tmp_path / "copy.db")
        memory.maintenance.backup()
        memory.forget(id=id_)
    (home / "memory.db").write_bytes(b"garbage " * 5_000)
    kept = maintenance.restore(home / "memory.db", external, home / "backups")
    assert contents(home / "memory.db") == ["a fact"]
    assert kept is not None
    assert kept.read_bytes().startswith(b"garbage")


@pytest.mark.only_sqlite("copies of a file")
def test_an_unsound_backup_is_refused(tmp_path: Path, database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1, "a fact"))
    path, backups = database.path, tmp_path / "backups"
    with pytest.raises(NotFound):
        maintenance.restore(path, tmp_path / "missing.db", backups)
    (tmp_path / "empty.db").touch()
    with pytest.raises(InvalidInput, match="empty"):
        maintenance.restore(path, tmp_path / "empty.db", backups)
    (tmp_path / "text.db").write_text("hello " * 999)
    with pytest.raises(StoreDamaged):
        maintenance.restore(path, tmp_path / "text.db", backups)
    newer = maintenance.backup(database, tmp_path / "newer.db")
    raw = apsw.Connection(str(newer))
    raw.execute("INSERT INTO migrations VALUES ('m999_future', 0); PRAGMA user_version = 999")
    raw.close()
    with pytest.raises(SchemaTooNew):
        maintenance.restore(path, newer, backups)
    torn = maintenance.backup(database, tmp_path / "torn.db")
    content = torn.read_bytes()
    torn.write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreDamaged):
        maintenance.restore(path, torn, backups)
    assert contents(path) == ["a fact"]


@pytest.mark.only_sqlite("copies of a file")
def test_a_backup_that_cannot_be_cleaned_is_removed(tmp_path: Path, database: Database) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    n = database.write(lambda db: add_fragment(db, 1, "a secret"))
    (backups / "lore-broken.db").write_bytes(b"a secret " * 999)
    good = maintenance.backup(database, backups / "good.db")
    newer = maintenance.backup(database, backups / "before-newer.db")
    raw = apsw.Connection(str(newer))
    raw.execute("INSERT INTO migrations VALUES ('m999_future', 0); PRAGMA user_version = 999")
    raw.close()
    foreign = backups / "notes.db"
    foreign.write_bytes(b"of another program")
    maintenance.forget_everywhere(database, ForgetSelection((n,)), "", backups)
    assert sorted(backups.iterdir()) == [good, foreign]
    assert contents(good) == []


def test_old_receipts_are_dropped_and_fragments_fade_once_a_day(database: Database) -> None:
    database.write(lambda _db: 1, key="a")
    n = database.write(lambda db: add_fragment(db, 1, created_at=NOON))
    later = NOON + timedelta(days=400)
    database.write(lambda db: db.run("UPDATE fragments SET importance = 0.2, decay_rate = 0.058"))
    database.write(lambda db: maintenance.run_maintenance(db, later))
    with database.read() as db:
        assert db.value("SELECT count(*) FROM receipts") == 0
        faded = db.value("SELECT relevance FROM fragments WHERE n = :n", n=n)
        assert faded == pytest.approx(relevance(0.2, 0, 400))
        assert not maintenance.is_maintenance_due(db, later + timedelta(hours=23))
        assert maintenance.is_maintenance_due(db, later + timedelta(hours=25))


@pytest.mark.only_sqlite("FTS5 tables")
def test_the_keyword_index_is_checked_for_readers_too(tmp_path: Path, database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1, created_at=NOON))
    assert maintenance.check_keywords(database) == []
    reader = open_database(database.path, busy_timeout_s=1, backups=None, read_only=True)
    assert maintenance.check_keywords(reader) == []
    reader.close()
    again = open_at(tmp_path)
    again.close()


def fill(db: Connection) -> None:
    session_n = new_session(db)
    sessions.describe_session(db, session_n, title="A title")
    add_messages(db, session_n, "one", "two", "")
    add_fragment(db, 1)


def test_a_sound_database_has_no_findings(db: Connection) -> None:
    fill(db)
    assert maintenance.check_integrity(db) == []
    assert maintenance.compare_keyword_index(db) == []


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("INSERT INTO items VALUES (99, 'x', 1, NULL, NULL, 0, 0, 0)", "without content"),
        ("UPDATE fragments SET depth = 2", "without a parent"),
        ("UPDATE fragments SET superseded_by = 'nobody'", "superseded by one"),
    ],
)
def test_orphaned_rows_are_found(db: Connection, sql: str, what: str) -> None:
    fill(db)
    db.rows(sql)
    (finding,) = maintenance.check_integrity(db)
    assert what in finding


@pytest.mark.only_sqlite("foreign keys that are switched off")
def test_missing_references_are_found(db: Connection) -> None:
    fill(db)
    db.rows("PRAGMA foreign_keys = OFF")
    db.run("DELETE FROM sessions")
    assert any("missing sessions" in finding for finding in maintenance.check_integrity(db))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM message_words WHERE rowid = 1",
        "DELETE FROM fragment_words",
        "DELETE FROM session_words",
        "INSERT INTO fragment_words (rowid, content) VALUES (77, 'stray')",
        "INSERT INTO session_words (rowid, title) VALUES (77, 'stray')",
    ],
)
@pytest.mark.only_sqlite("FTS5 tables")
def test_an_inconsistent_keyword_index_is_found_and_rebuilt(db: Connection, sql: str) -> None:
    fill(db)
    db.rows(sql)
    (finding,) = maintenance.compare_keyword_index(db)
    assert finding
    maintenance.rebuild_keywords(db)
    assert maintenance.compare_keyword_index(db) == []


def test_a_vector_index_with_missing_rows_is_found(db: Connection) -> None:
    n = vectors.ensure_embedder(db, "one", 2)
    db.run(
        "INSERT INTO vectors (n, embedder_n, vector) VALUES (:n, :e, :vector)",
        vector=bytes(6),
        n=add_fragment(db, 1, created_at=NOON),
        e=n,
    )
    assert maintenance.compare_vector_index(db, n, 1) == []
    assert maintenance.compare_vector_index(db, n, 0)


TABLES = ("message_words", "long_words", "log_words", "fragment_words", "session_words")


def vocabulary(db: Connection) -> list[object]:
    return [db.rows(f"SELECT term, doc, cnt FROM {table}_vocabulary") for table in TABLES]


@pytest.mark.only_sqlite("FTS5 tables")
def test_a_rebuilt_keyword_index_equals_the_incremental_one(db: Connection) -> None:
    session_n = new_session(db)
    sessions.describe_session(db, session_n, title="Okapis", files=["src/zoo.py"])
    for i in range(30):
        add_messages(db, session_n, f"message {i} about topic{i % 3}" + " long" * (i * 20))
    distillations.add_distillation(db, session_n, new_distillation(9, "They spoke"), now=NOON)
    for i in range(5):
        add_fragment(db, i, f"fact {i}")
    keywords.optimize(db)
    before = vocabulary(db)
    count = keywords.count_indexed(db)
    assert maintenance.rebuild_keywords(db) == count
    keywords.optimize(db)
    assert vocabulary(db) == before
    assert maintenance.compare_keyword_index(db) == []


def test_stats_count_all_records(db: Connection) -> None:
    add_messages(db, new_session(db, project="/p"), "Always use tabs.", "two", speaker="")
    add_fragment(db, 1)
    jobs.ensure(db, "embed", "m", total=3, now=NOON)
    stats = maintenance.collect_stats(db, embedder="none", notice="well")
    assert (stats.messages, stats.fragments, stats.sessions, stats.standing) == (2, 1, 1, 1)
    assert (stats.waiting, stats.vectors, stats.journal) == (3, 0, "wal")
    assert stats.projects == (("/p", 2),)
    assert stats.bytes > 400
    assert stats.tokens > 0
    assert [job.kind for job in stats.jobs] == ["embed"]
    assert stats.notice == "well"
