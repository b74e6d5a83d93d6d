from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.sentences import cut, first, spans


def test_sentences_end_where_people_end_them():
    assert cut("It costs $5.99 a month. See e.g. the docs. Ask Dr. Lee!") == [
        "It costs $5.99 a month.",
        "See e.g. the docs.",
        "Ask Dr. Lee!",
    ]


def test_code_in_backticks_is_never_cut():
    assert cut("Call `a. B` first. Then stop.") == ["Call `a. B` first.", "Then stop."]


@pytest.mark.parametrize(
    ("typed", "pieces"),
    [
        ("Good. one thing: I prefer SQL", ["Good.", "one thing: I prefer SQL"]),
        ("money?? who wrote that. never", ["money??", "who wrote that.", "never"]),
        ("I use e.g. this, etc. and that", ["I use e.g. this, etc. and that"]),
        ("three calls... how much is it", ["three calls... how much is it"]),
        ("keep it at max. three lines", ["keep it at max. three lines"]),
        ("see `a. b`. then go", ["see `a. b`.", "then go"]),
        ("take v1.2 of lib.so now", ["take v1.2 of lib.so now"]),
        ("that is all. (said in May)", ["that is all.", "(said in May)"]),
        ("use tabs\nnever spaces", ["use tabs", "never spaces"]),
        ("see e.g.\nthe docs", ["see e.g.", "the docs"]),
    ],
)
def test_what_a_person_typed_may_go_on_in_lower_case(typed, pieces):
    assert cut(typed, typed=True) == pieces


def test_what_an_agent_wrote_is_cut_before_capitals_only():
    assert cut("It runs. and then") == ["It runs. and then"]


def test_a_number_in_a_list_is_no_sentence():
    assert cut("1. Stop the worker. 2. Start it.") == ["1. Stop the worker.", "2. Start it."]


def test_quotation_marks_stay_with_the_sentence_that_they_close():
    assert cut('He said "Go." Then she went.') == ['He said "Go."', "Then she went."]


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("item one. two", "item one."),
        ("1. Stop the worker. Wait.", "1. Stop the worker."),
        ("curl ... | bash is run. Then stop", "curl ... | bash is run."),
        ("", ""),
    ],
)
def test_the_first_sentence_may_be_followed_by_lower_case(line, begins):
    assert first(line) == begins


@given(st.text(max_size=200), st.booleans())
def test_spans_cover_a_text_without_gaps(text, typed):
    found = list(spans(text, typed=typed))
    assert "".join(text[start:end] for start, end in found) == text
