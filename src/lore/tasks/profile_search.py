"""Offline search for a better profile, with a part of the cases held out; pure functions.

Cases are tasks of the past with all memories that were compared, and what of each was used. A
profile is applied to them again: it chooses other memories, which would have brought more or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from lore.errors import InvalidInput
from lore.records import (
    TASK_TYPES,
    Interval,
    TaskType,
    TuningCandidate,
    TuningCase,
    TuningFigures,
    TuningResult,
)
from lore.tasks import profiles
from lore.tasks.profiles import BUILT_IN, GRANULARITIES, Profile, RecallSettings
from lore.tasks.task_type import COLLECTIONS, Weights

BUDGET_TOKENS = 600
HELD_OUT = 0.3
"""The latest cases: a profile must hold for tasks that come later."""

FEWEST_CASES = 30
SCORE_WEIGHT, EFFICIENCY_WEIGHT, LATENCY_WEIGHT = 0.6, 0.3, 0.1
ALLOWED_MS = 100.0
"""Latency up to this costs nothing."""

CUTS = (30, 50, 75, 120, 200)
"""The numbers of tokens to which a memory may be compressed."""

_WORD_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_DEPTHS = (2, 3, 5, 8, 12)
_LEAST = (0.0, 0.1, 0.2, 0.26, 0.35, 0.45)
_STEP = 0.25
_RANDOM_TRIES, _GENERATIONS, _PARENTS, _CHILDREN = 60, 12, 6, 4
_DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a profile would have given to one case."""

    score: float
    efficiency: float
    latency: float

    @property
    def fitness(self) -> float:
        return (
            SCORE_WEIGHT * self.score
            + EFFICIENCY_WEIGHT * self.efficiency
            - LATENCY_WEIGHT * self.latency
        )


def tune(
    cases: Sequence[TuningCase], current: Profile, name: str, *, seed: int = 1
) -> TuningResult:
    """Search for the profile with the best fitness on the earlier cases, and judge it on the rest.

    The search tries the profiles that Lore ships and random ones, then varies the best.
    """
    judged = sorted((case for case in cases if _possible(case)), key=lambda case: case.at)
    if len(judged) < FEWEST_CASES:
        msg = (
            f"There are {len(judged)} tasks of which it is known what they used;"
            f" tuning needs {FEWEST_CASES}."
        )
        raise InvalidInput(msg, hint="--data adds recorded sessions.")
    split = len(judged) - max(1, int(HELD_OUT * len(judged)))
    seen, held_out = judged[:split], judged[split:]
    tried: dict[str, tuple[float, Profile]] = {}
    for profile in _search(seen, current, Random(seed), tried):  # noqa: S311 (no secret)
        best = profile
    best = replace(best, name=name, source="tuned", description="found by a search")
    before, after = _outcomes(current, held_out), _outcomes(best, held_out)
    gains = [one.fitness - other.fitness for one, other in zip(after, before, strict=True)]
    return TuningResult(
        name,
        best.as_json(),
        len(tried),
        _figures(_outcomes(current, seen)),
        _figures(_outcomes(best, seen)),
        _figures(before),
        _figures(after),
        _interval(gains, Random(seed)),  # noqa: S311
        {source: sum(case.source == source for case in judged)
         for source in dict.fromkeys(case.source for case in judged)},
    )  # fmt: skip


def choose(case: TuningCase, profile: Profile) -> list[TuningCandidate]:
    """Return the candidates that a profile gives to a case, best first, within the budget."""
    settings, weights = profile.settings, profile.weights[case.task_type]
    scored: list[tuple[float, TuningCandidate]] = []
    for one in _comparable(case, settings):
        similarity = settings.word_share * one.words + (1 - settings.word_share) * one.meaning
        weight = weights[one.collection]  # type: ignore[index]
        if similarity >= settings.least_similarity and weight:
            scored.append((similarity * weight * one.quality, one))
    scored.sort(key=lambda pair: (-pair[0], pair[1].id))
    chosen, left = [], BUDGET_TOKENS
    for _, one in scored[: settings.depth]:
        left -= min(one.tokens, settings.entry_tokens)
        if left < 0:
            break
        chosen.append(one)
    return chosen


def _comparable(case: TuningCase, settings: RecallSettings) -> Iterator[TuningCandidate]:
    for one in case.candidates:
        if settings.granularity == "session" and one.collection == "semantic":
            continue
        if settings.granularity == "action" and one.is_episode:
            continue
        yield one


def _possible(case: TuningCase) -> frozenset[str]:
    """Return what all candidates together would have brought."""
    return frozenset().union(*(gain for one in case.candidates for gain in one.gains.values()))


def _judge(case: TuningCase, profile: Profile) -> _Outcome:
    chosen = choose(case, profile)
    cut = profile.settings.entry_tokens
    gained = frozenset().union(*(one.gains.get(cut, ()) for one in chosen))
    used_tokens = sum(min(one.tokens, cut) for one in chosen)
    compared = sum(1 for _ in _comparable(case, profile.settings))
    latency_ms = case.latency_ms * compared / max(1, len(case.candidates))
    return _Outcome(
        len(gained) / len(_possible(case)),
        1 - used_tokens / BUDGET_TOKENS,
        max(0.0, latency_ms - ALLOWED_MS) / 1_000,
    )


def _outcomes(profile: Profile, cases: Sequence[TuningCase]) -> list[_Outcome]:
    return [_judge(case, profile) for case in cases]


def fitness(profile: Profile, cases: Sequence[TuningCase]) -> float:
    """Return the mean fitness of a profile: 0.6 score + 0.3 efficiency - 0.1 latency."""
    return _figures(_outcomes(profile, cases)).fitness


def _figures(outcomes: Sequence[_Outcome]) -> TuningFigures:
    n = max(1, len(outcomes))
    return TuningFigures(
        round(sum(one.fitness for one in outcomes) / n, 4),
        round(sum(one.score for one in outcomes) / n, 4),
        round(sum(one.efficiency for one in outcomes) / n, 4),
        round(sum(one.latency for one in outcomes) / n, 4),
        len(outcomes),
    )


def _interval(gains: Sequence[float], random: Random) -> Interval:
    n = len(gains)
    draws = sorted(sum(random.choices(gains, k=n)) / n for _ in range(_DRAWS))
    low, high = draws[int(0.025 * _DRAWS)], draws[int(0.975 * _DRAWS) - 1]
    return Interval(round(sum(gains) / n, 4), round(low, 4), round(high, 4), n)


def _search(
    cases: Sequence[TuningCase],
    current: Profile,
    random: Random,
    tried: dict[str, tuple[float, Profile]],
) -> Iterator[Profile]:
    """Yield the best profile so far, after the first tries and after each generation."""

    def add(profile: Profile) -> None:
        key = repr((profile.weights, profile.settings))
        if key not in tried:
            tried[key] = (fitness(profile, cases), profile)

    for profile in (current, *BUILT_IN.values()):
        add(profile)
    for _ in range(_RANDOM_TRIES):
        add(_random_profile(random))
    yield _best(tried, 1)[0]
    for _ in range(_GENERATIONS):
        for parent in _best(tried, _PARENTS):
            for _ in range(_CHILDREN):
                add(_vary(parent, random))
        yield _best(tried, 1)[0]


def _best(tried: Mapping[str, tuple[float, Profile]], count: int) -> list[Profile]:
    ranked = sorted(tried.values(), key=lambda pair: -pair[0])
    return [profile for _, profile in ranked[:count]]


def _random_profile(random: Random) -> Profile:
    settings = RecallSettings(
        random.choice(GRANULARITIES), random.choice(_WORD_SHARES), random.choice(_DEPTHS),
        random.choice(_LEAST), random.choice(CUTS),
    )  # fmt: skip
    base = random.choice(list(BUILT_IN.values()))
    return Profile("", {name: _shift(base.weights[name], random) for name in TASK_TYPES}, settings)


def _vary(parent: Profile, random: Random) -> Profile:
    """Return a profile with one setting, or the weights of one task type, changed."""
    settings = parent.settings
    what = random.randrange(6)
    if what == 0:
        settings = replace(settings, granularity=random.choice(GRANULARITIES))
    elif what == 1:
        settings = replace(settings, word_share=random.choice(_WORD_SHARES))
    elif what == 2:
        settings = replace(settings, depth=random.choice(_DEPTHS))
    elif what == 3:
        settings = replace(settings, least_similarity=random.choice(_LEAST))
    elif what == 4:
        settings = replace(settings, entry_tokens=random.choice(CUTS))
    weights: dict[TaskType, Weights] = dict(parent.weights)
    if what == 5:
        name = random.choice(TASK_TYPES)
        weights[name] = _shift(weights[name], random)
    return profiles.Profile("", weights, settings)


def _shift(weights: Weights, random: Random) -> Weights:
    """Return weights of which one collection gets more or less; they sum to one."""
    changed = dict(weights)
    name = random.choice(COLLECTIONS)
    changed[name] = max(0.0, changed[name] + random.choice((-_STEP, _STEP)))
    total = sum(changed.values())
    if not total:
        return weights
    return {one: round(value / total, 4) for one, value in changed.items()}
