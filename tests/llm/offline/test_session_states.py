"""What holds only for a moment of a session: symptoms, and states that work ended."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lore.llm.offline import session_states, statement_text
from lore.llm.offline.extractor import extract
from lore.llm.offline.statement_classifier import Score, SpokenStatement, StatementClassifier
from lore.records import Segment
from tests.llm.offline.exchanges import SpokenLine, as_messages

STATE = "The `list_tracks` tool currently has no filter for the detector name."
EDIT = "[Edit] /code/list_tracks.go"


@pytest.mark.parametrize(
    ("text", "is_explained"),
    [
        ("The search times out with a radius of 1500.", False),
        ("The search times out because the join precedes the limit.", True),
        ("The search timed out; the limit now precedes the join.", True),
    ],
)
def test_a_symptom_names_neither_cause_nor_remedy(text: str, is_explained: bool):
    assert session_states.is_failure(text)
    assert session_states.is_explained(text) == is_explained


@pytest.mark.parametrize(
    ("later", "is_changed"),
    [
        ([("assistant", EDIT)], True),
        ([("assistant", "Added a filter for the detector name to `list_tracks`.")], True),
        ([("assistant", EDIT.replace("list_tracks", "readme"))], False),
        ([("user", "thanks"), ("assistant", "You are welcome.")], False),
        ([("assistant", EDIT), ("assistant", f"Left open: {STATE}")], False),
    ],
)
def test_a_state_ends_with_later_work_on_it_unless_the_end_repeats_it(
    later: list[SpokenLine], is_changed: bool
):
    after = as_messages(later)
    assert session_states.is_changed_later(STATE, "fact", after) == is_changed


def test_a_decision_holds_although_it_says_still():
    after = as_messages([("assistant", EDIT)])
    assert not session_states.is_changed_later(STATE, "decision", after)


def test_a_report_of_a_change_is_no_state():
    after = as_messages([("assistant", EDIT)])
    report = f"Added a log line. {STATE}"
    assert not session_states.is_changed_later(report, "fact", after)


def test_what_was_so_before_a_fix_is_no_state_of_the_moment():
    cause = "The `list_tracks` binary was still running while it was copied."
    assert not session_states.is_changed_later(cause, "fact", as_messages([("assistant", EDIT)]))


def test_labels_say_what_is_a_problem_and_what_was_before():
    assert statement_text.is_problem("2. Issue: the port is open")
    assert statement_text.is_former("Before: the port was open")
    assert not statement_text.is_problem("nginx: the port is open")


class KeepsAll(StatementClassifier):
    """Takes every statement for a fix that is worth keeping."""

    def score(self, statements: Sequence[SpokenStatement], *_: object, **__: object) -> list[Score]:
        return [Score("bug_fix", 1.0, 0.5) for _ in statements]


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ("The export of `weekly.csv` fails with error 500.", []),
        ("Issue: the export of `weekly.csv` holds two headers.", []),
        ("Before: the export of `weekly.csv` was used by two jobs.", []),
        ("The export of `weekly.csv` fails because `save()` opens it twice.", ["bug_fix"]),
        ("The export of `weekly.csv` reads both tables.", ["fact"]),
    ],
)
def test_a_fix_has_a_cause_or_a_remedy(said: str, kinds: list[str]):
    exchange = Segment("s", as_messages([("assistant", said)]))
    assert [one.kind for one in extract(exchange, classifier=KeepsAll())] == kinds
