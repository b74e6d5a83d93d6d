"""Questions: what memory is asked in a thread, used once where it is told in time, or given back.

Threads of their own, for one that waits for a locked store keeps nobody else from anything.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar

from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Observer, Prepared

T = TypeVar("T")

GiveBack = Callable[[Observer], None]


class Question(Generic[T]):
    """Something that memory is asked; what comes of it after the block ends is given back."""

    def __init__(
        self, pool: ThreadPoolExecutor, part: str, work: Callable[[], T], give_back: GiveBack
    ) -> None:
        self._asked = pool.submit(attempt, part, work)
        self._give_back = give_back
        self._used = False

    def __enter__(self) -> Self:
        """Ask no more than within a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        """Wait for it no longer, and if it was not begun yet, it never is."""
        if not self._used:
            self._asked.add_done_callback(partial(_returned, self._give_back))
            self._asked.cancel()

    async def answer(self, until_s: float = math.inf) -> T | Failure | None:
        """Return what comes of it until a moment of the monotonic clock, else None.

        What is returned is used, and no longer given back.
        """
        asked, found = self._asked, None
        if not asked.done():
            left_s = None if until_s == math.inf else max(0.0, until_s - time.monotonic())
            await asyncio.wait((asyncio.wrap_future(asked),), timeout=left_s)
        if asked.done() and not asked.cancelled():
            found = asked.result()
            self._used = True
        return found

    def hand_over(self) -> Future[T | Failure]:
        """Return what is still to come to someone else who sees to it."""
        self._used = True
        return self._asked


def _returned(give_back: GiveBack, asked: Future[object]) -> None:
    found = None if asked.cancelled() else asked.result()
    if isinstance(found, Prepared) and found.observer is not None:
        give_back(found.observer)
