"""The schema on PostgreSQL: migrations of later versions, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.errors import StoreBusy, StoreError
from lore.store import migrations
from lore.store.postgres import schema
from lore.store.postgres.server_database import PostgresDatabase, open_postgres
from lore.store.sql_connection import Connection, among, text_array
from tests import engines
from tests.store.samples import add_fragment, open_at


@migrations.additive
def m900_later(db: Connection) -> None:
    """Add a table and a column, and fill both."""
    db.rows("CREATE TABLE later (n INTEGER PRIMARY KEY, title TEXT NOT NULL)")
    db.rows("ALTER TABLE fragments ADD COLUMN later INTEGER NOT NULL DEFAULT 0")
    for n, summary in db.rows("SELECT n, summary FROM fragments"):
        db.insert("later", title=summary)
        db.update("fragments", n, later=1)


@pytest.fixture
def url(engine: str, tmp_path: Path, admin: Any) -> Iterator[str]:
    """The address of another database of the server."""
    admin.execute("CREATE DATABASE elsewhere")
    yield engines.current_url().replace("/postgres?", "/elsewhere?")
    admin.execute("DROP DATABASE elsewhere WITH (FORCE)")


def test_a_later_migration_changes_the_rows_of_every_owner(url: str, tmp_path: Path) -> None:
    path = tmp_path / "postgres"
    for name in ("ada", "bob"):
        database = open_postgres(url, name, path, busy_timeout_s=5)
        database.write(lambda db: add_fragment(db, 1, "a plain fact"))
        database.close()
    schema.prepare(url, path, (*migrations.MIGRATIONS, m900_later))
    database = open_postgres(url, "bob", path, busy_timeout_s=5)
    with database.read() as db:
        assert db.rows("SELECT n, title FROM later") == [(1, "a plain fact")]
        assert db.column("SELECT later FROM fragments") == [1]
    database.close()


def test_a_role_that_may_not_create_tables_is_refused_before_they_exist(
    url: str, admin: Any, tmp_path: Path
) -> None:
    admin.execute("DROP ROLE IF EXISTS visitor; CREATE ROLE visitor LOGIN")
    foreign = url.replace("//postgres:", "//visitor:")
    with pytest.raises(StoreError):
        open_postgres(foreign, "ada", tmp_path / "postgres", busy_timeout_s=5)


def test_an_owner_waits_for_another_writer_until_the_timeout(tmp_path: Path, engine: str) -> None:
    first, second = open_at(tmp_path), open_at(tmp_path, busy_timeout_s=0.2)
    other = open_at(tmp_path / "other", busy_timeout_s=0.2)
    held = first.connect()
    held.begin_write()
    with pytest.raises(StoreBusy):
        second.write(lambda db: db.insert("meta", key="a", value="b"))
    other.write(lambda db: db.insert("meta", key="a", value="b"))
    held.rows("COMMIT")
    second.write(lambda db: db.insert("meta", key="a", value="b"))
    held.close()
    for database in (first, second, other):
        database.close()


def test_text_with_a_zero_character_is_stored_with_the_sign_for_it(
    database: PostgresDatabase,
) -> None:
    database.write(lambda db: db.insert("meta", key="a", value="b\0c"))
    with database.read() as db:
        assert db.value("SELECT value FROM meta WHERE key = 'a'") == "b␀c"


def test_a_connection_that_the_server_closed_is_replaced(
    database: PostgresDatabase, admin: Any
) -> None:
    with database.read() as db:
        db.rows("SELECT 1")
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'lore' AND pid <> pg_backend_pid()"
    )
    with database.read() as db:
        assert db.value("SELECT 1") == 1


def test_texts_of_any_kind_bind_as_a_list(database: PostgresDatabase) -> None:
    names = ["it's", 'a"b', "c\\d", "e,f{}", "%s", ":name", "", "ümlaut"]
    database.write(lambda db: db.insert_many("speakers", ("name",), [(name,) for name in names]))
    with database.read() as db:
        sql = f"SELECT name FROM speakers WHERE {among('name', 'names')}"
        assert set(db.column(sql, names=text_array(names))) == set(names)
