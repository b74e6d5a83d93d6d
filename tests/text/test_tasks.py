from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.tasks import spans
from tests.text.test_episodes import Talk

MEND = "Please mend the date parser in dates.py"


def begins(*said: str, answer: str = "The date parser knows leap years now.") -> list[str]:
    """Return the requests that begin a task in a talk of these."""
    talk = Talk()
    for text in said:
        talk.user(text)
        talk.assistant(answer)
    return [span[0].parts[0].text for span in spans(talk.messages)]


def test_a_request_about_something_else_begins_a_task():
    other = "Add a dark theme to the settings page"
    assert begins(MEND, "yes, go on", other, "commit and push") == [MEND, other]


@pytest.mark.parametrize(
    "text",
    [
        "but what about time zones and calendars?",
        "yes, and write a changelog entry",
        "can you make it a bit wider?",
        "Run the tests",
        "commit, push and create a PR",
        "do we have a test for leap seconds?",
        "now do the same thing in stanza_test.go",
        "2. Strengthen the integration suite",
        "Does the date parser know leap years in dates.py now?",
        "thanks!",
        MEND,
    ],
)
def test_what_answers_adds_to_or_lands_the_former_goes_on(text):
    assert begins(MEND, text) == [MEND]


@pytest.mark.parametrize(
    "text",
    [
        "next: the date parser of the importer",
        "Great. The next problem is the date parser of the importer",
        "/review 158",
        "A different question: how old is the date parser?",
    ],
)
def test_words_that_turn_to_something_else_begin_a_task_whatever_they_share(text):
    assert begins(MEND, text) == [MEND, text]


def test_a_command_alone_is_named_by_the_words_that_follow_it():
    said = ("/review", "Look at the settings page, please", MEND)
    assert begins(*said, answer="Done.") == ["/review", MEND]


def test_what_is_only_told_begins_no_task():
    assert begins(MEND, "The client is Okapi Holdings; their harbour lies in Sydney") == [MEND]


def test_a_greeting_is_no_task_of_its_own():
    assert begins("hi", MEND) == ["hi"]


@given(st.lists(st.text(max_size=80) | st.sampled_from([MEND, "/review", "ok"]), max_size=8))
def test_the_spans_are_the_whole_session_in_order(said):
    talk = Talk()
    for text in said:
        talk.user(text)
    assert [message for span in spans(talk.messages) for message in span] == talk.messages
