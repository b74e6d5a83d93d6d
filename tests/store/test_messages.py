from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.capture.messages import prepare
from lore.store import changes, messages, standing
from lore.store.db import Database
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_messages, minutes, new_message, new_session


def test_messages_are_numbered_in_order(db: Connection) -> None:
    session_n = new_session(db)
    add_messages(db, session_n, "one", "two")
    add_messages(db, session_n, "three")
    found = messages.of_session(db, session_n)
    assert [(m.ordinal, m.parts[0].text) for m in found] == [(0, "one"), (1, "two"), (2, "three")]
    assert [m.ordinal for m in messages.of_session(db, session_n, first=1, limit=1)] == [1]


def test_a_message_with_a_known_key_is_stored_once(db: Connection) -> None:
    session_n = new_session(db)
    first = add_messages(db, session_n, "one", "two")
    again = add_messages(db, session_n, "two", "three", "two")
    assert again[0] == first[1] == again[2]
    assert len(messages.of_session(db, session_n)) == 3


def test_the_same_key_in_another_session_is_another_message(db: Connection) -> None:
    ids = [add_messages(db, new_session(db, name), "one")[0] for name in ("a", "b")]
    assert len(set(ids)) == 2


def test_a_session_knows_when_it_was_last_spoken_in(db: Connection) -> None:
    session_n = new_session(db)
    messages.add(db, session_n, [prepare(new_message("late", 30, key="a"))], now=NOON)
    messages.add(db, session_n, [prepare(new_message("early", 10, key="b"))], now=NOON)
    assert db.value("SELECT last_message_at FROM sessions") == db.value(
        "SELECT max(created_at) FROM items"
    )


def test_a_message_comes_back_as_it_was(db: Connection) -> None:
    session_n = new_session(db)
    new = new_message("hello", 3, key="k", speaker="Ada")
    messages.add(db, session_n, [prepare(new)], now=NOON)
    (found,) = messages.of_session(db, session_n)
    assert (found.parts, found.created_at, found.speaker) == (new.parts, minutes(3), "Ada")
    n = db.value("SELECT n FROM messages")
    assert messages.get(db, n) == found == messages.by_number(db, [n])[n]
    assert messages.by_number(db, []) == {}


def test_standing_instructions_and_speakers_are_kept(db: Connection) -> None:
    session_n = new_session(db)
    add_messages(db, session_n, "Always answer in French.")
    add_messages(db, session_n, "hello", speaker="Ada")
    assert len(standing.newest(db, None)) == 1
    assert messages.find_speakers(db, ["Ada", "Bob", "Ada"]) == ["Ada"]


def test_a_forgotten_message_keeps_its_former_id_and_stays_away(db: Connection) -> None:
    session_n = new_session(db)
    source = changes.source_of("test", "talk", "one")
    changes.bury(db, ["former"], NOON, sources={"former": source})
    ids = add_messages(db, session_n, "one", "two")
    assert ids[0] == "former"
    assert [m.parts[0].text for m in messages.of_session(db, session_n)] == ["two"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.text("abc", min_size=1, max_size=2), max_size=6), max_size=5))
def test_any_replay_stores_each_key_once_and_leaves_no_gap(
    database: Database, batches: list[list[str]]
) -> None:
    def work(db: Connection) -> tuple[list[str], list[int]]:
        db.run("DELETE FROM items")
        session_n = new_session(db)
        for batch in batches:
            add_messages(db, session_n, *batch)
        found = messages.of_session(db, session_n)
        return [m.parts[0].text for m in found], [m.ordinal for m in found]

    texts, ordinals = database.write(work)
    assert texts == list(dict.fromkeys(text for batch in batches for text in batch))
    assert ordinals == list(range(len(texts)))
