"""The boundary: whatever goes wrong in memory ends here, and the request goes on without it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lore.errors import place_of

T = TypeVar("T")

log = logging.getLogger("lore.gateway")


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, without any contents."""

    kind: str


def attempt(part: str, work: Callable[[], T]) -> T | Failure:
    """Do a part of what memory does and return its result, or what went wrong."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the gateway's recording side: requests go on
        kind = type(error).__name__
        log.warning("memory failed", extra={"part": part, "error": kind, "place": place_of(error)})
        return Failure(kind)
