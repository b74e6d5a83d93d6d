"""Question lists: a person's numbered lines, and the questions that they answer."""

from __future__ import annotations

import pytest

from lore.text.question_list import find_answers, leave_out

ASKED = """I looked at the bookings.

The importer will:
1. Parse each event
2. Skip duplicates

Before I begin:

1. **Deletion**: Should we keep deleted rooms?
2. **Which prices are shown?**
   - Only those that hold today?
   - All of them?
### 3. Calendar
Do you want the rooms there?

Please let me know, then I begin!
"""


def pairs(message: str, asked: str = ASKED) -> list[tuple[str, str]]:
    return [(one.question, one.text) for one in find_answers(message, asked)]


def test_each_numbered_line_gets_the_question_of_its_number():
    assert pairs("Good.\n1. yes, soft deletion\n2. only today's\n3) not right now. Later") == [
        ("Deletion: Should we keep deleted rooms?", "yes, soft deletion"),
        ("Which prices are shown: Only those that hold today? All of them?", "only today's"),
        ("Calendar Do you want the rooms there?", "not right now. Later"),
    ]


def test_what_follows_the_last_question_is_no_part_of_it():
    asked = "1. Which colors?\n2. Should rooms be shown?\n\nPlease let me know, then I begin!"
    assert pairs("2. not right now", asked) == [("Should rooms be shown?", "not right now")]


def test_some_of_the_questions_may_be_answered():
    assert [text for _, text in pairs("2. only today's")] == ["only today's"]


@pytest.mark.parametrize(
    "message",
    [
        "Add this:\n1. a log\n4. a test",
        "2. b\n1. a",
        "yes",
        "",
    ],
)
def test_a_list_that_does_not_fit_answers_nothing(message: str):
    assert pairs(message) == []


def test_a_list_of_steps_is_answered_by_nothing():
    assert pairs("1. yes", "The importer will:\n1. Parse each event\n2. Skip duplicates") == []


def test_of_a_long_question_the_label_and_what_is_asked_remain():
    long = "1. **Prices**: We have lists." + " There are many of them." * 20 + " Which one holds?"
    ((question, answer),) = pairs("1. the newest", long)
    assert len(question) < len(long) / 2
    assert question.endswith("Which one holds?")
    assert answer == "the newest"


def test_answers_are_taken_out_of_a_message():
    message = "Good.\n1. yes\nAnd always use tabs."
    assert leave_out(message, find_answers(message, ASKED)) == "Good.\nAnd always use tabs."
