"""Attempts: the one place where the daemon outlives whatever goes wrong."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from lore.errors import BadReply, BudgetSpent, LoreError

T = TypeVar("T")

log = logging.getLogger("lore.daemon")


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: told to the owner, and without any contents to the log.

    What nobody is at fault for goes on at `until`; what is hopeless is not tried again.
    """

    told: str
    kind: str
    place: str
    until: datetime | None = None
    hopeless: bool = False


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
    until = error.until if isinstance(error, BudgetSpent) else None
    return Failure(told, kind, place, until, hopeless=isinstance(error, BadReply))
