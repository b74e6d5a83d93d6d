"""Failure isolation: runs memory work so that errors and delays never break a request.

Work with a deadline runs in thread pools, so that a thread that waits for a locked store delays
nobody else.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar

from lore.errors import error_location
from lore.gateway.plugin_protocol import Observer, RequestPlan

T = TypeVar("T")

log = logging.getLogger("lore.gateway")


@dataclass(frozen=True, slots=True)
class Failure:
    """The type of an error, without any contents."""

    kind: str


def attempt(part: str, work: Callable[[], T]) -> T | Failure:
    """Run a part of the memory work and return its result, or the failure."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the gateway's recording side: requests go on
        kind = type(error).__name__
        log.warning(
            "memory failed", extra={"part": part, "error": kind, "place": error_location(error)}
        )
        return Failure(kind)


ReleaseObserver = Callable[[Observer], None]


class DeadlineTask(Generic[T]):
    """Work in a thread with a deadline; a plan that comes after the block ends is released."""

    def __init__(
        self, pool: ThreadPoolExecutor, part: str, work: Callable[[], T], release: ReleaseObserver
    ) -> None:
        self._future = pool.submit(attempt, part, work)
        self._release = release
        self._is_used = False

    def __enter__(self) -> Self:
        """Return the task."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        """Cancel the work if it has not begun, and release its result otherwise."""
        if not self._is_used:
            self._future.add_done_callback(partial(_release_result, self._release))
            self._future.cancel()

    async def wait(self, until_s: float = math.inf) -> T | Failure | None:
        """Return the result until a moment of the monotonic clock, or None.

        A result that is returned is used, and not released any more.
        """
        future, result = self._future, None
        if not future.done():
            left_s = None if until_s == math.inf else max(0.0, until_s - time.monotonic())
            await asyncio.wait((asyncio.wrap_future(future),), timeout=left_s)
        if future.done() and not future.cancelled():
            result = future.result()
            self._is_used = True
        return result

    def detach(self) -> Future[T | Failure]:
        """Return the future to a caller that takes over its result."""
        self._is_used = True
        return self._future


def _release_result(release: ReleaseObserver, future: Future[object]) -> None:
    result = None if future.cancelled() else future.result()
    if isinstance(result, RequestPlan) and result.observer is not None:
        release(result.observer)
