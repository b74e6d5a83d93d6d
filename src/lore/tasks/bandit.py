"""Thompson sampling over named profiles, with guard rails; pure functions on values.

A share is the part of the new sessions that a profile gets. Shares change once a day, so that a
person can follow them, and so that one noisy hour changes little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from random import Random
from typing import Literal

from lore.errors import InvalidInput

DRAWS = 1_000
"""Samples of the posteriors for one day; the error of a share is at most 1.6 points."""


@dataclass(frozen=True, slots=True)
class GuardRails:
    """How fast shares may change, and when they go back.

    `floor`, `daily_shift` and `rollback_drop` are rules of the experiment: each profile keeps a
    tenth of the sessions, a share moves by at most five points a day, and a success rate that
    drops by a fifth restores the first shares. A drop counts if it is no chance: the recent
    sessions of one of the `windows` are `certainty` standard errors below the earlier ones.
    Without that condition most simulated runs of equal profiles were rolled back.
    """

    floor: float = 0.10
    daily_shift: float = 0.05
    rollback_drop: float = 0.20
    windows: tuple[int, ...] = (50, 100, 200)
    earlier_sessions: int = 800
    certainty: float = 3.5
    daily_discount: float = 0.99


RAILS = GuardRails()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Successes and failures of a profile's sessions, discounted by age."""

    successes: float = 0.0
    failures: float = 0.0

    def draw(self, random: Random) -> float:
        """Return a success rate, drawn from the posterior with a uniform prior."""
        return random.betavariate(1 + self.successes, 1 + self.failures)


@dataclass(frozen=True, slots=True)
class Bandit:
    """The state of learning: evidence, shares, and the shares to go back to.

    `outcomes` are the latest sessions in order, since the last rollback.
    """

    evidence: Mapping[str, Evidence]
    shares: Mapping[str, float]
    start: Mapping[str, float]
    outcomes: tuple[bool, ...] = ()
    rollbacks: int = 0


Event = Literal["", "shifted", "rolled back"]


@dataclass(frozen=True, slots=True)
class Step:
    """The state after a day, what happened, and the recent and earlier rate of a rollback."""

    bandit: Bandit
    event: Event
    rates: tuple[float, float] | None = None


def new_bandit(profiles: Iterable[str], shares: Mapping[str, float] | None = None) -> Bandit:
    """Return a bandit without evidence; shares are equal unless given."""
    names = tuple(dict.fromkeys(profiles))
    _check_count(len(names), RAILS.floor)
    equal = {name: 1 / len(names) for name in names}
    start = raise_to_floor(shares, RAILS.floor) if shares else equal
    return Bandit({name: Evidence() for name in names}, start, start)


def choose_profile(shares: Mapping[str, float], session: str, salt: str = "") -> str:
    """Return the profile of a session: random between sessions, the same for one session."""
    names, weights = list(shares), list(shares.values())
    return Random(f"{salt}\0{session}").choices(names, weights)[0]  # noqa: S311 (no secret)


def record_outcome(bandit: Bandit, profile: str, *, succeeded: bool) -> Bandit:
    """Add the outcome of a session; a profile that is gone adds to the rates only."""
    evidence = dict(bandit.evidence)
    if profile in evidence:
        old = evidence[profile]
        evidence[profile] = Evidence(old.successes + succeeded, old.failures + (not succeeded))
    most = max(RAILS.windows) + RAILS.earlier_sessions
    return replace(bandit, evidence=evidence, outcomes=(*bandit.outcomes, succeeded)[-most:])


def end_day(bandit: Bandit, random: Random, rails: GuardRails = RAILS) -> Step:
    """Move the shares towards the profiles that are probably best, or back after a drop."""
    rates = find_drop(bandit.outcomes, rails)
    if rates:
        return Step(_roll_back(bandit), "rolled back", rates)
    wanted = raise_to_floor(probability_of_best(bandit.evidence, random), rails.floor)
    shares = limit_shift(bandit.shares, wanted, rails.daily_shift)
    evidence = {
        name: Evidence(one.successes * rails.daily_discount, one.failures * rails.daily_discount)
        for name, one in bandit.evidence.items()
    }
    event: Event = "shifted" if shares != bandit.shares else ""
    return Step(replace(bandit, evidence=evidence, shares=shares), event)


def _roll_back(bandit: Bandit) -> Bandit:
    """Return to the first shares and forget the evidence: it led to the drop."""
    evidence = {name: Evidence() for name in bandit.evidence}
    return Bandit(evidence, bandit.start, bandit.start, rollbacks=bandit.rollbacks + 1)


def find_drop(outcomes: Sequence[bool], rails: GuardRails = RAILS) -> tuple[float, float] | None:
    """Return the recent and the earlier success rate if it dropped; None if not."""
    for size in rails.windows:
        recent, earlier = outcomes[-size:], outcomes[:-size][-rails.earlier_sessions :]
        if len(earlier) < size:
            break
        now, before = sum(recent) / len(recent), sum(earlier) / len(earlier)
        spread = sqrt(before * (1 - before) * (1 / len(recent) + 1 / len(earlier)))
        if now <= (1 - rails.rollback_drop) * before and before - now >= rails.certainty * spread:
            return (now, before) if before else None
    return None


def probability_of_best(
    evidence: Mapping[str, Evidence], random: Random, draws: int = DRAWS
) -> dict[str, float]:
    """Return how often each profile has the highest rate among draws of all posteriors."""
    wins = dict.fromkeys(evidence, 0)
    for _ in range(draws):
        rates = {name: one.draw(random) for name, one in evidence.items()}
        wins[max(rates, key=rates.__getitem__)] += 1
    return {name: count / draws for name, count in wins.items()}


def raise_to_floor(shares: Mapping[str, float], floor: float = RAILS.floor) -> dict[str, float]:
    """Return shares of which none is below the floor, and which sum to one."""
    _check_count(len(shares), floor)
    total = sum(shares.values())
    if not shares or total <= 0 or min(shares.values()) < 0:
        msg = "Shares must be numbers of at least 0, and not all 0."
        raise InvalidInput(msg)
    rest = 1 - floor * len(shares)
    return {name: floor + rest * share / total for name, share in shares.items()}


def limit_shift(
    current: Mapping[str, float], wanted: Mapping[str, float], most: float
) -> dict[str, float]:
    """Return shares on the way to the wanted ones, none changed by more than `most`."""
    largest = max(abs(wanted[name] - current[name]) for name in current)
    part = min(1.0, most / largest) if largest else 0.0
    return {name: share + part * (wanted[name] - share) for name, share in current.items()}


def _check_count(count: int, floor: float) -> None:
    if not 1 <= count <= int(1 / floor + 1e-9):
        msg = (
            f"{count} profiles cannot have {floor:.0%} of the sessions each:"
            f" enable between 1 and {int(1 / floor + 1e-9)}."
        )
        raise InvalidInput(msg)
