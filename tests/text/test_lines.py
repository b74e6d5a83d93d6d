from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import lines


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
    assert lines.summary(content) == summary


def test_a_long_sentence_is_cut_at_a_word():
    cut = lines.summary("word " * 100)
    assert cut.endswith("word…")
    assert len(cut) <= lines.SUMMARY_CHARS


def test_one_long_word_is_cut_in_the_middle():
    assert lines.summary("x" * 500) == "x" * (lines.SUMMARY_CHARS - 1) + "…"


def test_one_line_keeps_every_sentence():
    assert lines.one_line("Mr. Smith\ngoes. Home!  Now?", 400) == "Mr. Smith goes. Home! Now?"


@given(st.text(), st.integers(2, 200))
def test_a_summary_is_one_line_of_bounded_length(content, most):
    for made in (lines.summary(content, most), lines.one_line(content, most)):
        assert len(made) <= most
        assert len(made.splitlines()) <= 1
        assert made == made.strip()
        assert bool(made) == bool(content.strip())
