from __future__ import annotations

from datetime import timedelta

from lore.memory import Memory
from lore.text import tokens
from lore.tools.catalogue import call
from lore.tools.timeline import TimelineResult
from lore.tools.tool import Caller
from tests.fakes import NOON
from tests.recall.talk import say


def test_a_timeline_tells_what_was_said_around_a_message_in_its_session(memory: Memory):
    ids = say(memory, "a", *(f"word {place}" for place in range(9)), title="Counting")
    say(memory, "b", "elsewhere at the same time")
    outcome = call(memory, "timeline", {"anchor": ids[4], "before": 2, "after": 1}, Caller())
    assert isinstance(outcome.data, TimelineResult)
    assert [one.id for one in outcome.data.happened] == ids[2:6]
    lines = outcome.text.split("\n")
    assert "Counting" in lines[2]
    assert [line[0] for line in lines[3:-1]] == [" ", " ", "*", " "]


def test_a_timeline_of_forty_happenings_stays_short(memory: Memory):
    ids = say(memory, "a", *("many words " * 200 for _ in range(41)))
    text = call(memory, "timeline", {"anchor": ids[20], "before": 20, "after": 20}, Caller()).text
    assert tokens.count(text) <= 1_600


def test_a_timeline_without_an_anchor_tells_what_happened_last(memory: Memory):
    say(memory, "a", "the last word", at=NOON - timedelta(hours=1))
    assert "the last word" in call(memory, "timeline", {}, Caller()).text


def test_a_time_at_which_nothing_happened_has_an_empty_timeline(memory: Memory):
    text = call(memory, "timeline", {"anchor": "2026-05-01"}, Caller()).text
    assert text == "Nothing happened around that time."
