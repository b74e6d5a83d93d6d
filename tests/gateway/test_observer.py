"""Who sees what upstream answers may come late, and is told all where it may take its time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lore.gateway.observer import MAX_QUICK_BYTES, DeferredObserver, PendingPlan, SafeObserver
from lore.gateway.plugin_protocol import Observer, Outcome, RequestPlan
from lore.gateway.request_planner import MAX_QUEUED_BYTES, RequestPlanner
from tests.gateway.test_request_planner import INCOMING, Admitting, Noting
from tests.waiting import PATIENCE_S, eventually


class Placed(Noting):
    """Notes also in which thread it was told."""

    def __init__(self, fails_at: str = "") -> None:
        super().__init__(fails_at)
        self.threads: list[str] = []

    def end(self, outcome: Outcome) -> None:
        self.threads.append(threading.current_thread().name)
        super().end(outcome)

    def settle(self, outcome: Outcome) -> None:
        self.threads.append(threading.current_thread().name)
        super().settle(outcome)


class Later:
    """Takes what is to be ended later, and leaves it."""

    def __init__(self) -> None:
        self.held: list[tuple[Observer, Outcome, int]] = []

    def __call__(self, observer: Observer, outcome: Outcome, held_bytes: int) -> None:
        self.held.append((observer, outcome, held_bytes))


def arriving(later: Later, admission: PendingPlan) -> DeferredObserver:
    late = DeferredObserver(admission, later, buffered_bytes=10)
    late.begin(200, {})
    late.see(b"all")
    return late


@pytest.mark.parametrize("is_there", [True, False])
def test_settle_replays_the_response_and_settles_only_the_cost(is_there: bool):
    noting, later, admission = Noting(), Later(), PendingPlan()
    if is_there:
        admission.set_result(RequestPlan(observer=noting))
    arriving(later, admission).settle("complete")
    if not is_there:
        admission.set_result(RequestPlan(observer=noting))
    assert (noting.settled, noting.outcomes, noting.body) == (["complete"], [], b"all")
    assert not later.held


def test_observer_is_ended_at_once_or_when_its_plan_arrives():
    noting, later, admission = Noting(), Later(), PendingPlan()
    late = arriving(later, admission)
    late.end("complete")
    admission.set_result(RequestPlan(observer=noting))
    assert (noting.outcomes, noting.body) == ([], b"all")
    assert later.held == [(noting, "complete", 13)]
    late.end("aborted")
    assert noting.outcomes == ["aborted"]
    assert len(later.held) == 1


@pytest.mark.parametrize(
    ("ends_quickly", "headers", "body", "is_ended_now"),
    [
        (True, {}, b"all", True),
        (False, {}, b"all", False),
        (True, {"content-encoding": "gzip"}, b"all", False),
        (True, {}, bytes(MAX_QUICK_BYTES), False),
    ],
)
def test_only_what_ends_quickly_is_ended_on_the_event_loop(
    ends_quickly: bool, headers: dict[str, str], body: bytes, is_ended_now: bool
):
    noting, later = Noting(), Later()
    safe = SafeObserver(noting, later, 10, ends_quickly=ends_quickly)
    safe.begin(200, headers)
    safe.see(body)
    safe.end("complete")
    assert noting.outcomes == (["complete"] if is_ended_now else [])
    assert len(later.held) == (not is_ended_now)


def test_failing_observer_is_still_ended():
    noting, later, admission = Noting(fails_at="begin"), Later(), PendingPlan()
    admission.set_result(RequestPlan(observer=noting))
    arriving(later, admission).end("failed")
    assert noting.outcomes == ["failed"]


def test_cancelled_plan_ends_no_observer():
    later, admission = Later(), PendingPlan()
    arriving(later, admission).end("complete")
    admission.cancel()
    assert not later.held


@pytest.mark.parametrize("is_full", [False, True], ids=["room", "no room"])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_late_plan_is_recorded_in_the_recording_thread_within_the_same_limit(
    is_full: bool, closed: bool
):
    noting, other = Placed(), Noting()
    plugin = Admitting(RequestPlan(observer=noting), limited=False)
    release = threading.Event()

    class Waiting(Noting):
        def end(self, outcome: Outcome) -> None:
            assert release.wait(PATIENCE_S)
            super().end(outcome)

    async def watch() -> None:
        planner = RequestPlanner(plugin, 0.0)
        late = planner.observe((await planner.plan(INCOMING)).observer)
        # what has not begun when the planner is closed never will
        assert await asyncio.to_thread(plugin.begun.wait, PATIENCE_S)
        late.begin(200, {})
        late.end("complete")
        planner.observe(other).end("complete")
        await asyncio.to_thread(eventually, lambda: other.outcomes)
        if is_full:
            planner.observe(Waiting(), MAX_QUEUED_BYTES).end("complete")
        if closed:
            await planner.close()
        plugin.release.set()
        await asyncio.to_thread(eventually, lambda: noting.threads)
        release.set()
        if not closed:
            await planner.close()

    asyncio.run(watch())
    if is_full or closed:
        assert (noting.outcomes, noting.settled) == ([], ["complete"])
    else:
        assert (noting.outcomes, noting.settled) == (["complete"], [])
        assert noting.threads[0].startswith("lore-recording")
