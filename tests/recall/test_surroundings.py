from __future__ import annotations

from datetime import timedelta

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.records import NewMessage, Part
from tests.fakes import NOON, FixedClock
from tests.recall.talk import say


def test_around_a_message_is_what_was_said_and_learned_in_its_session(
    memory: Memory, clock: FixedClock
):
    ids = say(memory, "a", *(f"word {place}" for place in range(6)))
    say(memory, "b", "elsewhere")
    clock.advance(minutes=2.5)
    learned = memory.store("Learned in between", session="a")
    found = memory.around(ids[2], before=1, after=2)
    assert [one.id for one in found] == [ids[1], ids[2], learned, ids[3]]
    assert [one.is_anchor for one in found] == [False, True, False, False]
    assert [one.what for one in found] == ["assistant", "user", "fact", "assistant"]


def test_around_a_time_is_what_happened_in_all_sessions(memory: Memory):
    early = say(memory, "a", "one", "two", at=NOON - timedelta(hours=1), project="/code/a")
    late = say(memory, "b", "three", "four", at=NOON, project="/code/b")
    for anchor in ("2026-05-13T12:00", "2026-05-13 12:00:00+00:00"):
        found = memory.around(anchor, before=1, after=1)
        assert [one.id for one in found] == [early[1], late[0]]
        assert not any(one.is_anchor for one in found)
    within = memory.around("2026-05-13T12:00", project="/code/a")
    assert [one.id for one in within] == early


def test_a_time_may_be_said_in_words(memory: Memory):
    ids = say(memory, "a", "one", at=NOON - timedelta(days=1))
    assert [one.id for one in memory.around("yesterday")] == ids


def test_around_now_is_what_happened_last(memory: Memory):
    ids = say(memory, "a", *(f"word {place}" for place in range(9)), at=NOON - timedelta(days=1))
    assert [one.id for one in memory.around("now", before=3)] == ids[-3:]


def test_a_date_of_digits_is_a_time_and_no_id(memory: Memory):
    ids = say(memory, "a", "one", at=NOON)
    assert [one.id for one in memory.around("20260513")] == ids


def test_around_a_fragment_is_its_session(memory: Memory, clock: FixedClock):
    ids = say(memory, "a", "one", "two")
    say(memory, "b", "elsewhere")
    clock.advance(minutes=5)
    learned = memory.store("Learned", session="a")
    found = memory.around(learned)
    assert [one.id for one in found] == [*ids, learned]
    assert found[-1].is_anchor


def test_what_a_tool_gave_back_is_left_out_and_calls_are_told(memory: Memory):
    new = [
        NewMessage("user", (Part("text", "look"),), NOON),
        NewMessage(
            "assistant",
            (Part("reasoning", "hm"), Part("tool_call", '{"command": "ls"}', "Bash")),
            NOON + timedelta(seconds=1),
        ),
        NewMessage("tool", (Part("tool_result", "a b c"),), NOON + timedelta(seconds=2)),
        NewMessage("assistant", (Part("text", "done"),), NOON + timedelta(seconds=3)),
    ]
    ids = memory.capture("s", new)
    found = memory.around(ids[0])
    assert [one.id for one in found] == [ids[0], ids[1], ids[3]]
    assert "ls" in found[1].text
    assert "hm" not in found[1].text


def test_what_was_deleted_is_left_out(memory: Memory):
    [said] = say(memory, "a", "one")
    memory.delete(memory.store("Learned", session="a"))
    assert [one.id for one in memory.around(said)] == [said]


@pytest.mark.parametrize("anchor", ["whenever", "99/99", ""])
def test_what_is_neither_an_id_nor_a_time_is_refused(memory: Memory, anchor: str):
    with pytest.raises(InvalidInput, match="no time that I understand"):
        memory.around(anchor)


def test_an_id_that_is_not_there_is_not_found(memory: Memory):
    with pytest.raises(NotFound, match="No item starts with"):
        memory.around("ab12cd34")
