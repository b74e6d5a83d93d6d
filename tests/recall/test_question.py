from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.recall.question import Question, in_first_person, parse
from lore.text import words

NOW = datetime(2024, 5, 15, 12, tzinfo=UTC)


def asked(text: str) -> Question:
    return parse(text, NOW)


@pytest.mark.parametrize("text", ["", "   ", "\n", "\x00", "\x00 \ud800"])
def test_an_empty_question_is_refused(text):
    with pytest.raises(InvalidInput):
        asked(text)


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("Can you list the books I read?", "the books I read?"),
        ("Could you please summarize the budget talks", "the budget talks"),
        ("What did I say about Rome in our conversations?", "What did I say about Rome ?"),
        (
            "Give me a clear and short summary of how the API grew",
            "Give me a clear and the API grew",
        ),
        ("A detailed summary of everything about Rome", "about Rome"),
        ("List the different aspects of my garden, in order", "List my garden"),
        ("Sort in order to win the game", "Sort in order to win the game"),
        ("Name five cities. Mention only five items.", "Name five cities"),
        ("Which topics I brought up about Rome", "Which topics I about Rome"),
        ("summary of it", "summary of it"),
        ("Where is Rome?", "Where is Rome?"),
    ],
)
def test_the_frame_of_a_question_is_removed(text, core):
    assert asked(text).core == core


def test_question_of_frame_words_only_stays_unchanged():
    assert asked("Can you summarize").core == "Can you summarize"


def test_terms_come_from_core_and_phrases_from_full_text():
    question = asked('Can you list what "Ada Lovelace" wrote in src/db/todos.ts?')
    assert question.terms == ("ada", "lovelace", "wrote", "src", "db", "todos", "ts")
    assert question.phrases == ("Ada Lovelace",)
    assert question.identifiers == ("src/db/todos.ts",)
    assert '"ada lovelace"' in question.match()
    assert '"src db todos ts"' in question.match()


def test_a_query_can_be_made_of_chosen_terms():
    assert asked("red green blue").match(("red", "blue")) == '"red" OR "blue"'


def test_adjacent_content_words_form_pairs():
    assert asked("big red car of the old king").pairs == (
        ("big", "red"),
        ("red", "car"),
        ("old", "king"),
    )


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("What happened in March?", {3}),
        ("What happened in may?", {5}),
        ("What may happen next?", set()),
        ("When did they march to town?", set()),
        ("on May 8", {5}),
        ("on the 8th of May", {5}),
        ("early March", {3}),
        ("until may", {5}),
        ("the trip of June", {6}),
        ("June and December plans", {6, 12}),
        ("Mayor Marchetti spoke", set()),
        ("nothing here", set()),
    ],
)
def test_month_names_used_as_verbs_are_ignored(text, months):
    assert asked(text).months == months


def test_verb_next_to_a_month_is_no_month():
    assert asked("What may happen in March?").months == {3}


def test_years_and_days_are_parsed():
    question = asked("Was it 8 May 2023, the 3rd of June or July 4 1999?")
    assert question.years == {2023, 1999}
    assert question.days == {8, 3, 4}


def test_other_numbers_are_no_dates():
    question = asked("Do 12 apples cost 12345 or 3021?")
    assert question.years == set()
    assert question.days == set()


def test_time_expressions_are_relative_to_now():
    (span,) = asked("what did we do yesterday?").spans
    assert span.start == datetime(2024, 5, 14, tzinfo=UTC)


FLAGS = ("asks_when", "asks_number", "asks_advice", "asks_list", "asks_early", "asks_late")


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("When is the party?", {"asks_when"}),
        ("What year is it?", {"asks_when"}),
        ("How many days is it?", {"asks_when", "asks_number"}),
        ("How long is it?", {"asks_when", "asks_number"}),
        ("How much is it?", {"asks_number"}),
        ("Should it be red?", {"asks_advice"}),
        ("How can I bake it?", {"asks_advice"}),
        ("Help me bake it", {"asks_advice"}),
        ("How it evolved over time", {"asks_list"}),
        ("Which of them is it?", {"asks_list"}),
        ("How it began originally", {"asks_early"}),
        ("The latest plans", {"asks_late"}),
        ("Where it ended up", {"asks_late"}),
        ("Whenever knowledge firstly plane", set()),
        ("Where is Rome?", set()),
    ],
)
def test_question_intents_are_detected(text, flags):
    question = asked(text)
    assert {flag for flag in FLAGS if getattr(question, flag)} == flags


@pytest.mark.parametrize(
    ("core", "speakers", "told"),
    [
        ("Where does Ada live?", ["Ada"], "Where does I live?"),
        ("What is Ada's dog called?", ["Ada"], "What is my dog called?"),
        ("What is Ada’s dog called?", ["Ada"], "What is my dog called?"),
        ("Did Ada meet Bob?", ["Ada", "Bob"], "Did I meet I?"),
        ("Did Adam meet Ada?", ["Ada"], "Did Adam meet I?"),
        ("Is C.J. here?", ["C.J"], "Is I. here?"),
        ("Is CxJ here?", ["C.J"], "Is CxJ here?"),
        ("Where is Rome?", [], "Where is Rome?"),
    ],
)
def test_speaker_names_become_first_person(core, speakers, told):
    assert in_first_person(core, speakers) == told


def test_long_question_is_truncated():
    assert len(asked("word " * 100_000).text) <= words.MAX_QUERY_CHARS


@given(st.text())
def test_any_nonblank_text_parses(text):
    assume(words.clean(text).strip())
    question = asked(text)
    assert question.core
    assert len(question.terms) <= 48
    assert len(question.pairs) <= 16
    assert question.months <= set(range(1, 13))
