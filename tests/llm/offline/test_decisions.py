"""Decisions of a user at work; questions, repetitions and answers decide nothing."""

from __future__ import annotations

import pytest

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


def test_what_is_to_be_kept_in_mind_for_good_is_kept():
    said = "Keep in mind that we must never write to data/rows.db."
    assert contents(("user", said), WORK) == [said]


def test_a_statement_before_a_question_is_kept():
    said = "We switched from `npm` to `pnpm`, can you update data/ci.yml?"
    assert contents(("user", said), WORK) == ["We switched from `npm` to `pnpm`."]
