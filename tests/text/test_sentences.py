"""Sentence splitting and one-line titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import sentences
from lore.text.sentences import first_sentence, sentence_spans, split_sentences


def test_sentences_end_where_people_end_them():
    assert split_sentences("It costs $5.99 a month. See e.g. the docs. Ask Dr. Lee!") == [
        "It costs $5.99 a month.",
        "See e.g. the docs.",
        "Ask Dr. Lee!",
    ]


def test_code_in_backticks_is_never_cut():
    assert split_sentences("Call `a. B` first. Then stop.") == ["Call `a. B` first.", "Then stop."]


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
def test_typed_sentences_may_start_in_lower_case(typed, pieces):
    assert split_sentences(typed, typed=True) == pieces


def test_written_sentences_start_with_a_capital():
    assert split_sentences("It runs. and then") == ["It runs. and then"]


def test_a_number_in_a_list_is_no_sentence():
    assert split_sentences("1. Stop the worker. 2. Start it.") == [
        "1. Stop the worker.",
        "2. Start it.",
    ]


def test_quotation_marks_stay_with_the_sentence_that_they_close():
    assert split_sentences('He said "Go." Then she went.') == ['He said "Go."', "Then she went."]


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
    assert first_sentence(line) == begins


@given(st.text(max_size=200), st.booleans())
def test_spans_cover_a_text_without_gaps(text, typed):
    found = list(sentence_spans(text, typed=typed))
    assert "".join(text[start:end] for start, end in found) == text


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ("One sentence. Another one.", "One sentence."),
        ("No end", "No end"),
        ("First line\nsecond line", "First line"),
        ("\n\n  \nAfter blank lines.", "After blank lines."),
        ("# A heading\n\nText.", "A heading"),
        ("> - quoted item", "quoted item"),
        ("* item one. two", "item one."),
        ("---\nAfter a rule", "After a rule"),
        ("---", "---"),
        ("-5 degrees outside", "-5 degrees outside"),
        ("#1234 is fixed", "#1234 is fixed"),
        ("Really?! Yes.", "Really?!"),
        ("Version 3.12 is out. Get it.", "Version 3.12 is out."),
        ("Mr. Smith goes to Washington. He stays.", "Mr. Smith goes to Washington."),
        ("J. R. R. Tolkien wrote it. I read it.", "J. R. R. Tolkien wrote it."),
        ("Use tools, e.g. ruff. Then test.", "Use tools, e.g. ruff."),
        ("日本語です。次の文です。", "日本語です。"),
        ("a\tb   c\u00a0d", "a b c d"),
        ("", ""),
        ("   \n ", ""),
    ],
)
def test_the_summary_is_the_first_sentence(content, summary):
    assert sentences.summary(content) == summary


def test_a_long_sentence_is_cut_at_a_word():
    cut = sentences.summary("word " * 100)
    assert cut.endswith("word…")
    assert len(cut) <= sentences.SUMMARY_CHARS


def test_one_long_word_is_cut_in_the_middle():
    assert sentences.summary("x" * 500) == "x" * (sentences.SUMMARY_CHARS - 1) + "…"


def test_one_line_keeps_every_sentence():
    assert sentences.one_line("Mr. Smith\ngoes. Home!  Now?", 400) == "Mr. Smith goes. Home! Now?"


@given(st.text(), st.integers(2, 200))
def test_a_summary_is_one_line_of_bounded_length(content, most):
    for made in (sentences.summary(content, most), sentences.one_line(content, most)):
        assert len(made) <= most
        assert len(made.splitlines()) <= 1
        assert made == made.strip()
        assert bool(made) == bool(content.strip())
