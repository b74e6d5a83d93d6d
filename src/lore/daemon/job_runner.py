"""Run due jobs one by one; a failing job does not block the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from lore.errors import BadReply, BudgetSpent, describe_error, error_location
from lore.memory import Memory
from lore.records import Job, JobFailure

T = TypeVar("T")

log = logging.getLogger("lore.daemon")


@dataclass(frozen=True, slots=True)
class Failure:
    """An error: `message` for the owner, without contents for the log.

    A temporary error is retried at `until`; a permanent one is not retried.
    """

    told: str
    kind: str
    place: str
    until: datetime | None = None
    hopeless: bool = False


def attempt(work: Callable[[], T]) -> T | Failure:
    """Run some work and return its result, or the failure."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the daemon's tick: one failure stops nothing else
        return describe(error)


def describe(error: Exception) -> Failure:
    """Describe an error without contents that it may quote."""
    until = error.until if isinstance(error, BudgetSpent) else None
    hopeless = isinstance(error, BadReply)
    return Failure(
        describe_error(error), type(error).__name__, error_location(error), until, hopeless
    )


Kinds = Mapping[str, Callable[[Memory, Job], object]]


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs succeeded and failed; `more` if others are due."""

    done: int
    failed: int
    more: bool


def run_due_jobs(memory: Memory, kinds: Kinds, stopping: Callable[[], bool]) -> JobCounts:
    """Run the jobs that are due until there are none, or until it is time to stop."""
    succeeded = failed = 0
    while True:
        job = memory.digest.find_due_job(tuple(kinds))
        if job is None or stopping():
            return JobCounts(succeeded, failed, more=job is not None)
        if memory.digest.run_job(job.id, partial(_run, memory, kinds, job)):
            succeeded += 1
        else:
            failed += 1


def _run(memory: Memory, kinds: Kinds, job: Job) -> JobFailure | None:
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
    return JobFailure(outcome.told, outcome.until, outcome.hopeless)
