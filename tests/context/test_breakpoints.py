"""Where a prompt asks its provider to cache it."""

from __future__ import annotations

import pytest

from lore.context.layers import LOOKBACK_BLOCKS, MAX_BREAKPOINTS, PREFIX, choose_breakpoints
from lore.records.gateway import Block, Distilled, Entry, Plan, PromptState
from tests.context.dialogues import dialogue, plain_talk

TOLD = Distilled("s", "told", 10, 8)


def made(start: int = 0, *prefix: Distilled) -> Plan:
    return Plan(1, PromptState(), start, prefix)


def test_breakpoints_rank_end_then_prefix_then_previous_end():
    entries = plain_talk(3)[:-1]
    found = [choose_breakpoints(dialogue(entries, breakpoints=n), made(6, TOLD)) for n in range(5)]
    last = len(entries) - 1
    assert found[0] == found[1] == (last, PREFIX, last - 2)
    assert found[2] == (last, PREFIX)
    assert found[3] == found[4] == (last,)


def test_a_distant_previous_end_comes_before_the_distillations():
    entries = plain_talk(3)[:-1]
    last = len(entries) - 1
    many = tuple(Block("result", 9, "x", f"c{n}") for n in range(LOOKBACK_BLOCKS))
    entries[last] = Entry("user", many, "many")
    found = choose_breakpoints(dialogue(entries, breakpoints=2), made(6, TOLD))
    assert found == (last, last - 2)


@pytest.mark.parametrize("own", range(6))
def test_at_most_four_breakpoints_and_at_least_one_of_ours(own):
    found = choose_breakpoints(dialogue(plain_talk(4), breakpoints=own), made(6, TOLD))
    assert 1 <= len(found) <= max(1, MAX_BREAKPOINTS - own)


def test_prompt_without_prefix_marks_the_previous_end():
    entries = plain_talk(2)[:-1]
    found = choose_breakpoints(dialogue(entries, breakpoints=2), made())
    assert found == (len(entries) - 1, len(entries) - 3)


def test_system_entry_at_the_end_gets_no_breakpoint():
    entries = plain_talk(2)[:-1]
    told = Entry("system", (Block("text", 5, "Hello"),), "told")
    found = choose_breakpoints(dialogue([*entries, told], breakpoints=2), made())
    assert found == (len(entries) - 1, len(entries) - 3)


def test_without_entries_only_the_distillations_are_marked():
    told = Entry("system", (Block("text", 5, "Hello"),), "told")
    assert choose_breakpoints(dialogue([told]), made()) == ()
    assert choose_breakpoints(dialogue([told]), made(0, TOLD)) == (PREFIX,)
