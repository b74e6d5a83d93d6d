"""Row-level security: the application role reaches the rows of the current owner alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from lore.errors import StoreError
from lore.store.postgres.owner_connection import Pool, owner_of
from lore.store.postgres.server_database import PostgresDatabase
from lore.store.sql_connection import Connection
from tests import engines
from tests.store.samples import add_fragment, open_at


def as_owner(app: Any, name: str, sql: str) -> list[Any]:
    """Return the rows of a statement in a transaction of an owner."""
    with app.transaction():
        app.execute(f"SET LOCAL lore.owner = '{owner_of(name)}'")
        rows: list[Any] = app.execute(sql).fetchall()
        return rows


def test_every_table_with_rows_of_owners_forces_row_level_security(
    database: PostgresDatabase, admin: Any
) -> None:
    rows = admin.execute(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c"
        " JOIN pg_namespace s ON s.oid = c.relnamespace"
        " WHERE s.nspname = 'lore' AND c.relkind = 'r'"
    ).fetchall()
    open_tables = {name for name, is_forced in rows if not is_forced}
    assert len(rows) > 40
    assert open_tables == {"migrations", "revisions", "owners"}


def test_every_index_and_key_of_owned_rows_begins_with_the_owner(
    database: PostgresDatabase, admin: Any
) -> None:
    rows = admin.execute(
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'lore'"
        " AND tablename NOT IN ('migrations', 'revisions', 'owners')"
    ).fetchall()
    others = [name for _, name, sql in rows if "(owner" not in sql and "USING btree" in sql]
    assert others == []


def test_the_application_role_is_bounded(admin: Any, database: PostgresDatabase) -> None:
    roles = admin.execute(
        "SELECT DISTINCT rolsuper, rolbypassrls FROM pg_roles"
        " WHERE rolname IN ('lore_app', 'lore_owner')"
    ).fetchall()
    owners = admin.execute(
        "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'lore'"
    ).fetchall()
    assert roles == [(False, False)]
    assert owners == [("lore_owner",)]
    with database.read() as db:
        assert db.value("SELECT current_user") == "lore_app"


def test_raw_sql_of_one_owner_reads_no_row_of_another(
    database: PostgresDatabase, app: Any, tmp_path: Path
) -> None:
    database.write(lambda db: add_fragment(db, 1, "the harbour opens at noon"))
    tables = ("items", "fragments", "fragment_words", "meta", "receipts", "vector_rows")
    for table in tables:
        assert as_owner(app, "someone else", f"SELECT count(*) FROM {table}") == [(0,)]
    found = "SELECT n FROM match_words('fragment_words', '''harbour''')"
    assert as_owner(app, "someone else", found) == []
    assert as_owner(app, str(tmp_path), "SELECT count(*) FROM fragments") == [(1,)]


def test_without_an_owner_nothing_is_visible_and_nothing_can_be_written(
    database: PostgresDatabase, app: Any
) -> None:
    database.write(lambda db: add_fragment(db, 1))
    assert app.execute("SELECT count(*) FROM items").fetchall() == [(0,)]
    assert app.execute("SELECT ns FROM uses_in_fragment_words('{x}', '{1}')").fetchall() == []
    with pytest.raises(psycopg.Error):
        app.execute("INSERT INTO meta (key, value) VALUES ('a', 'b')")


def test_a_row_of_another_owner_cannot_be_written(database: PostgresDatabase, app: Any) -> None:
    other = owner_of("someone else")
    app.execute(f"SET lore.owner = '{database.owner}'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute(f"INSERT INTO meta (owner, key, value) VALUES ('{other}', 'a', 'b')")


def test_the_application_role_can_neither_change_tables_nor_migrations(
    database: PostgresDatabase, app: Any
) -> None:
    for sql in (
        "ALTER TABLE items NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY own_rows ON items",
        "DELETE FROM migrations",
        "CREATE TABLE lore.other (n integer)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute(sql)


def test_two_owners_have_the_same_numbers_and_ids_apart(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    other = open_at(tmp_path / "other")

    def add(db: Connection) -> int:
        return add_fragment(db, 1, "a plain fact")

    assert database.write(add) == other.write(add) == 1
    other.write(lambda db: db.run("DELETE FROM items"))
    with database.read() as db:
        assert db.value("SELECT count(*) FROM items") == 1
    other.close()


def test_a_role_that_bypasses_row_level_security_is_refused(
    database: PostgresDatabase, admin: Any
) -> None:
    pool = Pool(engines.current_url())
    admin.execute("ALTER ROLE lore_app BYPASSRLS")
    try:
        with pytest.raises(StoreError, match="bypasses row-level security"):
            pool.take()
    finally:
        admin.execute("ALTER ROLE lore_app NOBYPASSRLS")


def test_a_role_that_may_not_create_tables_can_use_them(
    database: PostgresDatabase, admin: Any, tmp_path: Path
) -> None:
    from lore.store.postgres.server_database import open_postgres

    admin.execute("DROP ROLE IF EXISTS service; CREATE ROLE service LOGIN IN ROLE lore_app")
    url = engines.current_url().replace("//postgres:", "//service:")
    opened = open_postgres(url, "service", tmp_path / "postgres", busy_timeout_s=5)
    opened.write(lambda db: add_fragment(db, 1))
    with opened.read() as db:
        assert db.value("SELECT session_user") == "service"
        assert db.value("SELECT count(*) FROM items") == 1
    opened.close()
