"""Decisions of a user at work; questions, repetitions and answers decide nothing."""

from __future__ import annotations

import pytest

from lore.llm.offline import sentence_rules
from lore.llm.offline.sentence_rules import decision_payload
from tests.llm.offline.exchanges import WORK, contents


@pytest.mark.parametrize(
    "said",
    [
        "okay, so we raise the error because we have a second row in data/rows.db?",
        "so I understand clearly, our worker reads data/rows.db on start and we always drop it",
        "in other words, our worker never uses data/rows.db because we drop it",
        "we have a row_path inside our state. how is this filled?",
        "1. no\n2. we have our rows in data/rows.db and we use the last 50",
        "until recently we used `go run` in data/hooks.json for our hooks",
        "our worker uses `row_end` as well, I just checked the docs.",
        "can you list them. Keep in mind that for our rows we have the whole data/rows.db",
    ],
)
def test_premises_restatements_and_answers_to_lists_are_not_kept(said):
    assert contents(("user", said), WORK) == []


def test_a_lasting_reminder_is_kept():
    said = "Keep in mind that we must never write to data/rows.db."
    assert contents(("user", said), WORK) == [said]


def test_a_statement_before_a_question_is_kept():
    said = "We switched from `npm` to `pnpm`, can you update data/ci.yml?"
    assert contents(("user", said), WORK) == ["We switched from `npm` to `pnpm`."]


@pytest.mark.parametrize(
    ("text", "rationale"),
    [
        ("We use nylon because hemp rots.", "hemp rots"),
        ("We use nylon to prevent knots in salt water.", "knots in salt water"),
        ("We use nylon Since hemp rots", "hemp rots"),
    ],
)
def test_a_decision_has_the_reason_that_it_names(text: str, rationale: str):
    assert decision_payload(text) == {"decision": text, "rationale": rationale}


def test_a_decision_names_what_it_was_chosen_over():
    assert decision_payload("We switched from hemp to nylon in March")["alternatives"] == ["hemp"]


def test_a_decision_without_a_reason_is_only_itself():
    assert decision_payload("We use nylon") == {"decision": "We use nylon"}


@pytest.mark.parametrize(
    ("statement", "former"),
    [
        ("We switched from npm to pnpm.", "npm"),
        ("I moved the launch from May 3 to May 9.", "May 3"),
        ("Replaced `requests` with `httpx`.", "requests"),
        ("We no longer use Jenkins.", "Jenkins"),
        ("We use tabs instead of spaces.", "spaces"),
        ("We use tabs.", ""),
    ],
)
def test_the_former_state_is_what_the_statement_names(statement, former):
    assert sentence_rules.replaced_value(statement) == former
