"""Token economics: what memory costs a session, what it saves, and what to change about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from lore.records import Checkpoint

Metric = Literal[
    "ratio",
    "savings_vs_full_load",
    "layer3_loads",
    "discovery_tokens",
    "layer2_tokens_scanned",
    "tokens_saved",
]
CorrectiveAction = Literal[
    "compress_layer3",
    "review_topic_relevance",
    "create_specialized_index",
    "reorganize_topic_index",
    "split_timeline",
    "bypass",
]

GOAL_RATIO, GOAL_SAVINGS = 0.1, 60.0
"""From the specification: discovery costs less than a tenth of what is read, and most is saved."""

TRIGGER_LOADS = 2
"""More loads of details than this in a task are examined at once."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """The tokens of retrievals by layer; sums of a task or a session.

    `layer2_tokens_available` is the size of the timelines of which only a part was scanned, and
    `baseline_tokens` the size of the memory, which a session without layers would load once.
    """

    retrievals: int = 0
    layer1_loads: int = 0
    layer1_tokens: int = 0
    layer2_loads: int = 0
    layer2_tokens_scanned: int = 0
    layer2_tokens_available: int = 0
    layer3_loads: int = 0
    layer3_tokens: int = 0
    most_task_loads: int = 0
    baseline_tokens: int = 0

    def __add__(self, other: TokenCounts) -> TokenCounts:
        """Return the counts of two tasks of a session: the memory is loaded once in both cases."""
        summed = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        for name in ("most_task_loads", "baseline_tokens"):
            summed[name] = max(getattr(self, name), getattr(other, name))
        return TokenCounts(**summed)

    @property
    def discovery_tokens(self) -> int:
        """Return the tokens spent to find what there is."""
        return self.layer1_tokens + self.layer2_tokens_scanned

    @property
    def read_tokens(self) -> int:
        """Return the tokens of details that were read."""
        return self.layer3_tokens

    @property
    def ratio(self) -> float | None:
        """Return discovery by reading; None if nothing had to be read."""
        return self.discovery_tokens / self.read_tokens if self.read_tokens else None

    @property
    def progressive_tokens(self) -> int:
        """Return all tokens that the layers cost."""
        return self.discovery_tokens + self.read_tokens

    @property
    def tokens_saved(self) -> int:
        """Return how many tokens fewer than the whole memory were loaded; negative if more."""
        return self.baseline_tokens - self.progressive_tokens

    @property
    def savings_percent(self) -> float:
        """Return what was saved, in percent of the whole memory."""
        return 100 * self.tokens_saved / self.baseline_tokens if self.baseline_tokens else 0.0


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit of a metric, and the action that corrects it."""

    metric: Metric
    limit: float
    action: CorrectiveAction
    is_least: bool = False
    """Whether less than the limit is too little; else more is too much."""


THRESHOLDS: tuple[Threshold, ...] = (
    Threshold("ratio", 0.15, "compress_layer3"),
    Threshold("savings_vs_full_load", 50, "review_topic_relevance", is_least=True),
    Threshold("layer3_loads", 3, "create_specialized_index"),
    Threshold("discovery_tokens", 200, "reorganize_topic_index"),
    Threshold("layer2_tokens_scanned", 100, "split_timeline"),
    Threshold("tokens_saved", 1_000, "bypass", is_least=True),
)
"""In order of priority: what costs tokens at every query comes before structure."""

SMALL_MEMORY = 5_000
"""A memory of fewer tokens is not worth a percentage: a change that saves half of it would be in
the way when it has grown."""

_LIGHT: tuple[Metric, ...] = ("ratio", "layer3_loads")


@dataclass(frozen=True, slots=True)
class Finding:
    """A metric beyond its threshold, and the action that corrects it."""

    metric: Metric
    value: float
    limit: float
    action: CorrectiveAction

    @property
    def reason(self) -> str:
        """Return the finding in words."""
        beyond = "below" if self.value < self.limit else "above"
        return f"{self.metric} is {self.value:g}, {beyond} {self.limit:g}"


def metrics_to_check(checkpoint: Checkpoint, counts: TokenCounts) -> tuple[Metric, ...]:
    """Return what is examined: little after a task, everything at the end of a session.

    In between only after many loads of details, so that they do not go on unnoticed.
    """
    if checkpoint == "session_end":
        return tuple(threshold.metric for threshold in THRESHOLDS)
    if checkpoint == "task_complete" or counts.most_task_loads > TRIGGER_LOADS:
        return _LIGHT
    return ()


def check_thresholds(checkpoint: Checkpoint, counts: TokenCounts) -> list[Finding]:
    """Return what is beyond its threshold, in order of priority."""
    if not counts.retrievals or not counts.baseline_tokens:
        return []  # nothing was asked for, or there was nothing to know
    checked = metrics_to_check(checkpoint, counts)
    findings: list[Finding] = []
    for threshold in THRESHOLDS:
        value = measure(threshold.metric, counts) if threshold.metric in checked else None
        if value is None:
            continue
        if value < threshold.limit if threshold.is_least else value > threshold.limit:
            findings.append(
                Finding(threshold.metric, round(value, 3), threshold.limit, threshold.action)
            )
    return findings


def measure(metric: Metric, counts: TokenCounts) -> float | None:
    """Return a metric; what holds of a query is the mean of all, and loads are of one task."""
    queries = max(1, counts.retrievals)
    values: dict[Metric, float | None] = {
        "ratio": counts.ratio,
        "savings_vs_full_load": (
            counts.savings_percent if counts.baseline_tokens >= SMALL_MEMORY else None
        ),
        "layer3_loads": counts.most_task_loads,
        "discovery_tokens": counts.discovery_tokens / queries,
        "layer2_tokens_scanned": counts.layer2_tokens_scanned / queries,
        "tokens_saved": counts.tokens_saved,
    }
    return values[metric]


def sum_counts(counts: Sequence[TokenCounts]) -> TokenCounts:
    """Return the counts of several tasks of a session."""
    return sum(counts, start=TokenCounts())
