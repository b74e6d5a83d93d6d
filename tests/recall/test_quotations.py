"""Quotations: a model reads the question with each passage, and the likeliest are quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from lore.errors import EmbedderError
from lore.memory import Memory
from lore.recall import quotations
from lore.recall.quotations import READ_HITS, WINDOW_CHARS, judge_hits, read_passages
from lore.records import Hit
from tests.fakes import NOON
from tests.recall.talk import say

ASKED = "which port does the tide gauge use?"


class FakeReader:
    """Finds that a passage answers if it has a word."""

    def __init__(self, word: str = "502", error: Exception | None = None) -> None:
        self.word = word
        self.error = error
        self.read: list[str] = []

    def answers(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return the log odds of each pair."""
        if self.error is not None:
            raise self.error
        self.read += [passage for _, passage in pairs]
        odds = [5.0 if self.word in passage else -5.0 for _, passage in pairs]
        return np.array(odds, np.float32)

    def relations(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return that no statement has to do with another."""
        if self.error is not None:
            raise self.error
        return np.array([[1, 0, 0, 0]] * len(pairs), np.float32)

    def close(self) -> None:
        """Do nothing."""


def hit(text: str, score: float = 1.0, role: str = "assistant", type_: str = "message") -> Hit:
    return Hit(text, type_, text, "", score, "", NOON, 1, role=role)  # type: ignore[arg-type]


def use_reader(memory: Memory, reader: FakeReader) -> FakeReader:
    memory.context.pair_model = reader  # type: ignore[assignment]
    return reader


def test_the_hit_that_answers_goes_before_those_that_rank_higher():
    hits = [hit("The tide gauge is rusty.", 3), hit("The gauge sits on 502.", 2.5)]
    judged = judge_hits(FakeReader(), ASKED, hits)
    assert [one.hit.text for one in judged] == [hits[1].text, hits[0].text]
    assert judged[0].share > judged[1].share


def test_a_long_passage_is_read_to_its_end():
    reader = FakeReader()
    long = "word " * 160 + "it uses 502"
    assert len(long) > WINDOW_CHARS
    odds = read_passages(reader, ASKED, ["short", long, "no"])
    assert odds.tolist() == [-5.0, 5.0, -5.0]
    assert all(len(part) <= WINDOW_CHARS for part in reader.read)


@pytest.mark.parametrize(
    "echo",
    [
        hit("Please check whether the tide gauge still uses 502", role="user"),
        hit("Is it 502 that the gauge uses?"),
        hit("The tide gauge does use which port: 502"),
    ],
)
def test_an_echo_of_the_question_comes_after_a_proper_message(echo: Hit):
    proper = hit("It speaks Modbus on 502, as the manual says.", 0.9)
    judged = judge_hits(FakeReader(), ASKED, [echo, proper])
    assert [one.hit for one in judged] == [proper, echo]


def test_an_episode_that_only_has_the_question_as_its_goal_is_an_echo():
    goal = replace(hit(f"Goal: {ASKED}"), type="fragment", kind="episode", role="")
    told = replace(goal, text=f"Goal: {ASKED}. It speaks Modbus on 502, says the manual.")
    assert quotations.is_echo(goal, ASKED)
    assert not quotations.is_echo(told, ASKED)


def test_a_statement_of_the_person_is_no_echo():
    assert not quotations.is_echo(hit("We moved the gauge to 502.", role="user"), ASKED)


def test_a_report_of_a_problem_is_no_reason_for_it_and_alone_a_weak_answer():
    report = hit("the tide gauge doesnt seem to start", role="user")
    asked = "why did the tide gauge not start?"
    [judged] = judge_hits(FakeReader("gauge"), asked, [report])
    assert judged.is_echo
    assert quotations.rate([judged], 0.95) == "weak"
    assert not quotations.is_echo(hit("its fuse had blown in the night", role="user"), asked)
    assert not quotations.is_echo(hit("the tide gauge doesnt seem to start", role="user"), ASKED)


def test_a_repeated_conversation_is_an_echo():
    recap, proper = hit("Then 502 was chosen."), hit("Modbus it is, on 502.", 0.9)
    judged = judge_hits(FakeReader(), ASKED, [recap, proper], repeats={recap.id})
    assert judged[0].hit is proper


def test_no_hits_are_not_read():
    assert judge_hits(FakeReader(), ASKED, []) == []


def test_more_odds_and_a_surer_ranking_make_an_answer_stronger():
    judged = judge_hits(FakeReader(), ASKED, [hit("It is 502.", 3), hit("It is rusty.")])
    assert quotations.rate(judged[:1], 0.95) == "strong"
    assert quotations.rate(judged[1:], 0.02) in ("weak", "none")


GAUGE = ["The tide gauge port was painted.", "The tide gauge port is now 502."]


def test_an_answer_quotes_what_the_reader_chooses(memory: Memory):
    say(memory, "s", "hello", *GAUGE)
    reader = use_reader(memory, FakeReader())
    result = memory.search.ask("tide gauge port?")
    assert result.citations[0].text == GAUGE[1]
    assert set(GAUGE) <= set(reader.read)


def test_a_summary_of_an_earlier_conversation_is_not_quoted_beside_a_message(memory: Memory):
    say(memory, "s", "Where does the gauge listen?", "The tide gauge speaks Modbus on 502.")
    recap = (
        "This session is being continued from a previous conversation that ran out of context."
        " The tide gauge port is 502."
    )
    say(memory, "t", recap, "Fine.", at=NOON + timedelta(hours=1))
    use_reader(memory, FakeReader())
    result = memory.search.ask("which port has the tide gauge?")
    assert [cited.text for cited in result.citations] == ["The tide gauge speaks Modbus on 502."]


def test_without_a_usable_reader_the_ranking_decides(memory: Memory):
    say(memory, "s", "hello", *GAUGE)
    use_reader(memory, FakeReader(error=EmbedderError("The model is broken.")))
    assert memory.search.ask("who painted the tide gauge port?").citations[0].text == GAUGE[0]
    assert memory.context.open_pair_model() is None


def test_no_more_hits_are_read_than_needed(memory: Memory):
    say(memory, "s", *(f"The tide gauge on pier {n} was checked by crew {n}." for n in range(60)))
    reader = use_reader(memory, FakeReader())
    memory.search.ask("which tide gauge was checked?")
    assert 0 < len(reader.read) <= READ_HITS
