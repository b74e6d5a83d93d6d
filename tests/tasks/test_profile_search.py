"""The search for a better profile: it finds what helps, and says what that is worth unseen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from lore.errors import InvalidInput
from lore.records import TuningCandidate, TuningCase
from lore.tasks import profile_search, profiles
from lore.tasks.profile_search import CUTS
from lore.tasks.profiles import BUILT_IN, DEFAULT, RecallSettings

START = datetime(2026, 1, 1, tzinfo=UTC)
CURRENT = BUILT_IN[DEFAULT]


def _candidate(
    name: str, collection: str, words: float, meaning: float, gain: str = "", tokens: int = 60
) -> TuningCandidate:
    gains = dict.fromkeys(CUTS, (gain,) if gain else ())
    is_episode = collection == "episodic"
    return TuningCandidate(name, collection, is_episode, words, meaning, 0.8, "text", tokens, gains)


def _cases(count: int, seed: int = 1) -> list[TuningCase]:
    """Return cases in which words tell what is used and meaning misleads."""
    random = Random(seed)
    cases = []
    for n in range(count):
        right = [_candidate(f"r{n}{i}", "episodic", 0.9, 0.1, f"thing {i}") for i in range(2)]
        wrong = [
            _candidate(f"w{n}{i}", random.choice(("semantic", "skills")), 0.1, 0.9)
            for i in range(12)
        ]
        cases.append(
            TuningCase(START + timedelta(days=n), "implementation", (*right, *wrong), 20.0)
        )
    return cases


def test_the_search_finds_a_profile_that_helps_on_unseen_tasks() -> None:
    result = profile_search.tune(_cases(60), CURRENT, "better")
    assert result.before_held_out.score < 0.1
    assert result.after_held_out.score > 0.9
    assert result.gain.low > 0
    assert result.after_held_out.cases == 18
    assert result.before.cases == 42
    profile = profiles.parse_profile(result.profile)
    assert (profile.name, profile.source) == ("better", "tuned")
    assert profile.settings.word_share > 0.5


def test_the_same_cases_give_the_same_profile() -> None:
    assert profile_search.tune(_cases(40), CURRENT, "x") == profile_search.tune(
        _cases(40), CURRENT, "x"
    )


def test_random_uses_promise_no_certain_gain() -> None:
    random = Random(4)
    cases = []
    for n in range(60):
        values = [(random.random(), random.random()) for _ in range(10)]
        used = random.randrange(10)
        found = tuple(
            _candidate(f"{n}{i}", random.choice(("semantic", "episodic")), *pair,
                       gain="thing" if i == used else "")
            for i, pair in enumerate(values)
        )  # fmt: skip
        cases.append(TuningCase(START + timedelta(days=n), "review", found))
    result = profile_search.tune(cases, CURRENT, "noise")
    assert result.after.fitness >= result.before.fitness
    assert result.gain.value < result.after.fitness - result.before.fitness + 0.1


def test_fitness_is_score_efficiency_and_latency() -> None:
    (case,) = _cases(1)
    slow = TuningCase(case.at, case.task_type, case.candidates, 1_100.0)
    profile = profiles.Profile(
        "x", BUILT_IN["episodic-heavy"].weights, RecallSettings("session", 1.0, 2, 0.26, 75)
    )
    chosen = profile_search.choose(case, profile)
    assert [one.id for one in chosen] == ["r00", "r01"]
    expected = 0.6 * 1 + 0.3 * (1 - 120 / 600)
    assert profile_search.fitness(profile, [case]) == pytest.approx(expected, abs=1e-4)
    assert profile_search.fitness(profile, [slow]) < expected


def test_what_is_given_stays_within_the_budget() -> None:
    many = tuple(_candidate(f"{i}", "semantic", 0.9, 0.9, tokens=300) for i in range(20))
    case = TuningCase(START, "review", many)
    profile = profiles.Profile(
        "x", BUILT_IN["balanced"].weights, RecallSettings("hierarchical", 0.5, 12, 0.0, 200)
    )
    assert len(profile_search.choose(case, profile)) == 3


def test_too_few_cases_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"29 tasks.*tuning needs 30"):
        profile_search.tune(_cases(29), CURRENT, "x")
    empty = [TuningCase(START, "review", ()) for _ in range(50)]
    with pytest.raises(InvalidInput, match="There are 0 tasks"):
        profile_search.tune(empty, CURRENT, "x")
