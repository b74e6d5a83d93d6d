from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.relevance import VISIBLE, decay_rate, relevance, strength

HIDDEN_BELOW = 0.05
PRUNED_BELOW = 0.02

importances = st.floats(0, 1)
counts = st.integers(0, 10_000)
days = st.floats(0, 10_000)


@pytest.mark.parametrize(("importance", "rate"), [(0, 0.07), (0.2, 0.058), (0.5, 0.04), (1, 0.01)])
def test_important_fragments_decay_slower(importance, rate):
    assert decay_rate(importance) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("accesses", "value"),
    [(0, 0.3), (1, 0.3 + 0.15 * log(2)), (10, 0.3 + 0.15 * log(11)), (1_000, 1.0)],
)
def test_strength_grows_with_accesses_up_to_1(accesses, value):
    assert strength(accesses) == pytest.approx(value)


@pytest.mark.parametrize(
    ("importance", "accesses", "days", "value"),
    [
        (0.9, 0, 0, 0.9 * 0.3 + 0.27),
        (0.5, 0, 0, 0.5 * 0.3 + 0.15),
        (0.2, 0, 0, 0.2 * 0.3 + 0.06),
        (0.5, 3, 10, 0.5 * (0.3 + 0.15 * log(4)) * exp(-0.4) + 0.15),
        (0.2, 3, 10, 0.2 * (0.3 + 0.15 * log(4)) * exp(-0.58) + 0.06 * exp(-0.58 / 3)),
        (1.0, 1_000_000, 0, 1.0),
        (0.0, 5, 3, 0.0),
    ],
)
def test_relevance_follows_the_curve(importance, accesses, days, value):
    assert relevance(importance, accesses, days) == pytest.approx(value)


def test_visible_is_what_the_specification_says():
    assert VISIBLE == HIDDEN_BELOW


def test_an_unread_low_fragment_is_hidden_after_about_four_weeks():
    assert relevance(0.2, 0, 21) >= HIDDEN_BELOW
    assert relevance(0.2, 0, 28) < HIDDEN_BELOW


def test_an_unread_low_fragment_may_be_pruned_after_about_two_months():
    assert relevance(0.2, 0, 50) >= PRUNED_BELOW
    assert relevance(0.2, 0, 65) < PRUNED_BELOW


@given(st.floats(0.5, 1), counts, days)
def test_important_fragments_never_fall_below_the_floor(importance, accesses, age):
    assert relevance(importance, accesses, age) >= 0.3 * importance >= HIDDEN_BELOW


@given(st.floats(0, 0.5, exclude_max=True))
def test_unimportant_fragments_are_eventually_forgotten(importance):
    assert relevance(importance, 0, 1_000) < PRUNED_BELOW


@given(importances, counts, st.floats(-10_000, 10_000))
def test_relevance_lies_between_0_and_1(importance, accesses, age):
    assert 0 <= relevance(importance, accesses, age) <= 1


@given(importances, counts, days, days)
def test_relevance_never_grows_with_time(importance, accesses, one, other):
    early, late = sorted([one, other])
    assert relevance(importance, accesses, late) <= relevance(importance, accesses, early)


@given(importances, counts, counts, days)
def test_relevance_never_falls_with_readings(importance, one, other, age):
    few, many = sorted([one, other])
    assert relevance(importance, few, age) <= relevance(importance, many, age)


@given(importances, importances, counts, days)
def test_relevance_never_falls_with_importance(one, other, accesses, age):
    low, high = sorted([one, other])
    assert relevance(low, accesses, age) <= relevance(high, accesses, age) + 1e-12


@given(importances, counts, st.floats(-1_000, 0))
def test_a_fragment_from_the_future_counts_as_new(importance, accesses, age):
    assert relevance(importance, accesses, age) == relevance(importance, accesses, 0)
