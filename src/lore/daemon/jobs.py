"""Jobs: those that are due, done one by one; a failing one holds up no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from lore.daemon.attempts import Failure, attempt, log
from lore.memory import Memory
from lore.records import Job
from lore.store import jobs

Kinds = Mapping[str, Callable[[Memory, Job], object]]

_UNENDED = "It was begun and did not end."


@dataclass(frozen=True, slots=True)
class Ran:
    """How many jobs were done and how many failed; `more` if others were due."""

    done: int
    failed: int
    more: bool


def run_due(memory: Memory, kinds: Kinds, stopping: Callable[[], bool]) -> Ran:
    """Do the jobs that are due, until there are none or it is time to stop."""
    database = memory.database
    done = failed = 0
    while True:
        with database.read() as db:
            job = jobs.find_due(db, kinds, now=database.now())
        if job is None or stopping():
            return Ran(done, failed, more=job is not None)
        if _run(memory, kinds, job):
            done += 1
        else:
            failed += 1


def _run(memory: Memory, kinds: Kinds, job: Job) -> bool:
    """Do one job; it counts as failed until it ends, so that one that kills is parked too."""
    database = memory.database
    database.write(partial(jobs.fail, job_n=job.id, error=_UNENDED, now=database.now()))
    outcome = attempt(lambda: kinds[job.kind](memory, job))
    if isinstance(outcome, Failure):
        database.write(partial(jobs.explain, job_n=job.id, error=outcome.told))
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
        return False
    database.write(partial(jobs.finish, job_n=job.id, now=database.now()))
    return True


def listed(memory: Memory) -> list[Job]:
    """Return the jobs that are not done."""
    with memory.database.read() as db:
        return jobs.open_jobs(db)


def retry(memory: Memory, id: int | None) -> int:
    """Let one job, or all that failed, be tried again at once; return how many that are."""
    database = memory.database
    return database.write(partial(jobs.retry, job_n=id, now=database.now()))
