from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.evals.scores import Outcome, score


def outcome(ranked: str, gold: str, *, category: str = "x", ms: float = 1.0, at_hand: str = ""):
    return Outcome(category, tuple(ranked), frozenset(gold), ms, frozenset(at_hand))


@pytest.mark.parametrize(
    ("ranked", "gold", "k", "recall", "hit"),
    [
        ("abc", "a", 1, 1.0, 1.0),
        ("abc", "b", 1, 0.0, 0.0),
        ("abc", "b", 2, 1.0, 1.0),
        ("abcd", "bz", 4, 0.5, 1.0),
        ("abcdef", "fe", 5, 0.5, 1.0),
        ("", "a", 5, 0.0, 0.0),
        ("abc", "xyz", 3, 0.0, 0.0),
    ],
)
def test_recall_is_a_share_and_a_hit_is_any(ranked, gold, k, recall, hit):
    assert outcome(ranked, gold).recall(k) == recall
    assert outcome(ranked, gold).hit(k) == hit


@pytest.mark.parametrize(
    ("ranked", "gold", "value"),
    [("abc", "a", 1), ("abc", "c", 1 / 3), ("abc", "bc", 0.5), ("", "a", 0)],
)
def test_the_reciprocal_rank_is_that_of_the_first_gold_unit(ranked, gold, value):
    assert outcome(ranked, gold).reciprocal_rank() == pytest.approx(value)


def test_what_is_at_hand_counts_as_found():
    found = outcome("ab", "bz", at_hand="z")
    assert found.recall(10) == 0.5
    assert found.recall_with_standing(10) == 1.0


def test_scores_are_means_over_the_outcomes():
    made = score([outcome("ab", "a", ms=1), outcome("ab", "b", ms=5), outcome("ab", "z", ms=2)])
    assert made.n == 3
    assert made.h1 == pytest.approx(1 / 3)
    assert made.h5 == made.r5 == made.r10 == made.r20 == pytest.approx(2 / 3)
    assert made.mrr == pytest.approx((1 + 0.5 + 0) / 3)
    assert made.ms_p50 == 2


def test_recall_looks_as_deep_as_it_says():
    made = score([outcome("abcdefghijklmnopqrstuvwxyz", "fkz")])
    assert (made.r5, made.r10, made.r20) == pytest.approx((0, 1 / 3, 2 / 3))
    assert (made.h5, made.h10) == (0, 1)


def test_categories_are_scored_each_for_itself():
    made = score([outcome("a", "a", category="one"), outcome("a", "b", category="two")])
    assert {name: part.h1 for name, part in made.by_category.items()} == {"one": 1, "two": 0}
    assert made.h1 == 0.5


def test_a_category_that_stands_apart_counts_only_for_itself():
    outcomes = [outcome("a", "a", category="one"), outcome("a", "b", category="odd")]
    made = score(outcomes, frozenset({"odd"}))
    assert (made.n, made.h1) == (1, 1)
    assert made.by_category["odd"].h1 == 0


def test_if_all_stand_apart_all_count():
    assert score([outcome("a", "a", category="odd")], frozenset({"odd"})).n == 1


def test_nothing_asked_scores_nothing():
    assert score([]).as_json() == {
        "n": 0, "r5": 0, "r10": 0, "r20": 0, "h1": 0, "h5": 0, "h10": 0, "mrr": 0,
        "r10_standing": 0, "ms_p50": 0,
    }  # fmt: skip


def test_json_has_rounded_numbers_and_the_categories():
    made = score([outcome("ba", "a"), outcome("cba", "a"), outcome("a", "a")]).as_json()
    assert made["mrr"] == 0.6111
    assert list(made) == [
        "n", "r5", "r10", "r20", "h1", "h5", "h10", "mrr", "r10_standing", "by_category", "ms_p50",
    ]  # fmt: skip


@given(st.permutations("abcdef"), st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_deeper_looks_never_find_less(ranked, gold):
    found = outcome("".join(ranked), "".join(gold))
    recalls = [found.recall(k) for k in range(1, 8)]
    assert recalls == sorted(recalls)
    assert all(found.hit(k) >= found.recall(k) for k in range(1, 8))
    assert found.reciprocal_rank() >= found.hit(1)
