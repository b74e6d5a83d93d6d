from __future__ import annotations

from uuid import UUID

import apsw
from hypothesis import given
from hypothesis import strategies as st

from lore.store.sqlite import Connection
from lore.store.sqlite.dialect import among, has_table, id_of, id_text, is_blank, numbers, texts


@given(st.lists(st.integers(0, 2**62), max_size=20))
def test_numbers_bind_as_a_list_even_when_there_are_none(values: list[int]) -> None:
    raw = apsw.Connection(":memory:")
    raw.execute("CREATE TABLE t (n)")
    raw.executemany("INSERT INTO t VALUES (?)", [(n,) for n in {*values, 5}])
    sql = f"SELECT n FROM t WHERE {among('n', 'ns')}"
    found = {row[0] for row in raw.execute(sql, {"ns": numbers(values)})}
    assert found == set(values)


def test_texts_bind_as_a_list(db: Connection) -> None:
    db.run("INSERT INTO speakers (name) VALUES ('Ada'), ('Bob'), ('Cy')")
    rows = db.rows(
        f"SELECT name FROM speakers WHERE {among('name', 'names')}", names=texts(["Bob"])
    )
    assert rows == [("Bob",)]


def test_a_table_is_known_by_its_name(db: Connection) -> None:
    assert has_table(db, "items")
    assert not has_table(db, "unheard_of")
    assert not is_blank(db)


@given(st.uuids())
def test_an_id_is_kept_in_sixteen_bytes_and_read_as_text(id_: UUID) -> None:
    raw = apsw.Connection(":memory:")
    raw.execute("CREATE TABLE t (id BLOB)")
    raw.execute(f"INSERT INTO t VALUES ({id_of(':id')}), (NULL)", {"id": str(id_)})
    sql = f"SELECT length(id), {id_text('id')} FROM t"
    assert raw.execute(sql).fetchall() == [(16, str(id_)), (None, None)]
