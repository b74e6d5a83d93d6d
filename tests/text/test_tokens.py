"""Token estimates, clipping and amounts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import tokens
from lore.text.tokens import format_dollars

FILLER = "lorem ipsum dolor sit amet "


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("a", 1), ("word", 1), ("a" * 400, 100), ("漢字" * 50, 80), ("é", 1), (" ", 1)],
)
def test_token_counts_are_close_to_the_expected_ones(text, count):
    assert tokens.count(text) == count


@given(st.text(), st.text())
def test_more_text_never_costs_less(text, more):
    assert tokens.count(text + more) >= tokens.count(text)


@given(st.text(), st.text())
def test_the_parts_cost_about_as_much_as_the_whole(one, other):
    whole = tokens.count(one + other)
    assert abs(tokens.count(one) + tokens.count(other) - whole) <= 2


@given(st.text(max_size=400), st.integers(1, 60))
def test_a_clipped_text_fits_and_is_never_longer(text, most):
    clipped = tokens.clip(text, most)
    assert tokens.count(clipped) <= most
    assert len(clipped) <= len(text)
    assert text.startswith(clipped.removesuffix("…"))


@pytest.mark.parametrize("text", ["漢" * 1000 + "a" * 1000, "a" * 1000 + "漢" * 1000])
def test_a_clipped_text_uses_its_budget_whatever_comes_first(text):
    assert 490 <= tokens.count(tokens.clip(text, 500)) <= 500


@pytest.mark.parametrize("text", ["a", "ab", "漢字", FILLER * 9])
def test_clipping_to_no_budget_leaves_at_most_one_character(text):
    assert len(tokens.clip(text, 0)) == 1


def test_a_text_that_fits_stays_as_it_is():
    assert tokens.clip("short text", 10) == "short text"
    assert tokens.clip_around("short text", 10, ["other"]) == "short text"


@pytest.mark.parametrize("place", [0, 30, 60, 99])
def test_a_text_is_clipped_around_the_words(place):
    pieces = [FILLER] * 100
    pieces[place] = "the quick brown fox jumps "
    clipped = tokens.clip_around("".join(pieces), 40, ["quick", "fox"])
    assert "quick brown fox" in clipped
    assert tokens.count(clipped) <= 42


def test_the_window_lies_where_most_words_stand():
    text = "fox " + FILLER * 50 + "quick brown fox " + FILLER * 50
    assert "quick brown fox" in tokens.clip_around(text, 30, ["quick", "brown", "fox"])


def test_words_without_accents_are_found_in_a_text_that_has_them():
    text = FILLER * 50 + "das Café Müller hat offen " + FILLER * 50
    assert "Café Müller" in tokens.clip_around(text, 30, ["cafe", "muller"])


def test_letters_that_grow_in_lower_case_do_not_shift_the_window():
    text = "İ" * 400 + FILLER * 50 + "the needle lies here " + FILLER * 50
    assert "needle" in tokens.clip_around(text, 30, ["needle"])


@pytest.mark.parametrize("words", [[], [""], ["x"], ["absent"]])
def test_without_a_matching_word_the_beginning_is_returned(words):
    text = FILLER * 100
    assert tokens.clip_around(text, 20, words) == tokens.clip(text, 20)


@given(st.text(max_size=300), st.integers(1, 40), st.lists(st.text(max_size=5), max_size=4))
def test_clipping_around_anything_gives_a_piece_of_the_text(text, most, words):
    clipped = tokens.clip_around(text, most, words)
    assert clipped == text or clipped.strip("…").strip() in text


@pytest.mark.parametrize(
    ("usd", "told"),
    [(0, "$0.00"), (10, "$10.00"), (0.3, "$0.30"), (0.045, "$0.045"), (-0.0012, "-$0.0012")],
)
def test_an_amount_has_cents_and_fractions_of_a_cent(usd: float, told: str):
    assert format_dollars(usd) == told
