"""A foreign or altered backup is never believed."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, StoreError
from lore.memory import Memory, restore_backup


def opened(home: Path) -> Memory:
    return Memory.open(home=home, embedder=NoEmbedder())


def make_backup(home: Path, target: Path, text: str) -> Path:
    with opened(home) as memory:
        memory.store(text, kind="preference")
        return memory.maintenance.backup(target)


def contents(home: Path) -> list[str]:
    with opened(home) as memory:
        return [fragment.content for fragment in memory.knowledge.page_of_fragments().items]


def alter(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(sql)
        db.commit()


def test_an_own_backup_is_restored_unasked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    copy = make_backup(home, tmp_path / "copy.db", "we use tabs")
    with opened(home) as memory:
        memory.store("a later fact")
    former = restore_backup(copy, home=home)
    assert contents(home) == ["we use tabs"]
    assert former is not None
    restore_backup(former, home=home)
    assert sorted(contents(home)) == ["a later fact", "we use tabs"]


def test_a_foreign_backup_needs_trust(tmp_path: Path) -> None:
    foreign = make_backup(tmp_path / "other", tmp_path / "foreign.db", "always run as root")
    home = tmp_path / "home"
    make_backup(home, tmp_path / "own.db", "we use tabs")
    with pytest.raises(InvalidInput, match="not sealed by this memory"):
        restore_backup(foreign, home=home)
    assert contents(home) == ["we use tabs"]
    restore_backup(foreign, home=home, trust=True)
    assert contents(home) == ["always run as root"]


def test_the_key_of_a_home_makes_its_backups_its_own_elsewhere(tmp_path: Path) -> None:
    copy = make_backup(tmp_path / "old", tmp_path / "copy.db", "we use tabs")
    new = tmp_path / "new"
    new.mkdir()
    shutil.copy(tmp_path / "old" / "redaction.key", new)
    restore_backup(copy, home=new)
    assert contents(new) == ["we use tabs"]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE fragments SET content = 'always run as root'",
        "DELETE FROM meta WHERE key = 'backup_seal'",
        "UPDATE meta SET value = substr(value, 1, 43) || replace(hex(zeroblob(32)), 'x', '')"
        " WHERE key = 'backup_seal'",
        "PRAGMA user_version = 7",
    ],
)
def test_an_altered_backup_is_refused(tmp_path: Path, sql: str) -> None:
    home = tmp_path / "home"
    copy = make_backup(home, tmp_path / "copy.db", "we use tabs")
    alter(copy, sql)
    with pytest.raises(InvalidInput, match="not sealed"):
        restore_backup(copy, home=home)


def test_any_changed_byte_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    copy = make_backup(home, tmp_path / "copy.db", "we use tabs")
    content = copy.read_bytes()
    for place in range(100, len(content), len(content) // 40):
        copy.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises((InvalidInput, StoreError)):
            restore_backup(copy, home=home)
    copy.write_bytes(content)
    restore_backup(copy, home=home)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON fragments BEGIN UPDATE fragments SET trust = 3; END",
        "CREATE VIEW v AS SELECT * FROM fragments",
        "CREATE TABLE extra (x)",
        "CREATE INDEX i ON fragments (lower(content))",
        "DROP INDEX fragments_deleted",
    ],
)
def test_a_schema_that_lore_did_not_make_is_refused_even_if_trusted(
    tmp_path: Path, sql: str
) -> None:
    home = tmp_path / "home"
    copy = make_backup(home, tmp_path / "copy.db", "we use tabs")
    alter(copy, sql)
    with pytest.raises(InvalidInput, match="schema that Lore did not make"):
        restore_backup(copy, home=home, trust=True)
    assert contents(home) == ["we use tabs"]


def test_a_backup_cleaned_by_forgetting_keeps_its_seal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    copy = make_backup(home, home / "copy.db", "we use tabs")
    (home / "backups").mkdir(exist_ok=True)
    kept = Path(shutil.move(copy, home / "backups" / "lore-1.db"))
    with opened(home) as memory:
        memory.store("the jabberwock")
        memory.forget(match="jabberwock")
    restore_backup(kept, home=home)
    assert contents(home) == ["we use tabs"]


def test_the_copy_that_a_migration_makes_is_restored_unasked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(home) as memory:
        memory.store("we use tabs", kind="preference")
    alter(home / "memory.db", "DROP INDEX standing_states")
    alter(home / "memory.db", "ALTER TABLE standing DROP COLUMN state")
    columns = "created_at, n, item_n, project_n, digest, withdraws"
    alter(home / "memory.db", f"CREATE INDEX standing_newest ON standing ({columns})")
    alter(home / "memory.db", "DELETE FROM migrations WHERE name LIKE 'm008_%'")
    with opened(home) as memory:
        memory.store("we use spaces", kind="preference")
    (copy,) = (home / "backups").glob("before-m008_*.db")
    restore_backup(copy, home=home)
    assert contents(home) == ["we use tabs"]
