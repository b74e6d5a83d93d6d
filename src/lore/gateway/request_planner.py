"""Plans requests within a deadline, and observes their responses."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Generic, Self, TypeVar

from lore import clock
from lore.gateway.observer import DeferredObserver, SafeObserver
from lore.gateway.plugin_protocol import (
    ClientRequest,
    Command,
    LocalResponse,
    Observer,
    Outcome,
    RequestPlan,
    RequestPlugin,
    error_response,
)
from lore.gateway.request_head import may_be_command
from lore.gateway.workers import Failure, attempt, log
from lore.records.gateway import LATE, GatewayStats

T = TypeVar("T")

REQUEST_DEADLINE_S = 0.150
"""Deadline of memory for one request (spec 06); then it is passed through."""

PLANNING_SHARE = 0.6
"""Share of the deadline for a fresh plan. Once it is used up, a plan is also made from the cached
state of the session; a prompt of 1 MB takes 25 ms."""

PASSTHROUGH_SHARE = 1 / 6
"""Share of the deadline at its end for checking the budget of a request that is passed through. The
ledger answers in a millisecond, also while the store is locked."""

COMMAND_TIMEOUT_S = 5.0
"""How long a person waits for a command to Lore; the model is never asked instead."""

_LOG_INTERVAL_S = 60.0
"""Minimum time between equal warnings in the log: a locked store makes all requests late."""

_INLINE_BYTES = 1_000_000
"""Longer requests are looked at in a thread in any case (spec 06)."""

MAX_QUEUED_BYTES = 64_000_000
"""Limit of requests and responses that wait to be recorded while the store is locked. Of others
only the cost is recorded; what was said comes again with the session's next request."""

_EXTEND_INTERVAL_S = 10.0
"""How long no deadline is extended after an extension did not help."""

CLOSE_TIMEOUT_S = 0.5
"""The server has two seconds to stop, of which its requests take one."""

RELAY_HEADER = "x-lore-relay"
"""Marks requests of agents that reach their model without the gateway too."""

DEGRADED_HEADER = "x-lore-degraded"

_BUDGET_UNKNOWN = "Lore: the budget could not be checked for this request. See 'lore doctor'."


class DeadlineTask(Generic[T]):
    """Work in a thread with a deadline; a plan that comes after the block ends is released."""

    def __init__(self, future: Future[T | Failure], release: Callable[[Observer], None]) -> None:
        self._future = future
        self._release = release
        self._is_used = False

    def __enter__(self) -> Self:
        """Return the task."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Cancel the work if it has not begun, and release its result otherwise."""
        if not self._is_used:
            self._future.add_done_callback(self._release_plan)
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

    def _release_plan(self, future: Future[T | Failure]) -> None:
        result = None if future.cancelled() else future.result()
        if isinstance(result, RequestPlan) and result.observer is not None:
            self._release(result.observer)


class RequestPlanner:
    """Plans requests within a deadline, and observes their responses.

    A request has one of three outcomes: a fresh plan, a plan from the cached state of its session
    when the deadline passed, or a pass-through. Memory may fail, requests may not. Only the budget
    is waited for: a limit that is set holds, whatever memory does.
    """

    def __init__(
        self,
        plugin: RequestPlugin,
        within_s: float = REQUEST_DEADLINE_S,
        stats: GatewayStats | None = None,
        *,
        planning_share: float = PLANNING_SHARE,
        first_within_s: float = 0.0,
    ) -> None:
        """Plan within a deadline; a session without cached state has until `first_within_s`."""
        self._plugin = plugin
        self._planning_s = planning_share * within_s
        self._within_s, self._first_within_s = within_s, first_within_s
        self._extend_at = -math.inf
        """When the deadline may be extended again, after that did not help."""
        self._is_warm = False
        """Whether a request was planned since the start; until then, nothing is cached."""
        self._stats = stats or GatewayStats()
        self._logged_at = {"without memory": -math.inf, "not recorded": -math.inf}
        self._workers = plugin.workers
        self._queued_bytes = 0
        self._lock = threading.Lock()

    async def close(self) -> None:
        """Start no more work; give what is to be recorded a moment to end."""
        await self._workers.finish(CLOSE_TIMEOUT_S)

    async def plan(self, incoming: ClientRequest) -> RequestPlan:
        """Return the plan of a request.

        A plan that comes too late is released, also where the client left meanwhile.
        """
        started = time.monotonic()
        until = started + self._within_s
        if RELAY_HEADER not in incoming.headers:
            self._stats.last_direct_at = clock.now()
        if len(incoming.raw) <= _INLINE_BYTES and not self._plugin.may_wait():
            # In this thread, because switching threads twice would cost the most.
            plan = attempt("passthrough", partial(self._plugin.passthrough, incoming, started))
            if isinstance(plan, RequestPlan):
                return await self._use(plan)
            return await self._degrade(incoming, plan.kind, until)
        with self._plan_by("plan", partial(self._plugin.plan, incoming)) as task:
            fresh = await task.wait(started + self._planning_s)
            if isinstance(fresh, RequestPlan):
                return await self._use(fresh)
            check_budget_at = until - PASSTHROUGH_SHARE * self._within_s
            cached = await self._plan_from_cache(incoming, task, fresh, check_budget_at)
        if isinstance(cached, RequestPlan):
            return cached
        return await self._degrade(incoming, cached, until)

    async def _plan_from_cache(
        self,
        incoming: ClientRequest,
        planning: DeadlineTask[RequestPlan],
        failure: Failure | None,
        until: float,
    ) -> RequestPlan | str:
        """Return a plan from cached state, or the reason for a pass-through."""
        work = partial(self._plugin.plan_from_cache, incoming)
        with self._plan_by("cached plan", work) as task:
            # A fresh plan that has not failed may still come.
            fresh = failure or await planning.wait(until)
            if isinstance(fresh, RequestPlan):
                return await self._use(fresh)
            reason = LATE if fresh is None else fresh.kind
            command = await self._find_command(incoming, until)
            if command is not None:
                return await self._use(RequestPlan(command=command))
            cached = await task.wait(until)
            has_state = self._is_warm if cached is None else _has_state(cached)
            if fresh is None and not has_state:
                late = await self._wait_longer(planning)
                if late is not None:
                    if isinstance(cached, RequestPlan) and cached.observer is not None:
                        self._release(cached.observer)
                    return await self._use(late)
        if not isinstance(cached, RequestPlan):
            return reason
        self._count(reason)
        return _with_degraded_header(cached, reason)

    async def _wait_longer(self, planning: DeadlineTask[RequestPlan]) -> RequestPlan | None:
        """Wait for the plan of a session whose state is not loaded yet.

        A session that went without its memory would lose its layer. If the store is locked, no
        session waits for some time.
        """
        now = time.monotonic()
        if now < self._extend_at:
            return None
        plan = await planning.wait(now + self._first_within_s - self._within_s)
        if isinstance(plan, RequestPlan):
            return plan
        self._extend_at = time.monotonic() + _EXTEND_INTERVAL_S
        return None

    async def _use(self, plan: RequestPlan) -> RequestPlan:
        """Count a plan of memory; a command to Lore is run now."""
        self._is_warm = True
        self._stats.count()
        return plan if plan.command is None else await self._run_command(plan.command)

    async def passthrough(self, incoming: ClientRequest) -> RequestPlan:
        """Return a plan that sends the original bytes, if there is money for them."""
        return await self._check_budget(incoming, time.monotonic() + self._within_s)

    async def _degrade(self, incoming: ClientRequest, reason: str, until: float) -> RequestPlan:
        """Pass a request through without memory, and say so in a header."""
        self._count(reason)
        return _with_degraded_header(await self._check_budget(incoming, until), reason)

    async def _check_budget(self, incoming: ClientRequest, until: float) -> RequestPlan:
        """Pass a request through if there is money; with a daily budget, wait for that answer."""
        work = partial(self._plugin.passthrough, incoming, until)
        with self._account("budget", work) as task:
            plan = await task.wait(until)
            if plan is None and self._plugin.is_limited():
                plan = await task.wait()
            if plan is None:
                deferred = DeferredObserver(task.detach(), self._end, len(incoming.raw))
                return RequestPlan(observer=deferred)
        if isinstance(plan, RequestPlan):
            return plan
        if not self._plugin.is_limited():
            return RequestPlan()
        return RequestPlan(answer=error_response(incoming.provider, 503, _BUDGET_UNKNOWN))

    def _plan_by(self, kind: str, work: Callable[[], T]) -> DeadlineTask[T]:
        return DeadlineTask(self._workers.planning.submit(kind, work), self._release)

    def _account(self, kind: str, work: Callable[[], T]) -> DeadlineTask[T]:
        return DeadlineTask(self._workers.accounting.submit(kind, work), self._release)

    def _release(self, observer: Observer) -> None:
        self._settle(observer, "unused")

    def _count(self, reason: str) -> None:
        """Count a request without memory, and log now and then how many there were."""
        self._stats.count(reason)
        reasons = ", ".join(f"{name} {n}" for name, n in sorted(self._stats.degraded().items()))
        self._log(
            "without memory",
            {"reason": reason, "requests": self._stats.requests, "reasons": reasons},
        )

    def _log(self, event: str, fields: dict[str, object]) -> None:
        now = time.monotonic()
        if now - self._logged_at[event] >= _LOG_INTERVAL_S:
            self._logged_at[event] = now
            log.warning(event, extra=fields)

    async def _find_command(self, incoming: ClientRequest, until: float) -> Command | None:
        """Look for a command to Lore in a request that was not planned in time."""
        if len(incoming.raw) <= _INLINE_BYTES and not incoming.encoding:
            may_be = attempt("command", partial(may_be_command, incoming))
        else:
            with self._account("command search", partial(may_be_command, incoming)) as task:
                may_be = await task.wait(until) or False
        if may_be is not True:
            return None
        with self._account("command search", partial(self._plugin.find_command, incoming)) as task:
            command = await task.wait(time.monotonic() + COMMAND_TIMEOUT_S)
        return command if isinstance(command, Command) else None

    async def _run_command(self, command: Command) -> RequestPlan:
        with self._plan_by("command", command.run) as task:
            response = await task.wait(time.monotonic() + COMMAND_TIMEOUT_S)
        return RequestPlan(
            answer=response if isinstance(response, LocalResponse) else command.failure
        )

    def observe(
        self, observer: Observer | None, buffered_bytes: int = 0, *, ends_quickly: bool = False
    ) -> SafeObserver:
        """Return an observer that can fail without harm; `buffered_bytes` are held already."""
        return SafeObserver(observer, self._end, buffered_bytes, ends_quickly=ends_quickly)

    async def run_tool_loop(self, work: Callable[[], T]) -> T | Failure:
        """Run what a response needs before it goes on in a worker thread."""
        return await asyncio.wrap_future(self._workers.planning.submit("tool loop", work))

    def _end(self, observer: Observer, outcome: Outcome, buffered_bytes: int) -> None:
        """Queue a response for recording in order; where too much waits, settle only its cost."""
        with self._lock:
            fits = self._queued_bytes + buffered_bytes <= MAX_QUEUED_BYTES or not self._queued_bytes
            self._queued_bytes += buffered_bytes if fits else 0
        if not fits:
            self._log("not recorded", {"waiting_bytes": self._queued_bytes})
            self._settle(observer, outcome)
            return
        try:
            ended = self._workers.recording.submit("turn", partial(observer.end, outcome))
        except RuntimeError:  # The pool is closed: only the cost is still settled.
            self._mark_recorded(buffered_bytes)
            self._settle(observer, outcome)
        else:
            ended.add_done_callback(partial(self._mark_recorded, buffered_bytes))

    def _mark_recorded(
        self, buffered_bytes: int, _ended: Future[Failure | None] | None = None
    ) -> None:
        with self._lock:
            self._queued_bytes -= buffered_bytes

    def _settle(self, observer: Observer, outcome: Outcome) -> None:
        work = partial(observer.settle, outcome)
        try:
            self._workers.accounting.submit("settlement", work)
        except RuntimeError:  # The pool is closed: settle in this thread.
            attempt("settlement", work)


def _has_state(cached: RequestPlan | Failure | None) -> bool:
    return not isinstance(cached, RequestPlan) or cached.has_state


def _with_degraded_header(plan: RequestPlan, reason: str) -> RequestPlan:
    return replace(plan, headers=(*plan.headers, (DEGRADED_HEADER, reason)))
