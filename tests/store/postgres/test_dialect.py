from __future__ import annotations

import pytest

from lore.store.postgres.dialect import parameter_names, split_insert, translate


@pytest.mark.parametrize(
    ("sql", "translated"),
    [
        ("SELECT :a, ':b', x::text", "SELECT %(a)s, ':b', x::text"),
        ("m.parts LIKE '%x%'", "m.parts ILIKE '%%x%%'"),
        ("a IS :b AND c IS NOT 5 AND d IS NULL", None),
        ("n IN (SELECT value FROM carray(:ns))", None),
        ("ON CONFLICT (key) DO NOTHING", "ON CONFLICT (owner, key) DO NOTHING"),
        ("ON CONFLICT DO NOTHING", "ON CONFLICT DO NOTHING"),
        ("CAST(x AS INTEGER)", "CAST(x AS BIGINT)"),
    ],
)
def test_a_statement_is_translated(sql: str, translated: str | None) -> None:
    others = {
        "a IS :b AND c IS NOT 5 AND d IS NULL": (
            "a IS NOT DISTINCT FROM %(b)s AND c IS DISTINCT FROM 5 AND d IS NULL"
        ),
        "n IN (SELECT value FROM carray(:ns))": "n = ANY(%(ns)s)",
    }
    assert translate(sql) == (translated or others[sql])


def test_keys_of_a_table_begin_with_the_owner() -> None:
    sql = translate(
        "CREATE TABLE spend (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,"
        " session_n INTEGER REFERENCES sessions (n) ON DELETE SET NULL, usd REAL)"
    )
    assert "n BIGINT NOT NULL DEFAULT next_number('spend')" in sql
    assert 'key TEXT COLLATE "C" NOT NULL' in sql
    assert "PRIMARY KEY (owner, n)" in sql
    assert "UNIQUE (owner, key)" in sql
    assert (
        "FOREIGN KEY (owner, session_n) REFERENCES sessions (owner, n)"
        " ON DELETE SET NULL (session_n)" in sql
    )
    assert "FORCE ROW LEVEL SECURITY" in sql


def test_names_are_in_the_order_of_their_first_use() -> None:
    sql = "UPDATE t SET a = :b, c = :a WHERE n IN (SELECT value FROM carray(:ns)) AND d = :b"
    assert parameter_names(sql) == ("b", "a", "ns")


def test_rows_are_inserted_together_only_where_the_caller_numbers_them() -> None:
    assert split_insert("INSERT INTO t (n, a) VALUES (:n, f(:a))") == (
        "INSERT INTO t (n, a) VALUES ",
        "(%(n)s, f(%(a)s))",
        "",
    )
    assert split_insert("INSERT INTO t (a, b) VALUES (:a, :b)") is None
