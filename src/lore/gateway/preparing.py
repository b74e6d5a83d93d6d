"""Preparing a request within its time, and watching its answer: memory may fail, requests may not.

Only money is waited for: a budget that is set holds, whatever memory does.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
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
from lore.gateway.glancing import may_be_command
from lore.gateway.questions import Question
from lore.gateway.refusals import refusal
from lore.gateway.watching import Arriving, Watched
from lore.memory.passing import LATE, Passing

T = TypeVar("T")

WITHIN_S = 0.150
"""So long a request waits for memory in all (spec 06); then it goes out as it came."""

PLANNING_SHARE = 0.6
"""What of that memory has for itself; then a prompt is also made of what is at hand. One of 1 MB
takes 25 ms."""

ADMITTING_SHARE = 1 / 6
"""What of it is left at the end to look whether there is money for what goes out as it came. The
ledger answers in a millisecond, or says by itself what this process knows of a store that is
locked."""

COMMAND_S = 5.0
"""So long a person waits for what they typed to Lore: the model is not asked in its place."""

_TELL_S = 60.0
"""The log has a line of that at most so often: a locked store makes all requests late."""

_AT_ONCE_BYTES = 1_000_000
"""What is longer is looked at in a thread in any case (spec 06)."""

_THREADS = {
    "turning": 4,
    "going-on": 4,
    "admitting": 4,
    "glancing": 4,
    "finding": 4,
    "commanding": 4,
    "thinking": 4,
    "settling": 1,
}
"""As many of most as the server has for its own requests. Those that look at money or for commands
never wait for the store."""

MOST_WAITING_BYTES = 64_000_000
"""Of requests with their answers that wait to be recorded: a store that is locked takes none. Of
more only the cost is entered; what was said comes again with the session's next request."""

CLOSING_S = 0.5
"""The server has two seconds to stop, of which its requests take one."""

DEGRADED = "x-lore-degraded"

_UNSURE = "Lore: whether there is money for this request could not be told. See 'lore doctor'."


class Preparing:
    """Asks memory how a request is forwarded, and does without where it does not say in time."""

    def __init__(
        self,
        turning: Turning,
        within_s: float = WITHIN_S,
        passing: Passing | None = None,
        *,
        planning_share: float = PLANNING_SHARE,
    ) -> None:
        self._turning = turning
        self._planning_s = planning_share * within_s
        self._within_s = within_s
        self._passing = passing or Passing()
        self._told_at = {"without memory": -math.inf, "not recorded": -math.inf}
        self._pools = {
            name: ThreadPoolExecutor(count, f"lore-{name}") for name, count in _THREADS.items()
        }
        self._recording = ThreadPoolExecutor(1, "lore-recording")
        self._waiting_bytes = 0
        self._lock = threading.Lock()

    async def close(self) -> None:
        """Begin nothing more; what is to be recorded has a moment to end."""
        for name, pool in self._pools.items():
            if name != "settling":
                pool.shutdown(wait=False, cancel_futures=True)
        ending = (self._recording, self._pools["settling"])
        last = [asyncio.wrap_future(pool.submit(lambda: None)) for pool in ending]
        await asyncio.wait(last, timeout=CLOSING_S)
        for pool in ending:
            pool.shutdown(wait=False, cancel_futures=True)

    async def prepare(self, incoming: Incoming) -> Prepared:
        """Return how a request is forwarded.

        What comes too late is given back, also where the client left meanwhile.
        """
        begun = time.monotonic()
        until = begun + self._within_s
        if len(incoming.raw) <= _AT_ONCE_BYTES and not self._turning.may_wait():
            # In this thread, for two changes of threads would cost the most.
            done = attempt("admit", partial(self._turning.admit, incoming, begun))
            if isinstance(done, Prepared):
                return await self._used(done)
            return await self._bare(incoming, done.kind, until)
        with self._ask("turning", partial(self._turning.prepare, incoming)) as planned:
            found = await planned.answer(begun + self._planning_s)
            if isinstance(found, Prepared):
                return await self._used(found)
            admit_at = until - ADMITTING_SHARE * self._within_s
            held = await self._held(incoming, planned, found, admit_at)
        return held if isinstance(held, Prepared) else await self._bare(incoming, held, until)

    async def _held(
        self,
        incoming: Incoming,
        planned: Question[Prepared],
        failed: Failure | None,
        until: float,
    ) -> Prepared | str:
        """Return how a request is forwarded with what is at hand, or why it goes without."""
        with self._ask("going-on", partial(self._turning.go_on, incoming)) as held:
            # What did not fail may still come.
            found = failed or await planned.answer(until)
            if isinstance(found, Prepared):
                return await self._used(found)
            why = LATE if found is None else found.kind
            command = await self._find_command(incoming, until)
            if command is not None:
                return await self._used(Prepared(command=command))
            going = await held.answer(until)
        if not isinstance(going, Prepared):
            return why
        self._count(why)
        return _degraded(going, why)

    async def _used(self, prepared: Prepared) -> Prepared:
        """Take what memory has prepared; what a person typed to Lore is done now."""
        self._passing.count()
        command = prepared.command
        return prepared if command is None else await self._carry_out(command)

    async def admit(self, incoming: Incoming) -> Prepared:
        """Let a request go out as it came, if there is money for it."""
        return await self._admitted(incoming, time.monotonic() + self._within_s)

    async def _bare(self, incoming: Incoming, why: str, until: float) -> Prepared:
        """Let a request go out without memory, and say so."""
        self._count(why)
        return _degraded(await self._admitted(incoming, until), why)

    async def _admitted(self, incoming: Incoming, until: float) -> Prepared:
        """Look whether there is money; where a day has a budget, for as long as it takes."""
        with self._ask("admitting", partial(self._turning.admit, incoming, until)) as asked:
            found = await asked.answer(until)
            if found is None and self._turning.is_limited():
                found = await asked.answer()
            if found is None:
                late = Arriving(asked.hand_over(), self._end, len(incoming.raw))
                return Prepared(observer=late)
        if isinstance(found, Prepared):
            return found
        if not self._turning.is_limited():
            return Prepared()
        return Prepared(answer=refusal(incoming.provider, 503, _UNSURE))

    def _ask(self, pool: str, work: Callable[[], T]) -> Question[T]:
        return Question(self._pools[pool], pool, work, self._give_back)

    def _give_back(self, observer: Observer) -> None:
        """Tell an observer that it is not used."""
        self._settle(observer, "unused")

    def _count(self, why: str) -> None:
        """Count a request that goes without memory, and tell now and then how many did."""
        self._passing.count(why)
        of = {"requests": self._passing.requests, "reasons": _reasons(self._passing)}
        self._tell("without memory", {"reason": why, **of})

    def _tell(self, event: str, fields: dict[str, object]) -> None:
        now = time.monotonic()
        if now - self._told_at[event] >= _TELL_S:
            self._told_at[event] = now
            log.warning(event, extra=fields)

    async def _find_command(self, incoming: Incoming, until: float) -> Command | None:
        """Look whether a person typed something to Lore where memory did not say so in time."""
        if len(incoming.raw) <= _AT_ONCE_BYTES and not incoming.encoding:
            seen = attempt("command", partial(may_be_command, incoming))
        else:
            with self._ask("glancing", partial(may_be_command, incoming)) as glanced:
                seen = await glanced.answer(until) or False
        if seen is not True:
            return None
        work = partial(self._turning.find_command, incoming)
        found = await self._within_patience("finding", work)
        return found if isinstance(found, Command) else None

    async def _carry_out(self, command: Command) -> Prepared:
        """Answer a person, in whatever way it went."""
        done = await self._within_patience("commanding", command.carry_out)
        return Prepared(answer=done if isinstance(done, Answer) else command.excuse)

    async def _within_patience(self, pool: str, work: Callable[[], T]) -> T | Failure | None:
        """Return what comes of some work, or None if a person has waited long enough."""
        with self._ask(pool, work) as asked:
            return await asked.answer(time.monotonic() + COMMAND_S)

    def watch(self, observer: Observer | None, held_bytes: int = 0) -> Watched:
        """Return an observer that can fail without harm, and holds so much already."""
        return Watched(observer, self._end, held_bytes)

    async def think(self, part: str, work: Callable[[], T]) -> T | Failure:
        """Do in a worker thread what a relay needs before it goes on."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pools["thinking"], partial(attempt, part, work))

    def _end(self, observer: Observer, outcome: Outcome, held_bytes: int) -> None:
        """Have all recorded in order; where too much waits for that, only the money."""
        with self._lock:
            fits = self._waiting_bytes + held_bytes <= MOST_WAITING_BYTES or not self._waiting_bytes
            self._waiting_bytes += held_bytes if fits else 0
        if not fits:
            self._tell("not recorded", {"waiting_bytes": self._waiting_bytes})
            self._settle(observer, outcome)
            return
        try:
            ended = self._recording.submit(attempt, "record", partial(observer.end, outcome))
        except RuntimeError:  # It is closed: of what comes so late, only the money is entered.
            self._recorded(held_bytes)
            self._settle(observer, outcome)
        else:
            ended.add_done_callback(partial(self._recorded, held_bytes))

    def _recorded(self, held_bytes: int, _ended: Future[Failure | None] | None = None) -> None:
        with self._lock:
            self._waiting_bytes -= held_bytes

    def _settle(self, observer: Observer, outcome: Outcome) -> None:
        work = partial(attempt, "settle", partial(observer.settle, outcome))
        try:
            self._pools["settling"].submit(work)
        except RuntimeError:  # It is closed: what comes so late is done by whoever brings it.
            work()


def _degraded(prepared: Prepared, why: str) -> Prepared:
    return replace(prepared, headers=(*prepared.headers, (DEGRADED, why)))


def _reasons(passing: Passing) -> str:
    return ", ".join(f"{why} {n}" for why, n in sorted(passing.degraded().items()))


def is_unread(prepared: Prepared) -> bool:
    """Tell whether nobody reads the answer, so that it may be encoded in any way."""
    observed = prepared.observer is not None and prepared.reads
    return not observed and prepared.relay is None
