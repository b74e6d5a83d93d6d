"""Strategies: named profiles of weights, and a report of how their sessions went; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from lore.errors import InvalidInput
from lore.records import TASK_TYPES, Interval, ProfileReport, TaskType
from lore.tasks.task_type import COLLECTIONS, TASK_WEIGHTS, Weights

Granularity = Literal["session", "action", "hierarchical"]
GRANULARITIES: tuple[Granularity, ...] = ("session", "action", "hierarchical")


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """How memories for a task are chosen, beside the weights of collections.

    `granularity`: whole sessions (episodes), single findings, or both. `word_share`: the part of
    the similarity that words have; the rest is meaning. `depth`: how many memories are given.
    `least_similarity`: less similar ones are pruned. `entry_tokens`: to how many tokens a memory is
    compressed.
    """

    granularity: Granularity = "hierarchical"
    word_share: float = 0.5
    depth: int = 5
    least_similarity: float = 0.26
    entry_tokens: int = 75


@dataclass(frozen=True, slots=True)
class Profile:
    """A named strategy: the weights of collections for each task type, and other settings."""

    name: str
    weights: Mapping[TaskType, Weights]
    settings: RecallSettings = field(default_factory=RecallSettings)
    source: Literal["built in", "tuned", "stated"] = "built in"
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the profile as plain values."""
        return {
            "name": self.name,
            "description": self.description,
            "source": self.source,
            "weights": {name: dict(self.weights[name]) for name in TASK_TYPES},
            "settings": asdict(self.settings),
        }


def _everywhere(episodic: float, semantic: float, skills: float, warnings: float) -> dict[
    TaskType, Weights
]:  # fmt: skip
    values = dict(zip(COLLECTIONS, (episodic, semantic, skills, warnings), strict=True))
    return dict.fromkeys(TASK_TYPES, values)


DEFAULT = "task-types"
BUILT_IN: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(DEFAULT, TASK_WEIGHTS, description="weights by the type of the task"),
        Profile("semantic-heavy", _everywhere(0.2, 0.7, 0.1, 0.0),
                description="mostly patterns and facts"),
        Profile("episodic-heavy", _everywhere(0.7, 0.2, 0.1, 0.0),
                description="mostly earlier sessions"),
        Profile("balanced", _everywhere(0.33, 0.34, 0.33, 0.0),
                description="sessions, facts and skills alike"),
        Profile("warnings-too", _everywhere(0.35, 0.3, 0.15, 0.2),
                description="sessions first, and warnings for every type of task"),
    )
}  # fmt: skip
"""The first four are those of the description of the layout; the last one is Lore's own."""

MOST_PROFILES = 10
"""With a tenth of the sessions each, there is room for so many."""


def parse_profile(values: Mapping[str, Any]) -> Profile:
    """Return a profile from plain values; raise `InvalidInput` that says what is wrong."""
    name = values.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > 60:
        msg = "A profile needs a name of at most 60 characters."
        raise InvalidInput(msg)
    rows = values.get("weights")
    if not isinstance(rows, Mapping):
        msg = f"The profile '{name}' has no weights."
        raise InvalidInput(msg)
    weights: dict[TaskType, Weights] = {}
    for task_type in TASK_TYPES:
        row = rows.get(task_type, rows)
        weights[task_type] = {one: _weight(name, one, row) for one in COLLECTIONS}
        if not any(weights[task_type].values()):
            msg = f"All weights of '{name}' for {task_type} are 0."
            raise InvalidInput(msg)
    source = values.get("source")
    return Profile(
        name.strip(), weights, _parse_settings(name, values.get("settings") or {}),
        source if source in ("built in", "tuned") else "stated",
        str(values.get("description") or "")[:200],
    )  # fmt: skip


def _weight(profile: str, collection: str, row: Any) -> float:
    value = row.get(collection, 0.0) if isinstance(row, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        msg = f"The weight '{collection}' of '{profile}' must be a number between 0 and 1."
        raise InvalidInput(msg)
    return float(value)


_RANGES = {"word_share": (0, 1), "depth": (1, 20), "least_similarity": (0, 1),
           "entry_tokens": (10, 600)}  # fmt: skip


def _parse_settings(profile: str, values: Any) -> RecallSettings:
    default = RecallSettings()
    if not isinstance(values, Mapping):
        msg = f"The settings of '{profile}' must be an object."
        raise InvalidInput(msg)
    granularity = values.get("granularity", default.granularity)
    if granularity not in GRANULARITIES:
        msg = f"The granularity of '{profile}' must be one of {', '.join(GRANULARITIES)}."
        raise InvalidInput(msg)
    numbers: dict[str, Any] = {}
    for name, (least, most) in _RANGES.items():
        value = values.get(name, getattr(default, name))
        whole = isinstance(getattr(default, name), int)
        fits = isinstance(value, int) if whole else isinstance(value, int | float)
        if not fits or isinstance(value, bool) or not least <= value <= most:
            msg = f"'{name}' of '{profile}' must be between {least} and {most}."
            raise InvalidInput(msg)
        numbers[name] = value
    return replace(default, granularity=granularity, **numbers)


_Z = 1.96


def rate_interval(successes: int, n: int) -> Interval | None:
    """Return a rate with the interval of Wilson, which holds for few observations too."""
    if not n:
        return None
    rate = successes / n
    middle = (rate + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(rate * (1 - rate) / n + _Z**2 / (4 * n * n)) / (1 + _Z**2 / n)
    return Interval(rate, max(0.0, middle - half), min(1.0, middle + half), n)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return a mean with its normal interval; of one value the interval is unknown."""
    n = len(values)
    if not n:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = _Z * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n)


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """How a session with a profile went; None while unknown."""

    profile: str
    succeeded: bool | None
    satisfaction: float | None = None


@dataclass(frozen=True, slots=True)
class RetrievalCost:
    """What one retrieval of a profile took, and whether something of it was used."""

    profile: str
    latency_ms: float
    tokens: int
    used: bool | None = None


def make_report(
    shares: Mapping[str, float],
    sessions: Iterable[SessionOutcome],
    retrievals: Iterable[RetrievalCost],
) -> list[ProfileReport]:
    """Return the figures of every profile that has a share, a session or a retrieval."""
    outcomes, costs = list(sessions), list(retrievals)
    names = dict.fromkeys([
        *shares,
        *(one.profile for one in outcomes),
        *(one.profile for one in costs),
    ])
    return [
        _report(
            name,
            shares.get(name, 0.0),
            [one for one in outcomes if one.profile == name],
            [one for one in costs if one.profile == name],
        )
        for name in names
        if name
    ]


def _report(
    name: str, share: float, outcomes: list[SessionOutcome], costs: list[RetrievalCost]
) -> ProfileReport:
    known = [one.succeeded for one in outcomes if one.succeeded is not None]
    content = [one.satisfaction for one in outcomes if one.satisfaction is not None]
    used = [one.used for one in costs if one.used is not None]
    return ProfileReport(
        name, share, len(outcomes), len(costs),
        completion=rate_interval(sum(known), len(known)),
        latency_ms=mean_interval([one.latency_ms for one in costs]),
        tokens=mean_interval([one.tokens for one in costs]),
        satisfaction=mean_interval(content),
        used=rate_interval(sum(used), len(used)),
    )  # fmt: skip


def satisfaction_of(reason: str) -> float | None:
    """Return how content a person was, by the sign from which an outcome was derived."""
    if reason.startswith("the person is content"):
        return 1.0
    if reason.startswith(("the person's last words say", "the person interrupted")):
        return 0.0
    return None
