"""Preparing a request within its time, and watching its answer: memory may fail, requests may not.

Threads of their own, for one that waits for a locked store keeps nobody else from anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Incoming, Observer, Outcome, Prepared, Turning

T = TypeVar("T")

WITHIN_S = 0.150
"""So long a request waits for memory (spec 06); then it goes out as it came."""

GOING_ON_SHARE = 1 / 3
"""What of that is left for a prompt of what is at hand: one of 1 MB takes half of it."""

_THREADS = 4
"""As many as the server has for its own requests."""

CLOSING_S = 0.5
"""The server has two seconds to stop, of which its requests take one."""

DEGRADED = "x-lore-degraded"


Asked = Future[Prepared | Failure | None]
"""A request that memory is thinking about."""


class Preparing:
    """Asks memory how a request is forwarded, and does without where it does not say in time."""

    def __init__(self, turning: Turning, within_s: float = WITHIN_S) -> None:
        self._turning = turning
        self._within_s = within_s
        self._planning = ThreadPoolExecutor(_THREADS, "lore-turning")
        self._going_on = ThreadPoolExecutor(_THREADS, "lore-going-on")
        self._admitting = ThreadPoolExecutor(_THREADS, "lore-admitting")
        self._recording = ThreadPoolExecutor(1, "lore-recording")

    async def close(self) -> None:
        """Begin nothing more; what is to be recorded has a moment to end."""
        self._planning.shutdown(wait=False, cancel_futures=True)
        self._going_on.shutdown(wait=False, cancel_futures=True)
        self._admitting.shutdown(wait=False, cancel_futures=True)
        last = asyncio.wrap_future(self._recording.submit(lambda: None))
        await asyncio.wait((last,), timeout=CLOSING_S)
        self._recording.shutdown(wait=False, cancel_futures=True)

    async def prepare(self, incoming: Incoming) -> Prepared:
        """Return how a request is forwarded.

        What comes too late is given back, also where the client left meanwhile.
        """
        until = time.monotonic() + self._within_s
        asked = [_ask(self._planning, "prepare", partial(self._turning.prepare, incoming))]
        used: Asked | None = None
        try:
            found = await _result(asked[0], until - GOING_ON_SHARE * self._within_s)
            if not isinstance(found, Prepared):
                asked.append(_ask(self._going_on, "go on", partial(self._turning.go_on, incoming)))
                # What did not fail may still come.
                found = found or await _result(asked[0], until)
            if isinstance(found, Prepared):
                used = asked[0]
                return found
            why = found.kind if found is not None else "late"
            held = await _result(asked[1], until)
            if isinstance(held, Prepared):
                used = asked[1]
                return replace(held, headers=(*held.headers, (DEGRADED, why)))
        finally:
            for one in asked:
                if one is not used:
                    self._let_go(one)
        return await self._admit(incoming, why)

    async def _admit(self, incoming: Incoming, why: str) -> Prepared:
        """Let a request go out without memory, if there is money for it."""
        asked = _ask(self._admitting, "admit", partial(self._turning.admit, incoming))
        is_used = False
        try:
            found = await _result(asked)
            is_used = True
        finally:
            if not is_used:
                self._let_go(asked)
        admitted = found if isinstance(found, Prepared) else Prepared()
        return replace(admitted, headers=(*admitted.headers, (DEGRADED, why)))

    def _let_go(self, asked: Asked) -> None:
        """Wait for a request no longer: if it was not begun yet, it never is."""
        asked.add_done_callback(self._give_back)
        asked.cancel()

    def _give_back(self, asked: Asked) -> None:
        """Tell an observer that it is not used."""
        found = None if asked.cancelled() else asked.result()
        if isinstance(found, Prepared) and found.observer is not None:
            attempt("record", partial(found.observer.end, "unused"))

    def watch(self, observer: Observer | None) -> Watched:
        """Return an observer that can fail without harm."""
        return Watched(observer, self._later)

    async def think(self, part: str, work: Callable[[], T]) -> T | Failure:
        """Do in a worker thread what a splice needs before it goes on."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._planning, partial(attempt, part, work))

    def _later(self, work: Callable[[], None]) -> None:
        self._recording.submit(attempt, "record", work)


def _ask(pool: ThreadPoolExecutor, part: str, work: Callable[[], Prepared | None]) -> Asked:
    return pool.submit(attempt, part, work)


async def _result(asked: Asked, until_s: float | None = None) -> Prepared | Failure | None:
    """Return what comes of a request until a moment of the monotonic clock, or None."""
    waiting = asyncio.wrap_future(asked)
    left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
    done, _ = await asyncio.wait((waiting,), timeout=left_s)
    return waiting.result() if done else None


class Watched:
    """An observer that is asked nothing more once it has failed; `end` is told in any case."""

    def __init__(
        self, observer: Observer | None, later: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        self._observer = observer
        self._later = later
        self._sound = observer is not None
        self._over = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Pass on the status of an answer."""
        if self._sound and self._observer is not None:
            self._try(partial(self._observer.begin, status, headers))

    def see(self, piece: bytes) -> None:
        """Pass on a piece of the body."""
        if self._sound and self._observer is not None:
            self._try(partial(self._observer.see, piece))

    def end(self, outcome: Outcome) -> None:
        """Pass on how the answer ended, once and off the path."""
        if self._over or self._observer is None or self._later is None:
            return
        self._over = True
        self._later(partial(self._observer.end, outcome))

    def _try(self, work: Callable[[], None]) -> None:
        self._sound = not isinstance(attempt("record", work), Failure)


def is_unread(prepared: Prepared) -> bool:
    """Tell whether nobody reads the answer, so that it may be encoded in any way."""
    return prepared.observer is None and prepared.splice is None
