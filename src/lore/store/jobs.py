"""Jobs: background work that survives a restart, with retries, backoff and error messages."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import datetime, timedelta

from lore import clock
from lore.errors import NotFound
from lore.records import Job
from lore.store.codec import unpack_record
from lore.store.sql_connection import Connection, among, text_array

MAX_ATTEMPTS = 5
"""A job that failed this often is parked: visible, but not retried."""

FIRST_RETRY_DELAY_S, BACKOFF_FACTOR = 30, 4
"""Exponential backoff: 30 s, 2 min, 8 min and 32 min give a service time to recover."""

MAX_RETRY_DELAY_S = 4 * 3600
JITTER = 0.2
"""Random jitter, so that jobs that failed together are not retried together."""

_COLUMNS = "n, kind, subject, state, attempts, last_error, progress, total, updated_at, due_at"

_KIND_APART = "kind || ''"
"""The concatenation keeps SQLite from using the index by kind:

nearly all jobs of a kind are done, and the partial index of open jobs is faster.
"""

_IS_DUE = "(due_at <= :now OR due_at > :never)"
"""A due time beyond the longest delay was set by a wrong clock and counts as due."""

_IS_HELD = f"(state = 'parked' OR (state = 'pending' AND attempts > 0 AND NOT {_IS_DUE}))"


def ensure(db: Connection, kind: str, subject: str, *, total: int, now: datetime) -> Job:
    """Return the job for a subject: created if new, restarted if done.

    An open job keeps its progress, failures and delay, and gets the new total. A parked job stays
    parked until `retry`.
    """
    sql = (
        "INSERT INTO jobs"
        " (kind, subject, state, attempts, last_error, progress, total, updated_at, due_at)"
        " VALUES (:kind, :subject, 'pending', 0, '', 0, :total, :at, :at)"
        " ON CONFLICT (kind, subject) DO UPDATE SET"
        " total = excluded.total, updated_at = excluded.updated_at,"
        " progress = CASE jobs.state WHEN 'done' THEN 0 ELSE jobs.progress END,"
        " due_at = CASE jobs.state WHEN 'done' THEN excluded.due_at ELSE jobs.due_at END,"
        " state = CASE jobs.state WHEN 'done' THEN 'pending' ELSE jobs.state END"
        f" RETURNING {_COLUMNS}"
    )
    (row,) = db.rows(sql, kind=kind, subject=subject, total=total, at=clock.to_us(now))
    return unpack_record(Job, row)


def advance(db: Connection, job_n: int, *, progress: int, now: datetime) -> None:
    """Store the progress of a job."""
    db.update("jobs", job_n, progress=progress, updated_at=clock.to_us(now))


def finish(db: Connection, job_n: int, *, now: datetime) -> None:
    """Mark a job as done."""
    sql = (
        "UPDATE jobs SET state = 'done', attempts = 0, progress = total, last_error = '',"
        " updated_at = :at, due_at = :at WHERE n = :n"
    )
    db.run(sql, at=clock.to_us(now), n=job_n)


def fail(db: Connection, job_n: int, error: str, *, now: datetime) -> None:
    """Record a failure: schedule a retry with exponential backoff, or park after 5 attempts."""
    before = int(db.value("SELECT attempts FROM jobs WHERE n = :n", n=job_n))
    db.update(
        "jobs",
        job_n,
        attempts=before + 1,
        last_error=error[:500],
        updated_at=clock.to_us(now),
        due_at=clock.to_us(now + timedelta(seconds=retry_delay_s(before))),
        state="parked" if before + 1 >= MAX_ATTEMPTS else "pending",
    )


def set_error(db: Connection, job_n: int, error: str) -> None:
    """Set the error message of a job whose failure is counted already."""
    db.update("jobs", job_n, last_error=error[:500])


def postpone(db: Connection, job_n: int, reason: str, *, until: datetime, now: datetime) -> None:
    """Delay a started job for a reason that is not its fault, without counting an attempt.

    It is due again at `until`, or after the longest retry delay if that comes first.
    """
    due = min(until, now + timedelta(seconds=MAX_RETRY_DELAY_S))
    sql = (
        "UPDATE jobs SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END,"
        " state = 'pending', last_error = :reason, updated_at = :at, due_at = :due WHERE n = :n"
    )
    db.run(sql, reason=reason[:500], at=clock.to_us(now), due=clock.to_us(due), n=job_n)


def park(db: Connection, job_n: int, error: str, *, now: datetime) -> None:
    """Park a job that no retry would help; only `retry` resumes it."""
    db.update("jobs", job_n, state="parked", last_error=error[:500], updated_at=clock.to_us(now))


def retry_delay_s(failures: int) -> float:
    """Return the backoff delay after this many earlier failures, with jitter."""
    exact = min(FIRST_RETRY_DELAY_S * float(BACKOFF_FACTOR) ** failures, MAX_RETRY_DELAY_S)
    return exact * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - spreads, hides nothing


def retry(db: Connection, job_n: int | None, *, now: datetime) -> int:
    """Make one job, or all that failed, due at once; return how many."""
    if job_n is not None and not db.find("SELECT 1 FROM jobs WHERE n = :n", n=job_n):
        msg = f"There is no job {job_n}."
        raise NotFound(msg, hint="Run 'lore jobs' to list them.")
    sql = (
        "UPDATE jobs SET state = 'pending', attempts = 0, due_at = :at"
        " WHERE state <> 'done' AND (n = :n OR (:n IS NULL AND attempts > 0))"
    )
    return db.run(sql, at=clock.to_us(now), n=job_n)


def find_due(db: Connection, kinds: Collection[str], *, now: datetime) -> Job | None:
    """Return the due job of these kinds that has waited longest, or None."""
    if not kinds:
        return None
    sql = (
        f"SELECT {_COLUMNS} FROM jobs WHERE state <> 'done' AND state = 'pending'"
        f" AND {_IS_DUE} AND {among(_KIND_APART, 'kinds')} ORDER BY due_at, n LIMIT 1"
    )
    row = db.find(sql, kinds=text_array(sorted(kinds)), **_moments(now))
    return None if row is None else unpack_record(Job, row)


def is_held(db: Connection, kind: str, subject: str, *, now: datetime) -> bool:
    """Return whether a failed job is parked or waiting for its retry."""
    sql = f"SELECT 1 FROM jobs WHERE kind = :kind AND subject = :subject AND {_IS_HELD}"
    return db.find(sql, kind=kind, subject=subject, **_moments(now)) is not None


def failure_counts(db: Connection, kinds: Collection[str]) -> dict[str, int]:
    """Return how often jobs of these kinds failed since their last success, by subject."""
    sql = (
        "SELECT subject, sum(attempts) FROM jobs WHERE state <> 'done' AND attempts > 0"
        f" AND {among(_KIND_APART, 'kinds')} GROUP BY subject"
    )
    return dict(db.rows(sql, kinds=text_array(sorted(kinds))))


def held_subjects(db: Connection, kinds: Collection[str], *, now: datetime) -> set[str]:
    """Return the subjects of failed jobs that are parked or waiting for their retry."""
    sql = (
        f"SELECT subject FROM jobs WHERE state <> 'done' AND {_IS_HELD}"
        f" AND {among(_KIND_APART, 'kinds')}"
    )
    return set(db.column(sql, kinds=text_array(sorted(kinds)), **_moments(now)))


def _moments(now: datetime) -> dict[str, int]:
    longest = timedelta(seconds=MAX_RETRY_DELAY_S * (1 + JITTER))
    return {"now": clock.to_us(now), "never": clock.to_us(now + longest)}


def open_jobs(db: Connection) -> list[Job]:
    """Return the jobs that are not done."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM jobs WHERE state <> 'done' ORDER BY n")
    return [unpack_record(Job, row) for row in rows]
