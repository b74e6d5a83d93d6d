"""Migrations that are killed at any statement: the old schema or the new one, never between."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lore.store import migrations, sqlite
from lore.store.database import Connection, Database
from lore.store.replacements import STATEMENT_BYTES, Replacement
from lore.store.sqlite import SqliteConnection
from tests.store.samples import add_fragment, at_noon, insert_former_link, open_at

ROOT = Path(__file__).parents[2]


def m900_later(db: Connection) -> None:
    """A later step: a new table, a new column, rows rewritten."""
    db.rows("CREATE TABLE later (n INTEGER PRIMARY KEY, word TEXT NOT NULL)")
    db.rows("ALTER TABLE fragments ADD COLUMN mood TEXT NOT NULL DEFAULT ''")
    db.run("UPDATE fragments SET mood = 'calm'")
    db.run("INSERT INTO later (word) SELECT content FROM fragments")


DIMENSION = 8


def add_former_vectors(db: Connection) -> None:
    """Store vectors of half-precision numbers."""
    embedder_n = db.insert_numbered("embedders", identity="one", dimension=DIMENSION)
    for number in range(2, 5):
        item = add_fragment(db, number, "embedded")
        db.insert("vectors", n=item, embedder_n=embedder_n, vector=bytes(2 * DIMENSION))


def add_former_links(db: Connection, older_text: str) -> None:
    """Store links whose older texts their items do not have like this."""
    newer = add_fragment(db, 2, "newer")
    for number in range(3, 9):
        older = add_fragment(db, number, "older")
        link = Replacement(older, older_text, newer, "newer", "replaces", 0.9, 1)
        insert_former_link(db, link)


FORMER_LINKS = {
    "m012_statement_keys": "older " * 200,
    "m013_asked_messages": "A question that was forgotten? older",
}

STEPS: tuple[migrations.Migration, ...] = (*migrations.MIGRATIONS, m900_later)


def dying(step: migrations.Migration, statement: int) -> migrations.Migration:
    """Return a step whose process ends at one of its statements."""

    def dies(db: Connection) -> None:
        seen = 0

        def trace(_cursor: object, _sql: str, _values: object) -> bool:
            nonlocal seen
            seen += 1
            if seen == statement:
                os._exit(9)
            return True

        assert isinstance(db, SqliteConnection)
        db.raw.exec_trace = trace
        step(db)

    dies.__name__ = step.__name__
    return dies


def migrate_and_die(home: str, last_step: str, statement: str) -> None:
    steps = [s if s.__name__ != last_step else dying(s, int(statement)) for s in STEPS]
    steps = steps[: [s.__name__ for s in steps].index(last_step) + 1]
    path = Path(home) / "memory.db"
    path.parent.mkdir(exist_ok=True)
    database = Database(path, busy_timeout_s=5, now=at_noon)
    migrations.migrate(database, Path(home) / "backups", steps)
    database.close()


def state_of(path: Path) -> tuple[bool, ...]:
    """Return which of the steps are there, each of them whole."""
    db = sqlite.open_connection(path, busy_timeout_s=5, read_only=False)
    names = {row[0] for row in db.rows("SELECT name FROM sqlite_schema")}
    done = (
        {row[0] for row in db.rows("SELECT name FROM migrations")}
        if "migrations" in names
        else set()
    )
    columns = {row[1] for row in db.rows("PRAGMA table_info(fragments)")}
    spent = {row[1] for row in db.rows("PRAGMA table_info(spend)")}
    held = {row[1] for row in db.rows("PRAGMA table_info(spend_reservations)")}
    standing = {row[1] for row in db.rows("PRAGMA table_info(standing)")}
    linked = {row[1] for row in db.rows("PRAGMA table_info(replacements)")}
    logged = {row[1] for row in db.rows("PRAGMA table_info(retrievals)")}
    sizes = {row[0] for row in db.rows("SELECT length(vector) FROM vectors")} if done else set()
    stored = db.column("SELECT older_text FROM replacements") if "replacements" in names else []
    db.close()
    assert sqlite.integrity_problems(path) == []
    first = {"m001_initial" in done, "items" in names, "spend" in names, "session_words" in names}
    second = {"m002_requests" in done, "layer" in spent, "without_usd" in spent}
    third = {"m003_dialogues" in done, "dialogue_states" in names, "recall_markers" in names}
    fourth = {"m004_holders" in done, "process" in held, "prompt_usd" in held}
    fifth = {"m005_withdrawals" in done, "withdraws" in standing, "standing_withdraws" in names}
    sixth = {"m006_quantized_vectors" in done, *(size == DIMENSION + 4 for size in sizes)}
    seventh = {
        "m007_vectors_of_two_embedders" in done,
        "next_vectors_queue" in names,
        "vectors_embedder" in names,
    }
    eighth = {
        "m008_states_of_instructions" in done,
        "state" in standing,
        "standing_states" in names,
        "withdraws" in standing and "standing_newest" not in names,
    }
    ninth = {
        "m009_replacements" in done,
        "replacements" in names,
        "replacement_queue" in names,
    }
    tenth = {
        "m010_task_memory" in done,
        "tasks" in names,
        "layout_files" in names,
        "archived_at" in columns,
        "outcome" in logged,
        "retrievals_task" in names,
    }
    eleventh = {
        "m011_sync" in done,
        "sync_records" in names,
        "sync_pending" in names,
        "sync_peers" in names,
    }
    twelfth = {
        "m012_statement_keys" in done,
        *(len(text.encode()) <= STATEMENT_BYTES for text in stored),
    }
    thirteenth = {
        "m013_asked_messages" in done,
        "newer_asked_n" in linked,
        "older_asked_n" in linked,
        "replacements_newer_asked" in names,
        "replacements_older_asked" in names,
    }
    assert "former_vectors" not in names
    last = {"m900_later" in done, "later" in names, "mood" in columns}
    later = (sixth, seventh, eighth, ninth, tenth, eleventh, twelfth, thirteenth, last)
    steps = (first, second, third, fourth, fifth, *later)
    assert all(len(step) == 1 for step in steps), (names, done)
    return tuple(step.pop() for step in steps)


def run_each(home: Path, step: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.test_migrations", str(home), step],
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    found: list[Any] = json.loads(done.stdout)
    return found


def kill_at_each_statement(home: Path, step: str) -> None:
    """Fork a process per statement; print what each of them leaves behind."""
    left = []
    before = STEPS[: [one.__name__ for one in STEPS].index(step)]
    if before:
        (home / "old").mkdir()
        old = Database(home / "old" / "memory.db", busy_timeout_s=5, now=at_noon)
        migrations.migrate(old, None, before)
        old.write(lambda db: add_fragment(db, 1, "an old fact"))
        if step == "m006_quantized_vectors":
            old.write(add_former_vectors)
        if text := FORMER_LINKS.get(step):
            old.write(partial(add_former_links, older_text=text))
        old.close()
    for statement in range(1, 400):
        place = home / f"{step}-{statement}"
        if before:
            shutil.copytree(home / "old", place)
        pid = os.fork()
        if pid == 0:
            migrate_and_die(str(place), step, str(statement))
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        left.append([code, *state_of(place / "memory.db")])
        if code == 0:
            break
    sys.stdout.write(json.dumps(left))


@pytest.mark.parametrize("place", range(len(STEPS)))
def test_a_migration_killed_at_any_statement_leaves_the_old_or_the_new_schema(
    tmp_path: Path, place: int
) -> None:
    left = run_each(tmp_path, STEPS[place].__name__)
    old = [9, *(at < place for at in range(len(STEPS)))]
    new = [0, *(at <= place for at in range(len(STEPS)))]
    assert left[-1] == new
    assert all(state == old for state in left[:-1])
    assert len(left) > (5 if place else 50)


def test_after_a_killed_migration_the_next_start_migrates(tmp_path: Path) -> None:
    pid = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tests.trust.test_migrations import migrate_and_die as die;"
            f"die({str(tmp_path)!r}, 'm001_initial', '20')",
        ],
        check=False,
        cwd=ROOT,
    )
    assert pid.returncode == 9
    open_at(tmp_path).close()
    assert state_of(tmp_path / "memory.db") == (*[True] * len(migrations.MIGRATIONS), False)


if __name__ == "__main__":
    kill_at_each_statement(Path(sys.argv[1]), sys.argv[2])
