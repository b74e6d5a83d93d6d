"""Evidence: whether what answers a question is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.evals.evidence import in_prompt, specifics
from lore.evals.long_talks import Question, Talk, read_talks
from lore.records.dialogues import Distilled, Pins, Plan
from tests.evals.harbour import write


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return read_talks(write(tmp_path))[0]


def test_evidence_is_in_the_prompt_as_it_was_or_by_its_specifics(talk: Talk):
    question = talk.questions[0]
    start = talk.entries_of(question.message).start
    assert in_prompt(talk, question, Plan(1, Pins(), start))
    later = Plan(1, Pins(), start + 2)
    assert not in_prompt(talk, question, later)
    told = Distilled("s", "Looking at pier 2.3, berth fee 203 crowns", 9, start + 2)
    vague = Distilled("v", "Looking at berth fee of a pier in crowns", 9, start + 2)
    assert in_prompt(talk, question, Plan(1, Pins(), start + 2, (told,)))
    assert not in_prompt(talk, question, Plan(1, Pins(), start + 2, (vague,)))


def test_an_annotated_output_is_not_at_hand(talk: Talk):
    question = talk.questions[0]
    own = talk.entries_of(question.message)
    hidden = talk.entries[own[-1]].blocks[0].call_id
    assert not in_prompt(talk, question, Plan(2, Pins(), annotated=frozenset({hidden})))


def test_specifics_are_numbers_names_in_code_and_paths():
    told = "It is 49.20% in src/lib/app.ts, see releaseChannel and 'the old way'."
    assert specifics(told) == {"49.20%", "src/lib/app.ts", "releasechannel", "the old way"}


def test_a_question_without_specifics_is_not_answered_by_summaries(talk: Talk):
    question = Question("Who?", "The harbour master", 4)
    told = Distilled("s", "The harbour master", 9, 99)
    assert not in_prompt(talk, question, Plan(1, Pins(), 99, (told,)))
