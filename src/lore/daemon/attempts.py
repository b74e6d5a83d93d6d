"""Attempts: the one place where the daemon outlives whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from lore.errors import BadReply, BudgetSpent, place_of, told

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
    """Describe an error, without contents that it may quote."""
    until = error.until if isinstance(error, BudgetSpent) else None
    hopeless = isinstance(error, BadReply)
    return Failure(told(error), type(error).__name__, place_of(error), until, hopeless)
