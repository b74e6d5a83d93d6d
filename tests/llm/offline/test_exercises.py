"""Exercises and advertisements are told from what is about a person."""

from __future__ import annotations

import pytest

from lore.llm.offline import exercises


@pytest.mark.parametrize(
    "said",
    [
        "I'm working with a triangle that has sides of 6, 8 and 10 cm",
        "I need to multiply these: (4 * 13) + 2",
        "I won't use \\( 5! \\) since that is for all 5",
        "I've researched that the boot has a wool lining, which improves warmth by 25%",
        "I've been considering the lamp because of its mirror that provides 30% more light",
    ],
)
def test_what_sets_an_exercise_or_praises_a_product_is_one(said):
    assert exercises.is_one(said)


@pytest.mark.parametrize(
    "said",
    [
        "I solved 5 probability problems and scored 80% on the quiz",
        "I just got a lamp with a mirror that provides 30% more light",
        "I've never taken an exam about triangles",
        "I rated the course 8/10 on May 3",
        "I'm using `a = 3` as the default in `conf.py`",
    ],
)
def test_what_someone_learned_bought_or_rated_is_none(said):
    assert not exercises.is_one(said)
