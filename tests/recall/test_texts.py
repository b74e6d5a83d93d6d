from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.memory import Memory
from lore.recall.texts import Texts, plain
from tests.recall.talk import say

NONE = np.empty(0, np.int64)


@given(st.text())
def test_a_plain_text_has_only_letters_digits_and_blanks(text: str):
    found = plain(text)
    assert all(c.isalnum() or c == " " for c in found)
    assert found[0] == found[-1] == " "


def test_letters_of_other_scripts_are_kept():
    assert "桟橋" in plain("桟橋の予約")


def test_a_text_is_read_once_and_then_remembered(memory: Memory):
    say(memory, "s", "The harbour opens at dawn.")
    held = Texts(100)
    with memory.database.read() as db:
        first = held.of(db, np.array([1]), NONE)
    with memory.database.read() as db:
        db.rows("SELECT 1")
        again = held.of(db, np.array([1, 99]), NONE)
    assert again == first == {1: " the harbour opens at dawn  "}


def test_what_may_change_is_read_anew(memory: Memory):
    id_ = memory.store("The gate is blue.")
    held = Texts(100)
    with memory.database.read() as db:
        assert "blue" in held.of(db, np.array([1]), np.array([1]))[1]
    memory.update(id_, "The gate is green.")
    with memory.database.read() as db:
        assert "green" in held.of(db, np.array([1]), np.array([1]))[1]


def test_no_more_is_remembered_than_is_worth_it(memory: Memory):
    say(memory, "s", "first " * 5, "second " * 5, "third " * 5)
    held = Texts(100, remembered_chars=50)
    with memory.database.read() as db:
        held.of(db, np.array([1, 2, 3]), NONE)
    assert sum(map(len, held._known.values())) <= 50
