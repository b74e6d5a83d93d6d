"""Preparing a request within its time, and watching its answer: memory may fail, requests may not.

Threads of their own, for one that waits for a locked store keeps nobody else from anything.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lore.gateway.boundary import Failure, attempt, log
from lore.gateway.exchanges import (
    Answer,
    Command,
    Incoming,
    Observer,
    Outcome,
    Prepared,
    Turning,
)
from lore.memory.passing import LATE, Passing

T = TypeVar("T")

WITHIN_S = 0.150
"""So long a request waits for memory (spec 06); then it goes out as it came."""

GOING_ON_SHARE = 1 / 3
"""What of that is left for a prompt of what is at hand: one of 1 MB takes half of it."""

ADMIT_S = 0.100
"""So long it may take to look whether there is money for what goes out without memory. The ledger
answers in a millisecond, or says by itself what this process knows of a store that is locked."""

COUNT_S = 5.0
"""So long what was admitted too late is waited for once its answer is over, to be counted."""

COMMAND_S = 5.0
"""So long a person waits for what they typed to Lore: the model is not asked in its place."""

_TELL_S = 60.0
"""The log has a line of that at most so often: a locked store makes all requests late."""

_THREADS = 4
"""As many as the server has for its own requests."""

_AT_ONCE_BYTES = 1_000_000
"""What is longer is looked at in a thread in any case (spec 06)."""

CLOSING_S = 0.5
"""The server has two seconds to stop, of which its requests take one."""

DEGRADED = "x-lore-degraded"


Asked = Future[Prepared | Failure | None]
"""A request that memory is thinking about."""


class Preparing:
    """Asks memory how a request is forwarded, and does without where it does not say in time."""

    def __init__(
        self,
        turning: Turning,
        within_s: float = WITHIN_S,
        passing: Passing | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        """Ask a turning; `at_once` in the event loop, if it never waits for anything."""
        self._turning = turning
        self._within_s = within_s
        self._at_once_bytes = _AT_ONCE_BYTES if at_once else -1
        self._passing = passing or Passing()
        self._told_at = -math.inf
        self._planning = ThreadPoolExecutor(_THREADS, "lore-turning")
        self._going_on = ThreadPoolExecutor(_THREADS, "lore-going-on")
        self._admitting = ThreadPoolExecutor(_THREADS, "lore-admitting")
        self._commanding = ThreadPoolExecutor(_THREADS, "lore-commanding")
        self._thinking = ThreadPoolExecutor(_THREADS, "lore-thinking")
        self._recording = ThreadPoolExecutor(1, "lore-recording")

    async def close(self) -> None:
        """Begin nothing more; what is to be recorded has a moment to end."""
        self._planning.shutdown(wait=False, cancel_futures=True)
        self._going_on.shutdown(wait=False, cancel_futures=True)
        self._admitting.shutdown(wait=False, cancel_futures=True)
        self._commanding.shutdown(wait=False, cancel_futures=True)
        self._thinking.shutdown(wait=False, cancel_futures=True)
        last = asyncio.wrap_future(self._recording.submit(lambda: None))
        await asyncio.wait((last,), timeout=CLOSING_S)
        self._recording.shutdown(wait=False, cancel_futures=True)

    async def prepare(self, incoming: Incoming) -> Prepared:
        """Return how a request is forwarded.

        What comes too late is given back, also where the client left meanwhile.
        """
        if len(incoming.raw) <= self._at_once_bytes:
            done = attempt("prepare", partial(self._turning.prepare, incoming))
            if isinstance(done, Prepared):
                return await self._used(done)
            return await self._go_without(incoming, done.kind)
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
                return await self._used(found)
            why = found.kind if found is not None else LATE
            command = await self._find_command(incoming)
            if command is not None:
                return await self._used(Prepared(command=command))
            held = await _result(asked[1], until)
            if isinstance(held, Prepared):
                used = asked[1]
                self._count(why)
                return replace(held, headers=(*held.headers, (DEGRADED, why)))
        finally:
            for one in asked:
                if one is not used:
                    self._let_go(one)
        return await self._go_without(incoming, why)

    async def _used(self, prepared: Prepared) -> Prepared:
        """Take what memory has prepared; what a person typed to Lore is done now."""
        self._passing.count()
        command = prepared.command
        return prepared if command is None else await self._carry_out(command)

    async def admit(self, incoming: Incoming) -> Prepared:
        """Let a request go out as it came, if there is money for it."""
        asked = _ask(self._admitting, "admit", partial(self._turning.admit, incoming))
        waits = False
        try:
            found = await _result(asked, time.monotonic() + ADMIT_S)
            waits = True
        finally:
            if not waits:
                self._let_go(asked)
        if found is None and not asked.done():
            return Prepared(observer=Arriving(asked))
        return found if isinstance(found, Prepared) else Prepared()

    async def _go_without(self, incoming: Incoming, why: str) -> Prepared:
        """Let a request go out without memory, and say so."""
        self._count(why)
        admitted = await self.admit(incoming)
        return replace(admitted, headers=(*admitted.headers, (DEGRADED, why)))

    def _count(self, why: str) -> None:
        """Count a request that goes without memory, and tell now and then how many did."""
        self._passing.count(why)
        now = time.monotonic()
        if now - self._told_at >= _TELL_S:
            self._told_at = now
            of = {"requests": self._passing.requests, "reasons": _reasons(self._passing)}
            log.warning("without memory", extra={"reason": why, **of})

    async def _find_command(self, incoming: Incoming) -> Command | None:
        """Look whether a person typed something to Lore where memory did not say so in time."""
        if not incoming.may_be_command:
            return None
        found = await self._commanded(partial(self._turning.find_command, incoming))
        return found if isinstance(found, Command) else None

    async def _carry_out(self, command: Command) -> Prepared:
        """Answer a person, in whatever way it went."""
        done = await self._commanded(command.carry_out)
        return Prepared(answer=done if isinstance(done, Answer) else command.excuse)

    async def _commanded(self, work: Callable[[], T]) -> T | Failure | None:
        """Return what comes of some work, or None if a person has waited long enough."""
        asked = self._commanding.submit(attempt, "command", work)
        waiting = asyncio.wrap_future(asked)
        done, _ = await asyncio.wait((waiting,), timeout=COMMAND_S)
        if not done:
            waiting.cancel()
        return waiting.result() if done else None

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
        return await loop.run_in_executor(self._thinking, partial(attempt, part, work))

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


def _reasons(passing: Passing) -> str:
    return ", ".join(f"{why} {n}" for why, n in sorted(passing.degraded().items()))


class Arriving:
    """Stands for an observer that is not there yet, and tells it all once the answer is over.

    A request that could not be admitted in time passes, and is counted nevertheless.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._seen: list[Callable[[Observer], None]] = []

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Keep the status of an answer."""
        self._seen.append(lambda observer: observer.begin(status, headers))

    def see(self, piece: bytes) -> None:
        """Keep a piece of the body."""
        self._seen.append(lambda observer: observer.see(piece))

    def end(self, outcome: Outcome) -> None:
        """Tell all that was kept."""
        found = self._asked.result(COUNT_S)
        if not isinstance(found, Prepared) or found.observer is None:
            return
        for tell in self._seen:
            tell(found.observer)
        found.observer.end(outcome)


def is_unread(prepared: Prepared) -> bool:
    """Tell whether nobody reads the answer, so that it may be encoded in any way."""
    observed = prepared.observer is not None and prepared.reads
    return not observed and prepared.splice is None
