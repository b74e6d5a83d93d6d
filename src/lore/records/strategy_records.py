"""Strategies and file layouts: figures with intervals, and what an import or export did."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from lore.lazy_dataclass import dataclass


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
    """What an import did: records by what became of them, files that are kept, and problems."""

    added: int = 0
    changed: int = 0
    skipped: int = 0
    forgotten: int = 0
    files: int = 0
    problems: tuple[LayoutProblem, ...] = ()
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class LayoutExport:
    """The folder that an export wrote, and its files by path below it."""

    folder: Path
    files: tuple[str, ...] = ()
