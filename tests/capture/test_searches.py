from __future__ import annotations

from datetime import UTC, datetime

from lore.capture.searches import taken_apart
from lore.records import NewMessage, Part
from lore.text import marks

AT = datetime(2026, 11, 1, tzinfo=UTC)
MARK = marks.searched("0123456789abcdef")


def told(role, text):
    return NewMessage(role, (Part("text", text),), AT, "k", usage={"input_tokens": 5})


def test_what_stands_around_a_marker_were_answers_of_their_own():
    (first, second) = taken_apart([told("assistant", f"Let me look.\n\n{MARK}\n\nIt is so.")])
    assert (first.parts[0].text, second.parts[0].text) == ("Let me look.", "It is so.")
    assert (first.key, second.key) == ("k", "k:1")
    assert (first.usage, second.usage) == ({"input_tokens": 5}, {})


def test_a_marker_alone_is_no_message():
    assert list(taken_apart([told("assistant", MARK)])) == []


def test_a_person_may_write_of_markers():
    messages = [told("user", f"What is {MARK}?"), told("assistant", "A search.")]
    assert list(taken_apart(messages)) == messages
