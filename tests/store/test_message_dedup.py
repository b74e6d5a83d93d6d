from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.capture.message_capture import prepare
from lore.records import Channel, NewMessage, Part
from lore.store import hard_delete, history, message_dedup, messages
from lore.store.database import Database
from lore.store.hard_delete import ForgetSelection
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, add_messages, new_session, open_at


def bring(
    db: Connection, session_n: int, channel: Channel, *said: str, first: int = 0
) -> list[str]:
    """Store texts by a channel whose keys are the places they have in the talk."""
    prepared = [
        prepare(NewMessage("user", (Part("text", text),), NOON, key=f"{channel}-{first + i}"))
        for i, text in enumerate(said)
    ]
    return messages.add_messages(db, session_n, prepared, now=NOON, channel=channel)


def stored(db: Connection, session_n: int) -> list[str]:
    return [message.parts[0].text for message in messages.messages_of_session(db, session_n)]


def test_a_conversation_of_two_channels_is_stored_once(db: Connection) -> None:
    n = new_session(db)
    first = bring(db, n, "file", "hi", "yes", "yes")
    assert bring(db, n, "gateway", "hi", "yes", "yes", "bye")[:3] == first
    assert bring(db, n, "file", "bye", first=3) == [
        message.id for message in messages.messages_of_session(db, n)[3:]
    ]
    assert stored(db, n) == ["hi", "yes", "yes", "bye"]


def test_a_repeated_text_in_one_channel_is_stored_twice(db: Connection) -> None:
    n = new_session(db)
    bring(db, n, "file", "yes")
    bring(db, n, "gateway", "yes", "yes")
    bring(db, n, "file", "yes", "yes", first=1)
    assert stored(db, n) == ["yes", "yes", "yes"]


def test_a_key_belongs_to_its_channel(db: Connection) -> None:
    n = new_session(db)
    for channel, text in (("file", "one"), ("push", "two")):
        new = NewMessage("user", (Part("text", text),), NOON, key="0")
        messages.add_messages(db, n, [prepare(new)], now=NOON, channel=channel)  # type: ignore[arg-type]
    assert stored(db, n) == ["one", "two"]


def test_a_session_of_one_channel_has_no_claims(db: Connection) -> None:
    n = new_session(db)
    bring(db, n, "file", "a", "b", "a")
    bring(db, n, "file", "a", "b", "a", "c")
    assert db.value("SELECT count(*) FROM claims") == 0


def test_a_forgotten_message_is_not_brought_back_by_another_channel(db: Connection) -> None:
    n = new_session(db)
    bring(db, n, "file", "hi", "my secret")
    bring(db, n, "gateway", "hi", "my secret")
    gone = db.value("SELECT n FROM messages WHERE ordinal = 1")
    hard_delete.forget(db, ForgetSelection((gone,)), now=NOON)
    for channel in ("file", "gateway", "hook", "push"):
        bring(db, n, channel, "hi", "my secret")
    assert stored(db, n) == ["hi"]
    bring(db, n, "file", "my secret", first=7)
    assert stored(db, n) == ["hi", "my secret"]


def test_tombstone_ids_of_channels_contain_the_message_id(db: Connection) -> None:
    n = new_session(db)
    id_ = add_messages(db, n, "hi")[0]
    hard_delete.forget(db, ForgetSelection((db.value("SELECT n FROM messages"),)), now=NOON)
    assert {message_dedup.message_id_of(name) for name in history.all_tombstones(db)} == {id_}
    assert bring(db, n, "hook", "hi") == [id_]


words = st.sampled_from(["yes", "no", "go on"])
steps = st.tuples(
    st.sampled_from(["file", "gateway", "hook"]), st.integers(0, 8), st.integers(0, 8)
)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_at(tmp_path_factory.mktemp("claims"))
    yield opened
    opened.close()


@settings(max_examples=200)
@given(
    talk=st.lists(words, min_size=1, max_size=9),
    schedule=st.lists(steps, max_size=12),
    last=st.sampled_from(["file", "gateway", "hook"]),
)
def test_channels_cut_anywhere_and_replayed_store_a_conversation_once_in_order(
    lasting: Database, talk: list[str], schedule: list[tuple[Channel, int, int]], last: Channel
) -> None:
    come: dict[str, int] = {}

    def run(db: Connection) -> list[str]:
        n = new_session(db, uuid.uuid4().hex)
        for channel, start, length in [*schedule, (last, 0, len(talk))]:
            first = min(start, come.get(channel, 0))
            bring(db, n, channel, *talk[first : first + length], first=first)
            come[channel] = max(come.get(channel, 0), min(len(talk), first + length))
        return stored(db, n)

    assert lasting.write(run) == talk
