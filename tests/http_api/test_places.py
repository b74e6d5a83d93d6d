"""Places of threads: a caller that leaves does not free the place of a thread that still runs."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest
from anyio import CapacityLimiter

from lore.http.request_limits import MemoryThreads, run_in_places
from tests.waiting import eventually


class Work:
    """Work that runs until it is released."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self.at_once = self.most = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        self.begun.set()
        self.released.wait(60)
        with self._lock:
            self.at_once -= 1
        return "done"


async def wait_for(condition) -> None:
    await asyncio.to_thread(eventually, condition)


async def cancel(task: asyncio.Task[str]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancelled_call_has_its_place_until_its_thread_ends():
    async def scenario() -> None:
        limiter, work = CapacityLimiter(1), Work()
        first = asyncio.create_task(run_in_places(work, limiter))
        await wait_for(work.begun.is_set)
        await cancel(first)
        assert limiter.borrowed_tokens == 1
        second = asyncio.create_task(run_in_places(lambda: "second", limiter))
        await asyncio.sleep(0)
        assert not second.done()
        work.released.set()
        assert await second == "second"
        await wait_for(lambda: limiter.borrowed_tokens == 0)

    asyncio.run(scenario())


def test_callers_who_leave_never_have_more_threads_than_there_are_places():
    async def scenario() -> None:
        threads, work = MemoryThreads(CapacityLimiter(2)), Work()
        for _ in range(20):
            task = asyncio.create_task(threads.run(work))
            await asyncio.sleep(0.01)
            await cancel(task)
        assert work.most <= 2
        work.released.set()
        assert await threads.run(partial(str, "free again")) == "free again"

    asyncio.run(scenario())


def test_an_error_frees_the_place():
    async def scenario() -> None:
        limiter = CapacityLimiter(1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await run_in_places(lambda: 1 // 0, limiter)
        assert limiter.borrowed_tokens == 0

    asyncio.run(scenario())


def test_a_call_that_is_cancelled_while_it_waits_takes_no_place():
    async def scenario() -> None:
        first, last, work = CapacityLimiter(2), CapacityLimiter(1), Work()
        running = asyncio.create_task(run_in_places(work, first, last))
        await wait_for(work.begun.is_set)
        waiting = asyncio.create_task(run_in_places(work, first, last))
        await asyncio.sleep(0)
        await cancel(waiting)
        assert (first.borrowed_tokens, last.borrowed_tokens) == (1, 1)
        work.released.set()
        assert await running == "done"
        assert (first.borrowed_tokens, last.borrowed_tokens) == (0, 0)

    asyncio.run(scenario())
