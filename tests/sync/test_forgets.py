"""What one home forgot, and when: the others forget it, and keep what went on since."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lore import clock
from lore.capture.message_capture import Conversation, capture
from lore.errors import SyncError
from lore.records import NewMessage, Part
from lore.store import hard_delete, sessions, sync_forgets
from lore.store.database import Connection
from lore.store.hard_delete import ForgetSelection
from lore.store.history import Tombstone, all_tombstones, make_tombstone
from tests.sync.machines import NOON, Machine


@pytest.fixture
def pair() -> Iterator[tuple[Machine, Machine]]:
    machines = Machine("one"), Machine("other")
    yield machines
    for machine in machines:
        machine.close()


def say(machine: Machine, text: str, *, key: str, title: str = "") -> None:
    message = NewMessage("user", (Part("text", text),), machine.now(), key=key)
    capture(machine.database, Conversation("talk", agent="codex", title=title), [message])


def messages_of(machine: Machine) -> list[str]:
    with machine.database.read() as db:
        return db.column("SELECT parts FROM messages ORDER BY n")


def session_in(db: Connection) -> int:
    n = sessions.find_session(db, "talk", agent="codex")
    assert n is not None
    return n


def forget_session(machine: Machine) -> None:
    now = machine.now()
    machine.write(
        lambda db: hard_delete.forget(db, ForgetSelection(session_ns=(session_in(db),)), now=now)
    )


def times_of(machine: Machine) -> set[int]:
    with machine.database.read() as db:
        return {one.us for one in all_tombstones(db).values()}


def settle(one: Machine, other: Machine) -> None:
    for _ in range(4):
        other.sync_with(one)
    assert one.state() == other.state()
    assert one.replica.state_hash() == other.replica.state_hash()


@pytest.mark.parametrize("is_copy", [True, False])
def test_a_session_that_goes_on_survives_a_forget_that_arrives_late(pair, is_copy: bool) -> None:
    one, other = pair
    say(one, "Paint the gate.", key="1")
    if is_copy:
        say(other, "Paint the gate.", key="1")
    settle(one, other)
    forget_session(one)
    one.time += timedelta(minutes=1)
    say(one, "Oil the door.", key="2")
    other.time = one.time + timedelta(minutes=9)
    settle(one, other)
    for machine in pair:
        (left,) = messages_of(machine)
        assert "Oil the door." in left
        assert b"Paint the gate." not in machine.bytes()


def test_a_forget_has_one_time_on_all_machines(pair) -> None:
    one, other = pair
    say(one, "Paint the gate.", key="1")
    say(other, "Paint the gate.", key="1")
    settle(one, other)
    forget_session(one)
    (at,) = times_of(one)
    other.time += timedelta(minutes=10)
    settle(one, other)
    assert times_of(one) == times_of(other) == {at}


@pytest.mark.parametrize("skew", [timedelta(minutes=-10), timedelta(minutes=10)])
def test_a_session_goes_on_where_the_clock_differs_from_that_of_the_forget(
    pair, skew: timedelta
) -> None:
    one, other = pair
    say(one, "Paint the gate.", key="1")
    settle(one, other)
    other.skew = skew
    forget_session(one)
    settle(one, other)
    say(other, "Oil the door.", key="2")
    settle(one, other)
    for machine in pair:
        (left,) = messages_of(machine)
        assert "Oil the door." in left


def test_a_forget_of_a_clock_that_is_days_ahead_counts_as_of_now() -> None:
    late = clock.to_us(NOON + timedelta(days=2))
    assert make_tombstone("", late, now=NOON).us == clock.to_us(NOON)


def test_a_message_that_is_forgotten_with_the_title_leaves_the_rest_of_its_session(pair) -> None:
    one, other = pair
    say(one, "Paint the gate.", key="1", title="Paint the gate.")
    say(one, "Oil the door.", key="2")
    settle(one, other)
    one.write(lambda db: hard_delete.forget(db, ForgetSelection((1,)), now=one.now()))
    settle(one, other)
    for machine in pair:
        (left,) = messages_of(machine)
        assert "Oil the door." in left
        assert b"Paint the gate." not in machine.bytes()


@pytest.mark.parametrize("is_latest_first", [True, False])
def test_the_latest_of_two_forgets_of_a_session_counts(pair, is_latest_first: bool) -> None:
    one, _ = pair
    say(one, "Paint the gate.", key="1")
    with one.database.read() as db:
        (source,) = hard_delete.session_sources(db, [session_in(db)]).values()
    early, late = clock.to_us(NOON) - 1, clock.to_us(one.now())
    times = (late, early) if is_latest_first else (early, late)
    tombstones = {f"elsewhere-{us}": Tombstone(source, us) for us in times}
    one.write(lambda db: sync_forgets.forget(db, tombstones, now=one.now()))
    assert messages_of(one) == []


def test_what_a_copy_brings_back_keeps_the_time_at_which_it_was_forgotten(pair) -> None:
    one, _ = pair
    say(one, "Paint the gate.", key="1")
    with one.database.read() as db:
        id_ = str(db.value("SELECT id FROM sessions"))
    gone = {id_: Tombstone("", 1)}
    one.write(lambda db: hard_delete.apply_tombstones(db, gone, now=one.now()))
    assert times_of(one) == {1}
    with one.database.read() as db:
        assert all_tombstones(db)[id_].source  # it is recognized when it is captured again


def test_a_tombstone_whose_key_has_a_zero_character_is_refused_as_such(pair) -> None:
    one, other = pair
    say(one, "Paint the gate.", key="1")
    forget_session(one)
    one.replica.scan()
    records = one.replica.changes("").records
    next(record for record in records if record["kind"] == "forget")["key"] += "\0"
    with pytest.raises(SyncError, match="invalid 'key'"):
        other.replica.apply(records, via="one")
