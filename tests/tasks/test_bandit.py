"""Thompson sampling keeps its guard rails, whatever the outcomes are."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.tasks import bandit
from lore.tasks.bandit import RAILS, Bandit, Evidence

NAMES = ("a", "b", "c")


def _run(
    rates: dict[str, float], days: int, per_day: int, seed: int, state: Bandit
) -> list[Bandit]:
    random = Random(seed)
    states = [state]
    for day in range(days):
        for n in range(per_day):
            name = bandit.choose_profile(state.shares, f"{seed} {day} {n}")
            succeeded = random.random() < rates[name]
            state = bandit.record_outcome(state, name, succeeded=succeeded)
        state = bandit.end_day(state, random).bandit
        states.append(state)
    return states


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=300),
    st.integers(0, 99),
)
def test_no_share_is_below_the_floor_and_none_jumps(
    outcomes: list[tuple[str, bool]], seed: int
) -> None:
    state, random = bandit.new_bandit(NAMES), Random(seed)
    for place, (name, succeeded) in enumerate(outcomes):
        state = bandit.record_outcome(state, name, succeeded=succeeded)
        if place % 20 == 0:
            step = bandit.end_day(state, random)
            if step.event != "rolled back":
                shifts = [abs(step.bandit.shares[n] - state.shares[n]) for n in NAMES]
                assert max(shifts) <= RAILS.daily_shift + 1e-9
            state = step.bandit
            assert min(state.shares.values()) >= RAILS.floor - 1e-9
            assert sum(state.shares.values()) == pytest.approx(1)


def test_the_better_profile_gets_all_but_the_exploration() -> None:
    rates = {"a": 0.45, "b": 0.5, "c": 0.7}
    final = _run(rates, days=120, per_day=20, seed=1, state=bandit.new_bandit(NAMES))[-1]
    assert final.shares["c"] == pytest.approx(0.8, abs=0.03)
    assert min(final.shares.values()) >= RAILS.floor - 1e-9


def test_a_drop_by_a_fifth_rolls_back_to_the_first_shares() -> None:
    good = {"a": 0.5, "b": 0.5, "c": 0.8}
    state = _run(good, days=60, per_day=20, seed=2, state=bandit.new_bandit(NAMES))[-1]
    assert state.shares["c"] > 0.6
    broken = {"a": 0.5, "b": 0.5, "c": 0.2}
    states = _run(broken, days=10, per_day=20, seed=3, state=state)
    back = next(one for one in states if one.rollbacks)
    assert back.shares == pytest.approx(dict.fromkeys(NAMES, 1 / 3))
    assert back.evidence["c"] == Evidence()
    later = _run(broken, days=60, per_day=20, seed=4, state=states[-1])[-1]
    assert later.shares["c"] == pytest.approx(RAILS.floor, abs=0.02)


def test_a_drop_needs_a_fifth_and_enough_sessions() -> None:
    assert bandit.find_drop([True] * 50 + [False] * 49) is None
    assert bandit.find_drop([True] * 50 + [False] * 50) == (0.0, 1.0)
    assert bandit.find_drop([True] * 800 + [True, True, True, True, False] * 40) == (0.8, 1.0)
    assert bandit.find_drop([True] * 800 + [*[True] * 41, *[False] * 9] * 4) is None
    assert bandit.find_drop([False] * 900) is None


def test_a_drop_that_may_be_chance_is_none() -> None:
    earlier = [True, False] * 50
    assert bandit.find_drop([*earlier, *([True] * 19 + [False] * 31)]) is None


def test_a_session_keeps_its_profile_and_sessions_follow_the_shares() -> None:
    shares = {"a": 0.1, "b": 0.2, "c": 0.7}
    chosen = [bandit.choose_profile(shares, str(n), "salt") for n in range(3_000)]
    assert chosen[7] == bandit.choose_profile(shares, "7", "salt")
    for name, share in shares.items():
        assert chosen.count(name) / 3_000 == pytest.approx(share, abs=0.03)


def test_more_profiles_than_the_floor_allows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="between 1 and 10"):
        bandit.new_bandit(map(str, range(11)))
    assert min(bandit.new_bandit(map(str, range(10))).shares.values()) == pytest.approx(0.1)
    with pytest.raises(InvalidInput, match="at least 0"):
        bandit.raise_to_floor({"a": 0.0})


def test_an_outcome_of_a_deleted_profile_counts_for_the_rate_only() -> None:
    state = bandit.record_outcome(bandit.new_bandit(NAMES), "gone", succeeded=True)
    assert state.outcomes == (True,)
    assert "gone" not in state.evidence
