"""Attempts: the one place where the daemon outlives whatever goes wrong."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lore.errors import LoreError

T = TypeVar("T")

log = logging.getLogger("lore.daemon")


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: told to the owner, and without any contents to the log."""

    told: str
    kind: str
    place: str


def attempt(work: Callable[[], T]) -> T | Failure:
    """Do some work and return its result, or what went wrong."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the daemon's tick: one failure stops nothing else
        return describe(error)


def describe(error: Exception) -> Failure:
    """Describe an error; only Lore's own messages are known to quote no contents."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    kind = type(error).__name__
    told = str(error) if isinstance(error, LoreError) else f"{kind} in {place}"
    if isinstance(error, LoreError) and error.hint:
        told = f"{told} {error.hint}"
    return Failure(told, kind, place)
