from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.capture.message_capture import prepare
from lore.records import NewMessage, Origin, Part, Role
from lore.store import distillations, history, items, messages, standing_instructions
from lore.store.database import Database
from lore.store.sql_connection import Connection
from tests.store.samples import (
    NOON,
    add_fragment,
    add_messages,
    minutes,
    new_distillation,
    new_message,
    new_session,
)


def test_messages_are_numbered_in_order(db: Connection) -> None:
    session_n = new_session(db)
    add_messages(db, session_n, "one", "two")
    add_messages(db, session_n, "three")
    found = messages.messages_of_session(db, session_n)
    assert [(m.ordinal, m.parts[0].text) for m in found] == [(0, "one"), (1, "two"), (2, "three")]
    assert [m.ordinal for m in messages.messages_of_session(db, session_n, first=1, limit=1)] == [1]


def test_a_message_with_a_known_key_is_stored_once(db: Connection) -> None:
    session_n = new_session(db)
    first = add_messages(db, session_n, "one", "two")
    again = add_messages(db, session_n, "two", "three", "two")
    assert again[0] == first[1] == again[2]
    assert len(messages.messages_of_session(db, session_n)) == 3


def test_the_same_key_in_another_session_is_another_message(db: Connection) -> None:
    ids = [add_messages(db, new_session(db, name), "one")[0] for name in ("a", "b")]
    assert len(set(ids)) == 2


def test_a_session_has_the_time_of_its_last_message(db: Connection) -> None:
    session_n = new_session(db)
    messages.add_messages(db, session_n, [prepare(new_message("late", 30, key="a"))], now=NOON)
    messages.add_messages(db, session_n, [prepare(new_message("early", 10, key="b"))], now=NOON)
    assert db.value("SELECT last_message_at FROM sessions") == db.value(
        "SELECT max(created_at) FROM items"
    )


def test_a_stored_message_is_read_back(db: Connection) -> None:
    session_n = new_session(db)
    new = new_message("hello", 3, key="k", speaker="Ada")
    messages.add_messages(db, session_n, [prepare(new)], now=NOON)
    (found,) = messages.messages_of_session(db, session_n)
    assert (found.parts, found.created_at, found.speaker) == (new.parts, minutes(3), "Ada")
    n = db.value("SELECT n FROM messages")
    assert messages.get_message(db, n) == found == messages.get_messages(db, [n])[n]
    assert messages.get_messages(db, []) == {}


def test_standing_instructions_and_speakers_are_stored(db: Connection) -> None:
    session_n = new_session(db)
    add_messages(db, session_n, "Always answer in French.")
    add_messages(db, session_n, "hello", speaker="Ada")
    assert len(standing_instructions.current_instructions(db, None)) == 1
    assert messages.find_speakers(db, ["Ada", "Bob", "Ada"]) == ["Ada"]


def test_a_forgotten_message_is_not_stored_again(db: Connection) -> None:
    session_n = new_session(db)
    source = history.source_digest("test", "talk", "one")
    history.add_tombstones(db, ["former"], NOON, sources={"former": source})
    ids = add_messages(db, session_n, "one", "two")
    assert ids[0] == "former"
    assert [m.parts[0].text for m in messages.messages_of_session(db, session_n)] == ["two"]


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
        found = messages.messages_of_session(db, session_n)
        return [m.parts[0].text for m in found], [m.ordinal for m in found]

    texts, ordinals = database.write(work)
    assert texts == list(dict.fromkeys(text for batch in batches for text in batch))
    assert ordinals == list(range(len(texts)))


def say(db: Connection, *parts: Part, role: Role = "user", origin: Origin | None = None) -> str:
    new = NewMessage(role, parts, NOON, key=f"{parts}", origin=origin)
    return messages.add_messages(db, new_session(db), [prepare(new)], now=NOON)[0]


def number(db: Connection, id_: str) -> int:
    return items.resolve(db, id_).n


@pytest.mark.parametrize(
    ("parts", "doubted"),
    [
        ((Part("text", "said"),), False),
        ((Part("text", 'speaks of "origin": and "tool_result"'),), False),
        ((Part("text", "said"), Part("aside", "boot", origin="repo")), False),
        ((Part("text", "said"), Part("opaque", "?", origin="web")), False),
        ((Part("text", "said", origin="assistant"),), False),
        ((Part("text", "said"), Part("text", "quoted", origin="web")), True),
        ((Part("text", "said"), Part("tool_result", "out")), True),
        ((Part("text", "said"), Part("document", "page", origin="peer")), True),
    ],
)
def test_a_message_with_untrusted_parts_is_an_untrusted_mixture(db: Connection, parts, doubted):
    n = number(db, say(db, *parts))
    assert messages.untrusted_mixtures(db, [n]) == ({n} if doubted else set())


def test_a_distillation_of_untrusted_messages_is_an_untrusted_mixture(db: Connection):
    first = say(db, Part("text", "one"))
    say(db, Part("tool_result", "out"), role="tool")
    last = say(db, Part("text", "two"), role="assistant")
    session_n = new_session(db)
    whole = distillations.add_distillation(
        db, session_n, new_distillation(1, "x", first, last), now=NOON
    )
    clean = distillations.add_distillation(
        db, session_n, new_distillation(2, "y", last, last), now=NOON
    )
    assert messages.untrusted_mixtures(db, [whole, clean]) == {whole}


def test_no_items_have_no_untrusted_mixtures(db: Connection):
    assert messages.untrusted_mixtures(db, []) == set()


def test_trusted_items_of_all_types_are_found(db: Connection):
    said = number(db, say(db, Part("text", "said")))
    tool = number(db, say(db, Part("tool_result", "out"), role="tool"))
    own, page = add_fragment(db, 1), add_fragment(db, 2, origin="web")
    learned = add_fragment(db, 3, origin="assistant", trust=0)
    assert messages.trusted_items(db, [said, tool, own, page, learned]) == {said, own}
