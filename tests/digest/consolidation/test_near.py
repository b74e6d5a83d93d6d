"""Near pairs: exact where few, nearly all where many, never all with all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.digest.consolidation.near import _by_trees, _sorted, near_pairs


def unit(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def themes(count: int, seed: int) -> np.ndarray:
    """Draw rows around themes, a tenth of them close to another one."""
    draw = np.random.default_rng(seed)
    centres = unit(draw.standard_normal((count // 40, 64)))
    rows = unit(centres[np.arange(count) % len(centres)] + draw.standard_normal((count, 64)) / 8)
    alike = count // 10
    step = draw.uniform(0.3, 0.7, size=(alike, 1)) / 8
    rows[-alike:] = unit(rows[:alike] + step * draw.standard_normal((alike, 64)))
    return rows


def truth(rows: np.ndarray, above: float) -> set[tuple[int, int]]:
    cosines = rows @ rows.T
    a, b = np.nonzero(np.triu(cosines > above, 1))
    return set(zip(a.tolist(), b.tolist(), strict=True))


@settings(max_examples=20)
@given(st.integers(0, 100), st.integers(80, 300), st.sampled_from([0.7, 0.8, 0.85]))
def test_few_rows_are_compared_exactly(seed, count, above):
    rows = themes(count, seed)
    found = near_pairs(rows, np.ones(count, bool), above=above)
    assert set(zip(found.a.tolist(), found.b.tolist(), strict=True)) == truth(rows, above)
    assert list(found.cosine) == sorted(found.cosine, reverse=True)


@pytest.mark.parametrize("above", [0.8, 0.85])
def test_trees_find_at_least_98_percent_of_the_true_pairs(above):
    rows = themes(6_000, 3)
    found = _sorted(list(_by_trees(rows, above)))
    known = set(zip(found.a.tolist(), found.b.tolist(), strict=True))
    true = truth(rows, above)
    assert len(true) > 200
    assert known <= true
    assert len(known & true) / len(true) >= 0.98


def test_only_pairs_with_something_fresh_are_returned():
    rows = unit(np.ones((4, 8)) + np.eye(4, 8) * 0.01)
    found = near_pairs(rows, np.array([False, False, True, False]), above=0.9)
    assert sorted(zip(found.a, found.b, strict=True)) == [(0, 2), (1, 2), (2, 3)]
    assert len(near_pairs(rows, np.zeros(4, bool), above=0.9)) == 0


def test_a_thousand_copies_do_not_make_a_million_pairs():
    rows = unit(np.ones((1_000, 8)) + np.random.default_rng(1).standard_normal((1_000, 8)) * 0.01)
    found = near_pairs(rows, np.ones(1_000, bool), above=0.8)
    assert len(found) <= 16 * 1_000
    assert set(found.a) | set(found.b) == set(range(1_000))
