from __future__ import annotations

import numpy as np
import pytest

from lore.recall import deep
from lore.recall.deep import Direct
from lore.recall.pagerank import Mass


def direct(ns: list[int], fused: list[float]) -> Direct:
    scores = np.array(fused, np.float64)
    return Direct(np.array(ns, np.int64), scores, scores, scores)


def test_the_best_direct_hits_are_seeds_by_how_near_the_best_they_are():
    seeds = deep.choose_seeds(direct([7, 8, 9, 10], [2.0, 1.0, 0.0, -1.0]), {})
    assert seeds == pytest.approx({7: 1.0, 8: np.exp(-1), 9: np.exp(-2)})


def test_what_the_question_names_is_a_seed_too():
    seeds = deep.choose_seeds(direct([7], [2.0]), {"ada": [7, 5]})
    assert seeds == {7: 1.5, 5: 0.5}


def test_without_hits_the_named_are_the_seeds():
    assert deep.choose_seeds(direct([], []), {"ada": [5]}) == {5: 1.0}
    assert deep.choose_seeds(direct([], []), {}) == {}


def test_a_name_inside_a_longer_name_does_not_count():
    titled = {"york": [1], "new york": [2], "new york times": [3], "yorkshire": [4]}
    assert deep.longest_only(titled) == {"new york times": [3], "yorkshire": [4]}


def test_candidates_are_the_walked_then_the_direct_each_once():
    walked = Mass(np.array([1, 2, 3]), np.array([0.1, 0.3, 0.2]))
    assert deep.candidates(direct([3, 9], [1, 0]), walked).tolist() == [2, 3, 1, 9]


def test_the_number_of_candidates_is_bounded():
    walked = Mass(np.arange(500), np.linspace(1, 0, 500))
    many = direct(list(range(1_000, 1_100)), [0.0] * 100)
    assert len(deep.candidates(many, walked)) == deep.WALKED + deep.DIRECT


def test_stems_meet_the_inflections_of_a_word():
    assert deep.stems("The painter was painting paintings") == {"painte", "painti"}
