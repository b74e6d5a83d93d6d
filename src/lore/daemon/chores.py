"""The chores: what the daemon does, how often, and the kinds of jobs it knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from lore.daemon import jobs
from lore.daemon.attempts import log
from lore.daemon.jobs import Kinds
from lore.errors import CycleRunning, NotFound
from lore.memory import Memory
from lore.memory.working import CURATE, DISTILL, EPISODE
from lore.records import Job
from lore.settings import Settings

TURN_S = 5.0
"""A chore with much to do gives way to the others after so long."""

CAPTURE_TURN_S = 20.0
"""Longer, for each turn begins with a look at all files."""

_LOOK_S = 5.0
"""Looking whether something waits to be embedded, or a job is due, takes under a millisecond."""

_QUIET_S, _QUIET_LOOK_S = 900.0, 60.0
"""Whoever has not spoken for a quarter of an hour has finished, or will be told anew."""

_MOST_QUEUED = 500
"""Jobs made in one transaction."""

_DIGEST_LOOK_S = 15.0
"""Sessions are due after a minute of silence; looking for them reads one line of each."""

_CYCLE_LOOK_S = 60.0
"""How often it is asked whether a cycle is due; the database remembers the last one."""

_UPKEEP_S = 3600.0
"""How often it is asked whether the day's upkeep was done; the database remembers when."""

_EMBED_SLICE_S = 1.0
"""Between slices the daemon looks whether it is to stop."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a chore did in its turn, counted; `more` if it was not finished."""

    counts: Mapping[str, int] = field(default_factory=dict)
    more: bool = False


Stopping = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that is done again and again; `state` is what the daemon is meanwhile."""

    name: str
    state: str
    every_s: float
    run: Callable[[Memory, Stopping], Done]


def tell_episode(memory: Memory, job: Job) -> None:
    """Keep the episode of a session, unless that was forgotten meanwhile."""
    with suppress(NotFound):
        memory.episode(job.subject)


def distill(memory: Memory, job: Job) -> None:
    """Condense a session, unless that was forgotten meanwhile."""
    with suppress(NotFound):
        memory.distill(job.subject)


def curate(memory: Memory, job: Job) -> None:
    """Make knowledge of a session, unless that was forgotten meanwhile.

    Of one that goes on, the exchange that is under way is left for later.
    """
    with suppress(NotFound):
        memory.curate(job.subject, idle_s=memory.settings.curate_idle_s)


JOB_KINDS: Kinds = {EPISODE: tell_episode}
DIGEST_KINDS: Kinds = {DISTILL: distill, CURATE: curate}
"""What does a job of each kind; what it worked on stays, whether it fails or not."""


def chores_of(settings: Settings, kinds: Kinds = JOB_KINDS) -> tuple[Chore, ...]:
    """Return the chores, in the order in which they run when several are due."""
    return (
        Chore("capture", "capturing", settings.capture_poll_interval_s, capture),
        Chore("embed", "embedding", _LOOK_S, embed),
        Chore("episodes", "looking", _QUIET_LOOK_S, queue_episodes),
        Chore("jobs", "working", _LOOK_S, partial(run_jobs, kinds=kinds)),
        Chore("digest", "distilling", _DIGEST_LOOK_S, digest),
        Chore("consolidate", "consolidating", _CYCLE_LOOK_S, consolidate),
        Chore("upkeep", "tidying", _UPKEEP_S, do_upkeep),
    )


def capture(memory: Memory, stopping: Stopping) -> Done:
    """Bring in what is new in transcript files."""
    until = time.monotonic() + CAPTURE_TURN_S
    captured = memory.capture_files(stopping=lambda: stopping() or time.monotonic() >= until)
    for problem in captured.problems:
        if problem.news:
            # What follows the colon may quote the file.
            reason = problem.problem.partition(":")[0]
            log.warning("file not read", extra={"file": problem.path, "reason": reason})
    return Done({"messages": captured.added}, more=time.monotonic() >= until)


def embed(memory: Memory, stopping: Stopping) -> Done:
    """Give vectors to what waits for one."""
    until = time.monotonic() + TURN_S
    done, taken = 0, 1
    while taken and not stopping() and time.monotonic() < until:
        taken = memory.embed_waiting(within_s=_EMBED_SLICE_S)
        done += taken
    return Done({"embedded": done}, more=bool(taken))


def queue_episodes(memory: Memory, _stopping: Stopping) -> Done:
    """Queue the sessions that have gone quiet to be told as episodes."""
    queued = memory.queue_episodes(quiet_s=_QUIET_S, limit=_MOST_QUEUED)
    return Done({"episodes queued": queued}, more=queued == _MOST_QUEUED)


def run_jobs(memory: Memory, stopping: Stopping, *, kinds: Kinds) -> Done:
    """Do the jobs that are due."""
    until = time.monotonic() + TURN_S
    ran = jobs.run_due(memory, kinds, lambda: stopping() or time.monotonic() >= until)
    counts = {"jobs done": ran.done, "jobs failed": ran.failed}
    return Done(counts, more=ran.more)


def digest(memory: Memory, stopping: Stopping) -> Done:
    """Queue the sessions that have gone quiet to be digested, and digest those that are due."""
    memory.queue_digest(limit=_MOST_QUEUED)
    return run_jobs(memory, stopping, kinds=DIGEST_KINDS)


def consolidate(memory: Memory, stopping: Stopping) -> Done:
    """Run a cycle of upkeep, if the last one was long enough ago; it stops between its steps."""
    if not memory.is_cycle_due():
        return Done()
    try:
        report = memory.consolidate(stopping=stopping)
    except CycleRunning:
        log.info("another process runs a cycle")
        return Done()
    return Done({"cycles": 1} if report.ended_at else {})


def do_upkeep(memory: Memory, _stopping: Stopping) -> Done:
    """Do what is due once a day."""
    return Done({"upkeeps": 1}) if memory.do_upkeep() else Done()
