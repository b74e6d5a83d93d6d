"""Sentences that need another one: joined with it, or left out."""

from __future__ import annotations

import pytest

from lore.llm.offline import statement_tone
from tests.llm.offline.exchanges import contents


@pytest.mark.parametrize(
    "said",
    [
        "I've also tried a proxy to load the page",
        "I learned a lot from the April 5 talk about bees",
        "I've been playing for about four months now",
        "I did this climb with my dad when I was ten",
        "I took this pic in Porto on May 3",
        "I've been working on it for two years now",
        "I've got a festival coming up on August 22",
        "We're currently at 96%, and 98% seems far",
        "I feel like I've made good progress since May 2",
        "I won't make the new April 25 deadline",
    ],
)
def test_what_points_elsewhere_or_has_no_object_is_unclear(said):
    assert statement_tone.is_unclear(said)


@pytest.mark.parametrize(
    "said",
    [
        "I've also finished 12 tests with 95% passing",
        "I'm hooked on this great game called Tetris",
        "I attended a workshop on June 2 about beekeeping",
        "I've never done this before",
        "I've made good progress on the roof since May 2",
    ],
)
def test_what_names_its_object_is_clear(said):
    assert not statement_tone.is_unclear(said)


def test_what_is_announced_is_kept_with_what_it_was():
    said = "Last Friday, I had a milestone moment at the pool. I swam 40 lengths without a rest!"
    assert contents(("Ana", said)) == [f"Ana (13 May 2026): {said}"]


def test_what_is_announced_and_never_said_is_not_kept():
    assert contents(("Ana", "I had a great accomplishment this Tuesday! How are you?")) == []


def test_a_day_without_a_month_is_kept_with_the_day_on_which_it_was_said():
    said = "I met my teammates Rui and Leo in Porto on the 9th."
    assert contents(("Ana", said)) == [f"Ana (13 May 2026): {said}"]


def test_among_people_always_been_is_no_rule():
    assert contents(("Ana", "Always been fond of my small countries.")) == []
