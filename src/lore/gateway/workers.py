"""Worker threads of the gateway, where memory work may fail or wait without breaking a request.

There are three pools:

- `planning` may wait for the store while a client waits: plans, commands, tool loops, searches.
- `accounting` never waits for the store: budget checks, the search for commands, settlements.
- `recording` may wait for the store, and nobody waits for it: turns in their order, distillation.

Within a pool each kind of work has its own limit of threads. Work that waits for a locked store
so delays only its own kind: stuck plans never hold up cached plans, commands or tool loops.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from lore import telemetry
from lore.errors import error_location

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


class WorkerPool:
    """Threads with a limit and a queue for each kind of work."""

    def __init__(self, name: str, limits: Mapping[str, int]) -> None:
        self._threads = ThreadPoolExecutor(sum(limits.values()), f"lore-{name}")
        self._free = dict(limits)
        self._queues: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {
            kind: deque() for kind in limits
        }
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, kind: str, work: Callable[[], T]) -> Future[T | Failure]:
        """Run some work in a thread, in the order of its kind; raise `RuntimeError` if closed."""
        future: Future[T | Failure] = Future()
        with self._lock:
            if self._is_closed:
                msg = "The pool is closed."
                raise RuntimeError(msg)
            self._queues[kind].append((future, telemetry.in_current_trace(work)))
            if self._free[kind]:
                self._free[kind] -= 1
                self._threads.submit(self._work_off, kind)
        return future

    def _work_off(self, kind: str) -> None:
        """Run the work of a kind until its queue is empty."""
        while True:
            with self._lock:
                if not self._queues[kind]:
                    self._free[kind] += 1
                    return
                future, work = self._queues[kind].popleft()
            if future.set_running_or_notify_cancel():
                future.set_result(attempt(kind, work))
            del future, work

    def close(self) -> None:
        """Start no more work."""
        with self._lock:
            self._is_closed = True
            waiting = [future for queue in self._queues.values() for future, _ in queue]
            for queue in self._queues.values():
                queue.clear()
        for future in waiting:
            future.cancel()
            future.set_running_or_notify_cancel()
        self._threads.shutdown(wait=False)


class Workers:
    """The worker threads of a gateway, by what they may wait for."""

    def __init__(self) -> None:
        self.planning = WorkerPool(
            "planning", {"plan": 4, "cached plan": 4, "command": 8, "tool loop": 8, "search": 4}
        )
        self.accounting = WorkerPool(
            "accounting", {"budget": 8, "command search": 4, "settlement": 1}
        )
        self.recording = WorkerPool("recording", {"turn": 1, "distillation": 1})

    async def finish(self, within_s: float) -> None:
        """Give settlements and recorded turns some time to end, and start no more work."""
        self.planning.close()
        last = (
            self.accounting.submit("settlement", lambda: None),
            self.recording.submit("turn", lambda: None),
        )
        await asyncio.wait([asyncio.wrap_future(one) for one in last], timeout=within_s)
        self.close()

    def close(self) -> None:
        """Start no more work."""
        for pool in (self.planning, self.accounting, self.recording):
            pool.close()
