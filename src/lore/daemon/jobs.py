"""Jobs: those that are due, done one by one; a failing one holds up no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from lore.daemon.attempts import Failure, attempt, log
from lore.memory import Memory
from lore.records import Job, Setback

Kinds = Mapping[str, Callable[[Memory, Job], object]]


@dataclass(frozen=True, slots=True)
class Ran:
    """How many jobs were done and how many failed; `more` if others were due."""

    done: int
    failed: int
    more: bool


def run_due(memory: Memory, kinds: Kinds, stopping: Callable[[], bool]) -> Ran:
    """Do the jobs that are due, until there are none or it is time to stop."""
    done = failed = 0
    while True:
        job = memory.find_due_job(tuple(kinds))
        if job is None or stopping():
            return Ran(done, failed, more=job is not None)
        if memory.run_job(job.id, partial(_run, memory, kinds, job)):
            done += 1
        else:
            failed += 1


def _run(memory: Memory, kinds: Kinds, job: Job) -> Setback | None:
    """Do one job and return what went wrong, or nothing."""
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
    return Setback(outcome.told, outcome.until, outcome.hopeless)
