from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lore.recall import fusion

scores = arrays(np.float64, st.integers(0, 30), elements=st.floats(0, 1e6, allow_subnormal=False))


def array(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


def test_largest_value_has_rank_0_and_ties_keep_order():
    assert fusion.ranks(array(1, 3, 2, 3)).tolist() == [3, 0, 2, 1]


@given(scores)
def test_ranks_are_a_permutation_in_falling_order(values):
    ranks = fusion.ranks(values)
    assert sorted(ranks.tolist()) == list(range(len(values)))
    ordered = values[np.argsort(ranks)]
    assert (np.diff(ordered) <= 0).all()


def test_shares_are_relative_to_the_largest():
    assert fusion.shares(array(1, 4, 2)).tolist() == [0.25, 1.0, 0.5]


@pytest.mark.parametrize("values", [array(), array(0, 0), array(-1, -2)])
def test_shares_are_zero_if_no_value_is_positive(values):
    assert fusion.shares(values).tolist() == [0.0] * len(values)


@given(scores)
def test_standard_scores_have_mean_0_and_deviation_1(values):
    made = fusion.standardised(values)
    assert len(made) == len(values)
    if made.any():
        assert made.mean() == pytest.approx(0, abs=1e-6)
        assert made.std() == pytest.approx(1)


@pytest.mark.parametrize("values", [array(), array(5), array(2, 2, 2)])
def test_equal_values_standardize_to_zeros(values):
    assert fusion.standardised(values).tolist() == [0.0] * len(values)


def test_reciprocal_ranks_add_up_over_searches():
    fused = fusion.reciprocal_ranks(array(3, 2, 0), array(0.1, 0.9, 0.5), terms=1)
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 62])


def test_vectors_count_more_from_two_terms_on():
    fused = fusion.reciprocal_ranks(array(3, 2, 0), array(0.1, 0.9, 0.5), terms=2)
    assert fused == pytest.approx([1 / 61 + 1.5 / 63, 1 / 62 + 1.5 / 61, 1.5 / 62])


def test_candidate_counts_only_in_searches_that_returned_it():
    assert fusion.reciprocal_ranks(array(0, 1), array(0, 0), terms=3).tolist() == [0, 1 / 61]


def test_a_keyword_hit_alone_can_win():
    fused = fusion.reciprocal_ranks(array(9, 0, 0), array(0.0, -0.2, -0.1), terms=1)
    assert fused.argmax() == 0


def test_the_weighted_recipe_is_the_sum_of_standard_scores():
    one, other = array(1, 2, 3), array(3, 1, 2)
    expected = fusion.standardised(one) + fusion.standardised(other)
    assert fusion.weighted(one, other).tolist() == expected.tolist()


def test_equal_scores_are_ordered_by_larger_tie_breaker():
    assert fusion.best_first(array(1, 2, 1, 2), [10, 20, 30, 40]).tolist() == [3, 1, 2, 0]


@given(scores)
def test_best_first_orders_every_candidate_once(values):
    order = fusion.best_first(values, range(len(values)))
    assert sorted(order.tolist()) == list(range(len(values)))
    assert (np.diff(values[order]) <= 0).all()


def test_a_linear_model_weighs_its_features_by_name():
    model = fusion.LinearModel(("a", "b"), array(2, -1), {})
    features = {"b": array(1, 0), "a": array(1, 3), "unused": array(9, 9)}
    assert model.matrix(features).tolist() == [[1, 1], [3, 0]]
    assert model.score(features).tolist() == [1, 6]
