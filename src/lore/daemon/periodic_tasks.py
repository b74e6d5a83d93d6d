"""Periodic tasks and jobs of the daemon: what runs, how often, and how failures are retried."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from lore.errors import (
    BadReply,
    BudgetSpent,
    CycleRunning,
    NotFound,
    describe_error,
    error_location,
)
from lore.memory import Memory
from lore.memory.digest import CURATE, DISTILL, EPISODE, QUIET_S
from lore.records import FileProblem, Job, JobFailure
from lore.settings import Settings

T = TypeVar("T")

log = logging.getLogger("lore.daemon")


@dataclass(frozen=True, slots=True)
class Failure:
    """An error: `message` for the owner, without contents for the log.

    A temporary error is retried at `until`; a permanent one is not retried.
    """

    message: str
    kind: str
    place: str
    until: datetime | None = None
    hopeless: bool = False


def attempt(work: Callable[[], T]) -> T | Failure:
    """Run some work and return its result, or the failure."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the daemon's tick: one failure stops nothing else
        until = error.until if isinstance(error, BudgetSpent) else None
        return Failure(
            describe_error(error),
            type(error).__name__,
            error_location(error),
            until,
            hopeless=isinstance(error, BadReply),
        )


Kinds = Mapping[str, Callable[[Memory, Job], object]]


def _run_job(memory: Memory, kinds: Kinds, job: Job) -> JobFailure | None:
    """Run one job and return its failure, or None."""
    outcome = attempt(lambda: kinds[job.kind](memory, job))
    if not isinstance(outcome, Failure):
        return None
    log.warning(
        "job failed",
        extra={
            "job": job.id,
            "kind": job.kind,
            "attempt": job.attempts + 1,
            "error": outcome.kind,
            "place": outcome.place,
        },
    )
    return JobFailure(outcome.message, outcome.until, outcome.hopeless)


SLICE_S = 5.0
"""A task with much to do yields to the others after this time."""

CAPTURE_SLICE_S = 20.0
"""Longer than the others, because each slice begins with a scan of all files."""

_LOOK_S = 5.0
"""How often the queues are checked; a check takes under a millisecond."""

_QUIET_LOOK_S = 60.0

_MAX_QUEUED = 500
"""Jobs that are created in one transaction."""

_DIGEST_LOOK_S = 15.0
"""Sessions are due after a minute of silence; the check reads one row of each."""

_CYCLE_LOOK_S = 60.0
"""How often to check whether a consolidation cycle is due; the database stores the last one."""

_UPKEEP_S = 3600.0
"""How often to check whether the daily maintenance and learning ran; the database stores when."""

_SYNC_LEAST_S = 10.0
"""Each sync compares all knowledge with the change log."""

_EMBED_SLICE_S = 1.0
"""Between slices the daemon checks whether it has to stop."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a task did in its slice, as counts; `more` if it did not finish."""

    counts: Mapping[str, int] = field(default_factory=dict)
    more: bool = False


Stopping = Callable[[], bool]

ReportProgress = Callable[[str, int, int], None]
"""Called with the part of the work, how much of it is done, and the total."""


def ignore_progress(_part: str, _done: int, _total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task is, and how long this part of it will still take, if that can be told."""

    part: str
    done: int
    total: int
    eta_s: float | None


class ProgressBoard:
    """The progress of the tasks that run; thread-safe."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._parts: dict[str, tuple[str, float, int, int, int]] = {}

    def report(self, task: str, part: str, done: int, total: int) -> None:
        """Record how much of a part is done; the pace is measured from its first report."""
        with self._lock:
            former, begun_s, first, before, _ = self._parts.get(task, ("", 0.0, 0, 0, 0))
            if part != former or done < before:
                begun_s, first = self._monotonic(), done
            self._parts[task] = (part, begun_s, first, done, total)

    def find(self, task: str) -> Progress | None:
        """Return the progress of a task, if it has reported any."""
        with self._lock:
            if task not in self._parts:
                return None
            part, begun_s, first, done, total = self._parts[task]
        took_s = self._monotonic() - begun_s
        eta_s = round(took_s / (done - first) * (total - done), 1) if done > first else None
        return Progress(part, done, total, eta_s)

    def clear(self, task: str) -> None:
        """Forget the progress of a task that has ended."""
        with self._lock:
            self._parts.pop(task, None)


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """Work that is repeated; `state` is the daemon's state meanwhile.

    Tasks of one `thread` take turns; those of others go on meanwhile.
    """

    name: str
    state: str
    every_s: float
    run: Callable[[Memory, Stopping], TaskResult]
    thread: str = "digest"


def store_episode(memory: Memory, job: Job) -> None:
    """Store the episode of a session, unless the session was forgotten, and learn from it."""
    with suppress(NotFound):
        if memory.sessions.episode(job.subject):
            memory.tasks.learn_from(job.subject)


def distill(memory: Memory, job: Job) -> None:
    """Distill a session, unless it was forgotten."""
    with suppress(NotFound):
        memory.distill(job.subject)


def curate(memory: Memory, job: Job) -> None:
    """Extract knowledge from a session, unless it was forgotten.

    The current exchange of a session that goes on is left for later.
    """
    with suppress(NotFound):
        memory.digest.curate(job.subject, idle_s=memory.settings.curate_idle_s)


JOB_KINDS: Kinds = {EPISODE: store_episode}
DIGEST_KINDS: Kinds = {DISTILL: distill, CURATE: curate}
"""The function for each kind of job; its results stay, even if a later step fails."""


def periodic_tasks(
    settings: Settings, kinds: Kinds = JOB_KINDS, board: ProgressBoard | None = None
) -> tuple[PeriodicTask, ...]:
    """Return the tasks in the order in which they run when several of one thread are due.

    Digest and consolidation take minutes on a large memory: capture, embedding and jobs must not
    wait for them.
    """
    poll_s, board = settings.capture_poll_interval_s, board or ProgressBoard()
    embed_all = partial(embed, progress=partial(board.report, "embed"))
    run_cycle = partial(consolidate, progress=partial(board.report, "consolidate"))
    tasks = (
        PeriodicTask("capture", "capturing", poll_s, capture, "capture"),
        PeriodicTask("notes", "capturing", poll_s, capture_notes, "capture"),
        PeriodicTask("embed", "embedding", _LOOK_S, embed_all, "embed"),
        PeriodicTask("judge", "judging", _LOOK_S, judge, "embed"),
        PeriodicTask("episodes", "looking", _QUIET_LOOK_S, queue_episodes, "jobs"),
        PeriodicTask("jobs", "working", _LOOK_S, partial(run_jobs, kinds=kinds), "jobs"),
        PeriodicTask("digest", "distilling", _DIGEST_LOOK_S, digest),
        PeriodicTask("consolidate", "consolidating", _CYCLE_LOOK_S, run_cycle),
        PeriodicTask("upkeep", "tidying", _UPKEEP_S, run_maintenance),
        PeriodicTask("strategies", "learning", _UPKEEP_S, learn_strategies),
    )
    if not settings.sync_target or not settings.sync_interval_s:
        return tasks
    every_s = max(settings.sync_interval_s, _SYNC_LEAST_S)
    return (*tasks, PeriodicTask("sync", "syncing", every_s, sync, "sync"))


def capture(memory: Memory, stopping: Stopping) -> TaskResult:
    """Capture new lines of transcript files, and update the working states of their sessions.

    The log has no names of files, because forgetting does not reach it; 'lore capture' lists them.
    """
    until = time.monotonic() + CAPTURE_SLICE_S
    captured = memory.capture_files(stopping=lambda: stopping() or time.monotonic() >= until)
    _log_problems(captured.problems)
    if captured.added:
        memory.handoffs.catch_up()
    return TaskResult({"messages": captured.added}, more=time.monotonic() >= until)


def capture_notes(memory: Memory, stopping: Stopping) -> TaskResult:
    """Read what changed in the memories of agents."""
    until = time.monotonic() + CAPTURE_SLICE_S
    read = memory.native.capture(stopping=lambda: stopping() or time.monotonic() >= until)
    _log_problems(read.problems)
    changed = read.added + read.changed + read.retired + read.restored
    return TaskResult({"notes": changed}, more=time.monotonic() >= until)


def _log_problems(problems: Sequence[FileProblem]) -> None:
    # The text after the colon may quote the file.
    reasons = Counter(one.problem.partition(":")[0] for one in problems if one.news)
    for reason, count in reasons.items():
        log.warning("files not read", extra={"files": count, "reason": reason})


def embed(
    memory: Memory, stopping: Stopping, *, progress: ReportProgress = ignore_progress
) -> TaskResult:
    """Embed items that wait for a vector."""
    until = time.monotonic() + SLICE_S
    total, count = 0, 1
    while count and not stopping() and time.monotonic() < until:
        count = memory.maintenance.embed_waiting(judge=False, within_s=_EMBED_SLICE_S)
        total += count
        if count:
            queues = memory.maintenance.queues()
            progress("items", total, total + queues.waiting + queues.next_waiting)
    return TaskResult({"embedded": total}, more=bool(count))


def judge(memory: Memory, _stopping: Stopping) -> TaskResult:
    """Judge for a moment what new items replace; embedding takes turns with it."""
    count = memory.maintenance.judge_waiting(within_s=_EMBED_SLICE_S)
    more = bool(count) and memory.maintenance.queues().unjudged > 0
    return TaskResult({"judged": count}, more=more)


def queue_episodes(memory: Memory, _stopping: Stopping) -> TaskResult:
    """Queue episodes for sessions that have gone quiet."""
    queued = memory.digest.queue_episodes(quiet_s=QUIET_S, limit=_MAX_QUEUED)
    return TaskResult({"episodes queued": queued}, more=queued == _MAX_QUEUED)


def run_jobs(memory: Memory, stopping: Stopping, *, kinds: Kinds) -> TaskResult:
    """Run the jobs that are due until there are none, or until it is time to stop."""
    until = time.monotonic() + SLICE_S
    succeeded = failed = 0
    while True:
        job = memory.digest.find_due_job(tuple(kinds))
        if job is None or stopping() or time.monotonic() >= until:
            counts = {"jobs done": succeeded, "jobs failed": failed}
            return TaskResult(counts, more=job is not None)
        if memory.digest.run_job(job.id, partial(_run_job, memory, kinds, job)):
            succeeded += 1
        else:
            failed += 1


def digest(memory: Memory, stopping: Stopping) -> TaskResult:
    """Queue and digest the sessions that have gone quiet."""
    memory.digest.queue_digest(limit=_MAX_QUEUED)
    return run_jobs(memory, stopping, kinds=DIGEST_KINDS)


def consolidate(
    memory: Memory, stopping: Stopping, *, progress: ReportProgress = ignore_progress
) -> TaskResult:
    """Run a consolidation cycle if one is due; it can stop between its steps."""
    if not memory.digest.is_cycle_due():
        return TaskResult()
    try:
        report = memory.digest.consolidate(stopping=stopping, progress=progress)
    except CycleRunning:
        log.info("another process runs a cycle")
        return TaskResult()
    return TaskResult({"cycles": 1} if report.ended_at else {})


def sync(memory: Memory, _stopping: Stopping) -> TaskResult:
    """Exchange changes with the home that the settings name; offline, it is tried less often."""
    result = memory.sync()
    return TaskResult({"records sent": result.sent, "records received": result.changed})


def run_maintenance(memory: Memory, _stopping: Stopping) -> TaskResult:
    """Run the daily maintenance, and finish what a killed forget or sync left."""
    memory.sync.finish_forgets()
    return TaskResult({"upkeeps": 1}) if memory.maintenance.run_upkeep() else TaskResult()


def learn_strategies(memory: Memory, _stopping: Stopping) -> TaskResult:
    """Count outcomes of sessions and shift the shares of profiles once a day, if that is on."""
    if not memory.strategies.is_learning_due():
        return TaskResult()
    event = memory.strategies.advance()
    return TaskResult({f"shares {event}": 1} if event else {})


LONGEST_DELAY_S = 900.0
"""Backoff: a failing task runs less and less often, but at least this often."""


@dataclass(slots=True)
class Turn:
    """When a task runs next, and how often it failed in a row."""

    task: PeriodicTask
    due_s: float
    failures: int = 0


@dataclass(slots=True)
class Schedule:
    """The turns of all tasks, in the order in which they run."""

    turns: list[Turn] = field(default_factory=list)

    @classmethod
    def of(cls, tasks: Sequence[PeriodicTask], now_s: float) -> Schedule:
        """Return the schedule of a daemon that starts now: every task is due."""
        return cls([Turn(task, now_s) for task in tasks])

    def due(self, now_s: float) -> list[Turn]:
        """Return the turns that are due."""
        return [turn for turn in self.turns if self.wait_s(turn, now_s) <= 0]

    def pause_s(self, now_s: float) -> float:
        """Return how long there is nothing to do."""
        return max(0.0, min(self.wait_s(turn, now_s) for turn in self.turns))

    def wait_s(self, turn: Turn, now_s: float) -> float:
        """Return how long a task still waits, at most the longest delay."""
        longest = max(turn.task.every_s, LONGEST_DELAY_S)
        return min(turn.due_s - now_s, longest)

    def ran(self, turn: Turn, now_s: float, *, failed: bool = False, more: bool = False) -> None:
        """Set the next turn of a task that ran; one with more to do is due at once."""
        turn.failures = turn.failures + 1 if failed else 0
        delay_s = 0.0 if more else turn.task.every_s
        if failed:
            grown_s = turn.task.every_s * 2.0 ** min(turn.failures, 20)
            delay_s = max(turn.task.every_s, min(grown_s, LONGEST_DELAY_S))
        turn.due_s = now_s + delay_s
