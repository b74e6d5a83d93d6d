"""Entry keys: they cover all that was said, and nothing that clients add or drop."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lore.gateway.apis import entry_keys
from lore.gateway.apis.entry_keys import KeyedBlock
from lore.gateway.apis.gemini import requests
from lore.records.gateway import Block, Entry

pieces = st.lists(
    st.sampled_from(["<system-reminder>", "</system-reminder>", "a", " ", "\n", "<", "b c"])
).map("".join)


@given(pieces)
def test_reminders_are_left_out_as_a_pattern_would_find_them(text):
    pattern = re.compile("<system-reminder>.*?</system-reminder>", re.DOTALL)
    assert entry_keys.strip_reminders(text) == pattern.sub("", text).strip()


def test_a_text_full_of_reminders_that_never_end_is_read_once():
    text = "<system-reminder>" * 50_000
    assert entry_keys.strip_reminders(text) == text


def test_what_one_side_says_in_a_row_is_one_entry_where_it_is_joined():
    sides = ["system", "user", "user", "model", "model", "user", "model"]
    expected = ((1, 2), (2, 3), (3, 5), (5, 6), (6, 7))
    assert entry_keys.entry_spans(sides, ("model",), 1) == expected
    assert entry_keys.entry_spans([], ("model",)) == ()


def words(*texts: str) -> Entry:
    return entry_keys.make_entry(
        "user", [KeyedBlock(Block("text", len(one), one), one) for one in texts]
    )


@given(st.lists(st.text(min_size=1)), st.lists(st.text(min_size=1)))
def test_other_words_are_another_entry(one, other):
    assert (words(*one).key == words(*other).key) == (one == other)


def test_who_says_it_is_part_of_it():
    said = [KeyedBlock(Block("text", 2, "hi"), "hi")]
    assert entry_keys.make_entry("user", said).key != entry_keys.make_entry("assistant", said).key


def test_half_of_a_character_does_no_harm():
    assert words("\ud800").key != words("\ud801").key


def test_what_a_program_says_in_geminis_role_of_functions_is_not_said_by_a_person():
    said = requests.parse_entry(
        [{"role": "function", "parts": [{"text": "Hi"}]}], requests.CallNumbering()
    )
    assert [block.kind for block in said.blocks] == ["other"]
