"""Profiles, their intervals, and the report."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.records import TASK_TYPES
from lore.tasks import profiles
from lore.tasks.profiles import BUILT_IN, DEFAULT, RetrievalCost, SessionOutcome


def test_profiles_weigh_every_task_type() -> None:
    assert len(BUILT_IN) <= profiles.MOST_PROFILES
    for profile in BUILT_IN.values():
        for task_type in TASK_TYPES:
            assert sum(profile.weights[task_type].values()) == pytest.approx(1)
    assert BUILT_IN[DEFAULT].weights["debugging"]["anti_patterns"] == 0.4


def test_a_profile_survives_its_values() -> None:
    for profile in BUILT_IN.values():
        assert profiles.parse_profile(profile.as_json()) == profile


def test_weights_for_all_task_types_may_be_given_once() -> None:
    profile = profiles.parse_profile({"name": "mine", "weights": {"semantic": 1}})
    assert profile.weights["review"] == {
        "episodic": 0.0, "semantic": 1.0, "skills": 0.0, "anti_patterns": 0.0,
    }  # fmt: skip
    assert profile.source == "stated"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "needs a name"),
        ({"name": "x"}, "no weights"),
        ({"name": "x", "weights": {}}, "are 0"),
        ({"name": "x", "weights": {"semantic": 2}}, "between 0 and 1"),
        ({"name": "x", "weights": {"semantic": 1, "review": 3}}, "between 0 and 1"),
        ({"name": "x", "weights": {"semantic": True}}, "between 0 and 1"),
        ({"name": "x", "weights": {"semantic": 1}, "settings": 3}, "must be an object"),
        ({"name": "x", "weights": {"semantic": 1}, "settings": {"depth": 0}}, "'depth'"),
        ({"name": "x", "weights": {"semantic": 1}, "settings": {"depth": 2.5}}, "'depth'"),
        ({"name": "x", "weights": {"semantic": 1}, "settings": {"granularity": "a"}}, "one of"),
    ],
)
def test_a_profile_that_is_wrong_says_what(values: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        profiles.parse_profile(values)


@given(st.integers(0, 400), st.integers(1, 400))
def test_the_interval_of_a_rate_contains_it(successes: int, more: int) -> None:
    interval = profiles.rate_interval(successes, successes + more)
    assert interval is not None
    assert 0 <= interval.low <= interval.value <= interval.high <= 1


def test_intervals_are_as_in_the_books() -> None:
    rate = profiles.rate_interval(8, 10)
    assert rate is not None
    assert (round(rate.low, 3), round(rate.high, 3)) == (0.490, 0.943)
    mean = profiles.mean_interval([1, 2, 3, 4])
    assert mean is not None
    assert (mean.value, round(mean.low, 2), round(mean.high, 2)) == (2.5, 1.23, 3.77)
    one = profiles.mean_interval([5])
    assert one is not None
    assert one.high == math.inf
    assert profiles.rate_interval(0, 0) is None
    assert profiles.mean_interval([]) is None


def test_a_report_has_all_profiles_with_what_is_known() -> None:
    sessions = [
        SessionOutcome("a", True, 1.0),
        SessionOutcome("a", False),
        SessionOutcome("a", None),
        SessionOutcome("b", True),
    ]
    costs = [
        RetrievalCost("a", 10, 200, True),
        RetrievalCost("a", 30, 400),
        RetrievalCost("", 1, 1),
    ]
    a, b, c = profiles.make_report({"a": 0.5, "c": 0.5}, sessions, costs)
    assert a.completion is not None
    assert a.completion[0::3] == (0.5, 2)
    assert a.latency_ms is not None
    assert a.latency_ms.value == 20
    assert a.used is not None
    assert a.used.n == 1
    assert {b.profile, c.profile} == {"b", "c"}


def test_what_a_person_said_last_is_satisfaction() -> None:
    assert profiles.satisfaction_of("the person is content") == 1
    assert profiles.satisfaction_of("the person interrupted it") == 0
    assert profiles.satisfaction_of("the last test passed") is None
