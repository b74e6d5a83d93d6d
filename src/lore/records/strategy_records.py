"""Strategies and file layouts: figures with intervals, and what an import or export did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from lore.lazy_dataclass import dataclass
from lore.records.task_records import TaskType


class Interval(NamedTuple):
    """A figure with its 95 % interval, and of how many observations it is."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """The figures of one profile; None where nothing is known."""

    profile: str
    share: float
    sessions: int
    retrievals: int
    completion: Interval | None
    latency_ms: Interval | None
    tokens: Interval | None
    satisfaction: Interval | None
    used: Interval | None


class LayoutProblem(NamedTuple):
    """A file, or an entry of one, that is kept without being understood, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class LayoutImport:
    """What an import did: records by what became of them, files that are kept, and problems.

    `refused` counts changes and links of what is more trusted here than the import. `left_out` are
    files that are not kept, and why.
    """

    added: int = 0
    changed: int = 0
    skipped: int = 0
    forgotten: int = 0
    refused: int = 0
    files: int = 0
    problems: tuple[LayoutProblem, ...] = ()
    left_out: tuple[LayoutProblem, ...] = ()
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class LayoutExport:
    """The folder that an export wrote, and its files by path below it."""

    folder: Path
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TuningCandidate:
    """A memory that could be given to a task: what its rank is made of, and what it would bring.

    `gains` has for each number of tokens to which a memory may be cut what was used of it.
    """

    id: str
    collection: str
    is_episode: bool
    words: float
    meaning: float
    quality: float
    text: str
    tokens: int
    gains: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TuningCase:
    """A task of the past with its candidates; cases are ordered by time."""

    at: datetime
    task_type: TaskType
    candidates: tuple[TuningCandidate, ...]
    latency_ms: float = 0.0
    source: str = "log"


@dataclass(frozen=True, slots=True)
class TuningFigures:
    """The fitness of a profile on some cases, and what it is made of."""

    fitness: float
    score: float
    efficiency: float
    latency: float
    cases: int


@dataclass(frozen=True, slots=True)
class TuningResult:
    """What a search found: the profile that was used, the best one, and both on unseen cases."""

    name: str
    profile: Mapping[str, Any]
    tried: int
    before: TuningFigures
    after: TuningFigures
    before_held_out: TuningFigures
    after_held_out: TuningFigures
    gain: Interval
    sources: Mapping[str, int] = field(default_factory=dict)
