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

CLOSING_S = 0.5
"""The server has two seconds to stop, of which its requests take one."""

DEGRADED = "x-lore-degraded"


class Preparing:
    """Asks memory how a request is forwarded, and does without where it does not say in time."""

    def __init__(
        self, turning: Turning, within_s: float = WITHIN_S, passing: Passing | None = None
    ) -> None:
        self._turning = turning
        self._within_s = within_s
        self._passing = passing or Passing()
        self._told_at = -math.inf
        self._planning = ThreadPoolExecutor(_THREADS, "lore-turning")
        self._admitting = ThreadPoolExecutor(_THREADS, "lore-admitting")
        self._commanding = ThreadPoolExecutor(_THREADS, "lore-commanding")
        self._thinking = ThreadPoolExecutor(_THREADS, "lore-thinking")
        self._recording = ThreadPoolExecutor(1, "lore-recording")

    async def close(self) -> None:
        """Begin nothing more; what is to be recorded has a moment to end."""
        self._planning.shutdown(wait=False, cancel_futures=True)
        self._admitting.shutdown(wait=False, cancel_futures=True)
        self._commanding.shutdown(wait=False, cancel_futures=True)
        self._thinking.shutdown(wait=False, cancel_futures=True)
        last = asyncio.wrap_future(self._recording.submit(lambda: None))
        await asyncio.wait((last,), timeout=CLOSING_S)
        self._recording.shutdown(wait=False, cancel_futures=True)

    async def prepare(self, incoming: Incoming) -> Prepared:
        """Return how a request is forwarded."""
        work = partial(attempt, "prepare", partial(self._turning.prepare, incoming))
        found = await self._awaited(self._planning.submit(work), self._within_s)
        if isinstance(found, Prepared):
            self._passing.count()
            return found if found.command is None else await self._carry_out(found.command)
        command = await self._find_command(incoming)
        if command is not None:
            self._passing.count()
            return await self._carry_out(command)
        why = LATE if found is None else found.kind
        self._count(why)
        return await self._admit(incoming, why)

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

    async def _admit(self, incoming: Incoming, why: str) -> Prepared:
        """Let a request go out without memory, if there is money for it."""
        work = partial(attempt, "admit", partial(self._turning.admit, incoming))
        asked = self._admitting.submit(work)
        found = await self._awaited(asked, ADMIT_S, keeps=True)
        if found is None:
            found = Prepared(observer=Arriving(asked))
        admitted = found if isinstance(found, Prepared) else Prepared()
        return replace(admitted, headers=(*admitted.headers, (DEGRADED, why)))

    async def _awaited(
        self, asked: Future[Prepared | Failure], within_s: float, *, keeps: bool = False
    ) -> Prepared | Failure | None:
        """Return what comes of some work, or None if it is late.

        What nobody waits for any more is given back, also where the client left meanwhile; what
        is late may be kept for later.
        """
        waiting, done = asyncio.wrap_future(asked), set[asyncio.Future[Prepared | Failure]]()
        left = True
        try:
            done, _ = await asyncio.wait((waiting,), timeout=within_s)
            left = False
        finally:
            if left or not (done or keeps):
                asked.add_done_callback(self._give_back)
                waiting.cancel()
        return waiting.result() if done else None

    def _give_back(self, asked: Future[Prepared | Failure]) -> None:
        """Tell an observer that came too late that it is not used."""
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

    def __init__(self, asked: Future[Prepared | Failure]) -> None:
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
        if isinstance(found, Failure) or found.observer is None:
            return
        for tell in self._seen:
            tell(found.observer)
        found.observer.end(outcome)


def is_unread(prepared: Prepared) -> bool:
    """Tell whether nobody reads the answer, so that it may be encoded in any way."""
    return prepared.observer is None and prepared.splice is None
