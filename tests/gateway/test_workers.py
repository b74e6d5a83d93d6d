"""Worker pools: stuck work of one kind delays no other kind, in a pool and in the planner."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial

import pytest

from lore.gateway.plugin_protocol import ClientRequest, Command, LocalResponse, RequestPlan
from lore.gateway.request_planner import RequestPlanner
from lore.gateway.workers import Failure, WorkerPool, Workers
from tests.gateway.gateway_server import HELLO
from tests.waiting import PATIENCE_S

MORE_THAN_THREADS = 12
TYPED = {**HELLO, "messages": [{"role": "user", "content": "/lore:status"}]}
DONE = LocalResponse(200, (), b"Done.")


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool("test", {"slow": 2, "quick": 1})
    yield pool
    pool.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_stuck_work_of_one_kind_leaves_the_threads_of_another(
    pool: WorkerPool, release: threading.Event
):
    stuck = [pool.submit("slow", lambda: release.wait(PATIENCE_S)) for _ in range(5)]
    assert pool.submit("quick", lambda: 7).result(PATIENCE_S) == 7
    assert not any(future.done() for future in stuck)
    release.set()
    assert [future.result(PATIENCE_S) for future in stuck] == [True] * 5


def test_work_of_a_kind_with_one_thread_runs_in_order(pool: WorkerPool):
    numbers: list[int] = []
    for number in range(50):
        last = pool.submit("quick", partial(numbers.append, number))
    last.result(PATIENCE_S)
    assert numbers == list(range(50))


def test_work_that_raises_results_in_a_failure(pool: WorkerPool):
    assert pool.submit("quick", lambda: 1 / 0).result(PATIENCE_S) == Failure("ZeroDivisionError")
    assert pool.submit("quick", lambda: 1).result(PATIENCE_S) == 1


def test_closed_pool_cancels_queued_work_and_finishes_running_work(
    pool: WorkerPool, release: threading.Event
):
    begun = threading.Event()

    def run() -> bool:
        begun.set()
        return release.wait(PATIENCE_S)

    running, queued = pool.submit("quick", run), pool.submit("quick", run)
    assert begun.wait(PATIENCE_S)
    pool.close()
    with pytest.raises(CancelledError):
        queued.result(PATIENCE_S)
    with pytest.raises(RuntimeError):
        pool.submit("quick", lambda: None)
    release.set()
    assert running.result(PATIENCE_S)


class StuckPlugin:
    """A plugin whose plans, and on demand the search for commands, wait for a locked store."""

    def __init__(self, release: threading.Event, *, is_search_stuck: bool = False) -> None:
        self.workers = Workers()
        self.begun = threading.Event()
        self._release = release
        self._is_search_stuck = is_search_stuck

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        del incoming
        self._release.wait(PATIENCE_S)
        return RequestPlan()

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        return RequestPlan(body=incoming.raw)

    def find_command(self, incoming: ClientRequest) -> Command | None:
        del incoming
        if self._is_search_stuck:
            self.begun.set()
            self._release.wait(PATIENCE_S)
        return Command(lambda: DONE, LocalResponse(503, (), b"Failed."))

    def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
        del incoming, until_s
        return RequestPlan(headers=(("x-checked", "yes"),))

    def may_wait(self) -> bool:
        return True

    def is_limited(self) -> bool:
        return True


def request_of(body: object) -> ClientRequest:
    raw = json.dumps(body).encode()
    return ClientRequest("anthropic", "/v1/messages", "", {}, raw, len(raw))


def test_cached_plans_commands_and_tool_loops_run_while_plans_are_stuck(release: threading.Event):
    async def serve() -> None:
        planner = RequestPlanner(StuckPlugin(release), 1.5, planning_share=0.001)
        hello, typed = request_of(HELLO), request_of(TYPED)
        late = await asyncio.gather(*(planner.plan(hello) for _ in range(MORE_THAN_THREADS)))
        assert [plan.body for plan in late] == [hello.raw] * MORE_THAN_THREADS
        answered = await asyncio.gather(*(planner.plan(typed) for _ in range(MORE_THAN_THREADS)))
        assert [plan.answer for plan in answered] == [DONE] * MORE_THAN_THREADS
        assert await planner.run_tool_loop(lambda: "found") == "found"
        release.set()
        await planner.close()

    asyncio.run(serve())


def test_budget_checks_run_while_the_search_for_commands_is_stuck(release: threading.Event):
    async def serve() -> None:
        plugin = StuckPlugin(release, is_search_stuck=True)
        planner = RequestPlanner(plugin, 0.05, planning_share=0.001)
        typed = request_of(TYPED)
        searching = [asyncio.create_task(planner.plan(typed)) for _ in range(MORE_THAN_THREADS)]
        assert await asyncio.to_thread(plugin.begun.wait, PATIENCE_S)
        for _ in range(MORE_THAN_THREADS):
            checked = await planner.passthrough(typed)
            assert checked.headers == (("x-checked", "yes"),)
        release.set()
        answered = await asyncio.gather(*searching)
        assert {plan.answer for plan in answered} <= {DONE, None}
        await planner.close()

    asyncio.run(serve())
