from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import clock
from lore.errors import AmbiguousId, InvalidInput, NotFound, StoreDamaged
from lore.records import ITEM_TYPES
from lore.store import items
from lore.store.sql_connection import Connection, id_blob
from lore.store.sqlite import SqliteConnection
from tests.store.samples import NOON, add_fragment, add_messages, new_session, numbered_id


def test_an_id_is_found_whole_and_by_a_prefix_of_eight(db: Connection) -> None:
    n = add_fragment(db, 0xABCDEF01)
    for wanted in (numbered_id(0xABCDEF01), "abcdef01", "  ABCDEF01-00 "):
        assert items.resolve(db, wanted).n == n


@pytest.mark.parametrize("wanted", ["", "abc", "abcdef0", "zzzzzzzzz", "'; DROP", "\0" * 9])
def test_an_invalid_id_is_refused(db: Connection, wanted: str) -> None:
    with pytest.raises(InvalidInput):
        items.resolve(db, wanted)


def test_an_unknown_id_is_not_found(db: Connection) -> None:
    with pytest.raises(NotFound):
        items.resolve(db, "00000000-0000")


def test_an_ambiguous_prefix_error_lists_the_ids(db: Connection) -> None:
    ids = [f"aaaaaaaa-000{i}-7000-8000-000000000000" for i in range(4)]
    for id_ in ids:
        items.add(db, items.NewItem(id_, "fragment", None, None, 0, 0, embeds=True))
    with pytest.raises(AmbiguousId, match=ids[0]):
        items.resolve(db, "aaaaaaaa")


def test_an_ambiguous_prefix_error_has_the_texts(db: Connection) -> None:
    add_fragment(db, 0xABCDEF01, content="Deploys stop the service\nfirst.")
    [said] = add_messages(db, new_session(db), "the port is 3334")
    db.run(
        f"UPDATE items SET id = {id_blob(':id')} WHERE id = {id_blob(':said')}",
        id="abcdef01-0009-7000-8000-000000000000",
        said=said,
    )
    with pytest.raises(AmbiguousId) as raised:
        items.resolve(db, "abcdef01")
    assert [text for _, text in raised.value.candidates] == [
        "Deploys stop the service first.",
        "the port is 3334",
    ]


def test_a_type_restricts_the_resolution_of_ids(db: Connection) -> None:
    add_fragment(db, 1)
    with pytest.raises(NotFound, match="No message"):
        items.resolve(db, numbered_id(1), type="message")


@given(st.lists(st.integers(0, 2**41), unique=True, min_size=1, max_size=30))
def test_a_short_id_is_unique(moments: list[int]) -> None:
    ids = [clock.new_id(clock.from_us(1000 * ms)) for ms in moments]
    raw = items_in_memory(ids)
    listed = items.listed_ids(raw, ids)
    for id_, short in items.short_ids(raw, ids).items():
        for name in (short, listed[id_]):
            assert [other for other in ids if other.startswith(name)] == [id_]
            assert not name.endswith("-")
    assert len({len(name) for name in listed.values()}) == 1
    raw.close()


def items_in_memory(ids: list[str]) -> Connection:
    connection = SqliteConnection(apsw.Connection(":memory:"), Path("memory"), read_only=False)
    connection.rows("CREATE TABLE items (n INTEGER PRIMARY KEY, id BLOB UNIQUE)")
    connection.run_many(
        f"INSERT INTO items (id) VALUES ({id_blob(':id')})", [{"id": id_} for id_ in ids]
    )
    return connection


def test_items_are_counted_by_type(db: Connection) -> None:
    add_messages(db, new_session(db), "one", "two")
    add_fragment(db, 1)
    assert items.count_by_type(db) == {"message": 2, "distillation": 0, "fragment": 1}


@pytest.mark.parametrize("name", ITEM_TYPES)
def test_a_type_keeps_its_number(name) -> None:
    assert items.type_name(items.type_number(name)) == name


def test_an_unknown_type_number_is_reported_as_damage() -> None:
    with pytest.raises(StoreDamaged):
        items.type_name(77)


def test_ids_are_found_by_number(db: Connection) -> None:
    ns = [add_fragment(db, i, created_at=NOON) for i in (1, 2)]
    assert items.ids_of(db, ns) == {ns[0]: numbered_id(1), ns[1]: numbered_id(2)}
    assert items.ids_of(db, []) == {}


@pytest.mark.parametrize("id_", ["former", "", "aaaaaaaa", numbered_id(10).upper()])
def test_an_id_that_is_not_a_uuid_is_refused(db: Connection, id_: str) -> None:
    with pytest.raises(InvalidInput):
        items.add(db, items.NewItem(id_, "fragment", None, None, 0, 0, embeds=True))
    assert items.find_number(db, id_) is None


def test_an_item_number_is_found_by_id(db: Connection) -> None:
    n = add_fragment(db, 1)
    assert items.find_number(db, numbered_id(1)) == n
    assert items.ids_of(db, [n]) == {n: numbered_id(1)}
    assert items.resolve(db, numbered_id(1)[:11]).id == numbered_id(1)
    with pytest.raises(NotFound):
        items.resolve(db, numbered_id(1).replace("-", ""))
