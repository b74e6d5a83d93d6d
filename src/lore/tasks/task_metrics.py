"""Task metrics: efficiency and rewards of finished tasks, and their summary over seven days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean, median

from lore.records import Outcome
from lore.records.task_records import MetricsSummary
from lore.store.handoff_rows import FinishedTask

WINDOW = timedelta(days=7)
"""From the specification."""

OUTCOME_REWARDS: dict[Outcome, float | None] = {
    "success": 1.0, "partial": 0.3, "failure": -1.0, "unknown": None,
}  # fmt: skip
"""An outcome that nobody knows is no reward and no punishment."""

_OUTCOMES: dict[str, Outcome] = {name: name for name in OUTCOME_REWARDS}

_PREFERENCES = (
    ("the person is content", 1.0),
    ("the person's last words say that it does not work", -1.0),
    ("the person interrupted it", -0.5),
)
"""What the sign of an outcome says about the person."""

_EFFICIENT_S, _SLOW_S = 300.0, 3_600.0
"""A task within five minutes has the full reward for efficiency, one of an hour none."""

_RETRY_COST, _AGENT_COST = 0.15, 0.05
"""Chosen by hand: six retries cost as much as an hour, a subagent a third of a retry."""


@dataclass(frozen=True, slots=True)
class TaskMetrics:
    """Time, agents and retries of one task, and its rewards; None while unknown."""

    task_id: str
    at: datetime
    duration_s: float
    agents: int = 1
    retries: int = 0
    outcome: Outcome = "unknown"
    preference: float | None = None
    task_type: str = ""
    agent: str = ""
    tokens: int = 0

    @property
    def outcome_reward(self) -> float | None:
        """Return the reward for the outcome."""
        return OUTCOME_REWARDS[self.outcome]

    @property
    def efficiency_reward(self) -> float:
        """Return from 0 to 1 how economical a task was in time, agents and retries."""
        slow = (self.duration_s - _EFFICIENT_S) / (_SLOW_S - _EFFICIENT_S)
        cost = min(1.0, max(0.0, slow))
        cost += _RETRY_COST * self.retries + _AGENT_COST * max(0, self.agents - 1)
        return round(max(0.0, 1.0 - cost), 3)


def measure_task(task: FinishedTask, *, agents: int = 1) -> TaskMetrics:
    """Return the metrics of a finished task."""
    retries = task.body.get("retries")
    tokens = task.body.get("tokens")
    return TaskMetrics(
        task.id,
        task.ended_at,
        max(0.0, (task.ended_at - task.started_at).total_seconds()),
        agents=agents,
        retries=retries if isinstance(retries, int) else 0,
        outcome=_OUTCOMES.get(task.outcome, "unknown"),
        preference=next((v for words, v in _PREFERENCES if words in task.reason), None),
        task_type=task.type,
        agent=task.agent,
        tokens=tokens if isinstance(tokens, int) else 0,
    )


def summarize(tasks: Sequence[TaskMetrics], *, now: datetime) -> MetricsSummary:
    """Return the rolling summary of the last seven days."""
    since = now - WINDOW
    recent = [task for task in tasks if since < task.at <= now]
    if not recent:
        return MetricsSummary(since, now)
    known = [task for task in recent if task.outcome != "unknown"]
    times = [task.duration_s for task in recent]
    return MetricsSummary(
        since=since,
        until=now,
        tasks=len(recent),
        outcomes=dict(Counter(task.outcome for task in recent)),
        success_rate=_mean([float(task.outcome == "success") for task in known]),
        mean_duration_s=round(fmean(times), 1),
        median_duration_s=round(median(times), 1),
        mean_agents=round(fmean(task.agents for task in recent), 2),
        mean_retries=round(fmean(task.retries for task in recent), 2),
        outcome_reward=_mean([r for task in recent if (r := task.outcome_reward) is not None]),
        efficiency_reward=_mean([task.efficiency_reward for task in recent]),
        preference_reward=_mean([t.preference for t in recent if t.preference is not None]),
        by_agent=dict(Counter(task.agent or "unknown" for task in recent)),
        by_type=dict(Counter(task.task_type or "unknown" for task in recent)),
    )


def group_by_day(tasks: Sequence[TaskMetrics]) -> dict[str, list[TaskMetrics]]:
    """Return metrics by the day on which their tasks ended."""
    days: dict[str, list[TaskMetrics]] = {}
    for task in tasks:
        days.setdefault(f"{task.at:%Y-%m-%d}", []).append(task)
    return days


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 3) if values else None
