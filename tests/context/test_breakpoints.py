"""Breakpoints: where a prompt tells its provider to cache it."""

from __future__ import annotations

import pytest

from lore.context.breakpoints import MOST, Breakpoints, breakpoints
from lore.records.dialogues import Pins, Plan, Summary
from tests.context.talks import dialogue, plain_talk

SUMMARY = Summary("s", "told", 10, 8)


def made(start: int = 0, *prefix: Summary) -> Plan:
    return Plan(1, Pins(), start, prefix)


def test_the_end_comes_first_then_the_summaries_then_the_last_end():
    entries = plain_talk(3)[:-1]
    found = [breakpoints(dialogue(entries, breakpoints=n), made(6, SUMMARY)) for n in range(5)]
    last = len(entries) - 1
    assert found[0] == found[1] == Breakpoints((last - 2, last), prefix=True)
    assert found[2] == Breakpoints((last,), prefix=True)
    assert found[3] == Breakpoints((last,), prefix=False)
    assert found[4] == Breakpoints()


@pytest.mark.parametrize("own", range(6))
def test_there_are_never_more_than_four(own):
    found = breakpoints(dialogue(plain_talk(4), breakpoints=own), made(6, SUMMARY))
    assert len(found.entries) + found.prefix <= max(0, MOST - own)


def test_a_prompt_without_summaries_marks_where_the_last_one_ended():
    entries = plain_talk(2)[:-1]
    found = breakpoints(dialogue(entries, breakpoints=2), made())
    assert found == Breakpoints((len(entries) - 3, len(entries) - 1), prefix=False)
