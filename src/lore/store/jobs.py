"""Jobs: background work that survives a restart and shows what went wrong."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import datetime, timedelta

from lore import clock
from lore.errors import NotFound
from lore.records import Job
from lore.store.packing import moment
from lore.store.sqlite import Connection, Row, among, texts

MAX_ATTEMPTS = 5
"""A job that failed so often is parked: visible, and out of the way."""

FIRST_DELAY_S, GROWTH = 30, 4
"""A failed job waits for 30 s, 2 min, 8 min, 32 min: a service that is down comes back in such
times, and one that is not must not be asked all day."""

LONGEST_DELAY_S = 4 * 3600
JITTER = 0.2
"""Jobs that failed together are not tried again together."""

_COLUMNS = "n, kind, subject, state, attempts, last_error, progress, total, updated_at, due_at"

_KIND_APART = "kind || ''"
"""The kind in a form that its index does not fit: nearly all jobs of a kind are done, and the
index of the open ones, whose own condition must be repeated, is the one to use."""

_IS_DUE = "(due_at <= :now OR due_at > :never)"
"""A delay that is longer than any given was set by a clock that was wrong."""

_IS_HELD = f"(state = 'parked' OR (state = 'pending' AND attempts > 0 AND NOT {_IS_DUE}))"


def ensure(db: Connection, kind: str, subject: str, *, total: int, now: datetime) -> Job:
    """Return the job for a subject, made if it is new, begun again if it was done.

    One that is under way keeps its progress, its failures and its delay, and gets the new total.
    So does a parked one, which stays parked: only `retry` lets it be tried again.
    """
    db.run(
        "INSERT INTO jobs"
        " (kind, subject, state, attempts, last_error, progress, total, updated_at, due_at)"
        " VALUES (:kind, :subject, 'pending', 0, '', 0, :total, :at, :at)"
        " ON CONFLICT (kind, subject) DO UPDATE SET"
        " total = excluded.total, updated_at = excluded.updated_at,"
        " progress = CASE jobs.state WHEN 'done' THEN 0 ELSE jobs.progress END,"
        " due_at = CASE jobs.state WHEN 'done' THEN excluded.due_at ELSE jobs.due_at END,"
        " state = CASE jobs.state WHEN 'done' THEN 'pending' ELSE jobs.state END",
        kind=kind,
        subject=subject,
        total=total,
        at=clock.to_us(now),
    )
    return _job(
        db.rows(
            f"SELECT {_COLUMNS} FROM jobs WHERE kind = :kind AND subject = :subject",
            kind=kind,
            subject=subject,
        )[0]
    )


def advance(db: Connection, job_n: int, *, progress: int, now: datetime) -> None:
    """Write down how far a job has come."""
    db.run(
        "UPDATE jobs SET progress = :progress, updated_at = :at WHERE n = :n",
        progress=progress,
        at=clock.to_us(now),
        n=job_n,
    )


def finish(db: Connection, job_n: int, *, now: datetime) -> None:
    """Write down that a job is done."""
    db.run(
        "UPDATE jobs SET state = 'done', attempts = 0, progress = total, last_error = '',"
        " updated_at = :at, due_at = :at WHERE n = :n",
        at=clock.to_us(now),
        n=job_n,
    )


def fail(db: Connection, job_n: int, error: str, *, now: datetime) -> None:
    """Write down that a job failed: it waits, longer each time, and is parked after 5 attempts."""
    before = int(db.value("SELECT attempts FROM jobs WHERE n = :n", n=job_n))
    db.run(
        "UPDATE jobs SET attempts = :attempts, last_error = :error, updated_at = :at,"
        " due_at = :due, state = CASE WHEN :attempts >= :most THEN 'parked' ELSE 'pending' END"
        " WHERE n = :n",
        attempts=before + 1,
        error=error[:500],
        at=clock.to_us(now),
        due=clock.to_us(now + timedelta(seconds=delay_s(before))),
        most=MAX_ATTEMPTS,
        n=job_n,
    )


def explain(db: Connection, job_n: int, error: str) -> None:
    """Write down why a job failed whose failure is counted already."""
    db.run("UPDATE jobs SET last_error = :error WHERE n = :n", error=error[:500], n=job_n)


def postpone(db: Connection, job_n: int, reason: str, *, until: datetime, now: datetime) -> None:
    """Let a job that is begun wait for something that is not its fault: no attempt is counted.

    It is due again at that moment, or after the longest delay if that comes first.
    """
    due = min(until, now + timedelta(seconds=LONGEST_DELAY_S))
    db.run(
        "UPDATE jobs SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END,"
        " state = 'pending', last_error = :reason, updated_at = :at, due_at = :due WHERE n = :n",
        reason=reason[:500],
        at=clock.to_us(now),
        due=clock.to_us(due),
        n=job_n,
    )


def park(db: Connection, job_n: int, error: str, *, now: datetime) -> None:
    """Put a job aside that another attempt would not help; only `retry` takes it up again."""
    db.run(
        "UPDATE jobs SET state = 'parked', last_error = :error, updated_at = :at WHERE n = :n",
        error=error[:500],
        at=clock.to_us(now),
        n=job_n,
    )


def delay_s(failures: int) -> float:
    """Return how long a job waits that failed so often before."""
    exact = min(FIRST_DELAY_S * float(GROWTH) ** failures, LONGEST_DELAY_S)
    return exact * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - spreads, hides nothing


def retry(db: Connection, job_n: int | None, *, now: datetime) -> int:
    """Let one job, or all that failed, be tried again at once; return how many that are."""
    if job_n is not None and not db.find("SELECT 1 FROM jobs WHERE n = :n", n=job_n):
        msg = f"There is no job {job_n}."
        raise NotFound(msg, hint="'lore jobs' lists them.")
    return db.run(
        "UPDATE jobs SET state = 'pending', attempts = 0, due_at = :at"
        " WHERE state <> 'done' AND (n = :n OR (:n IS NULL AND attempts > 0))",
        at=clock.to_us(now),
        n=job_n,
    )


def find_due(db: Connection, kinds: Collection[str], *, now: datetime) -> Job | None:
    """Return the job of these kinds that has waited longest, if one is due."""
    if not kinds:
        return None
    rows = db.rows(
        f"SELECT {_COLUMNS} FROM jobs WHERE state <> 'done' AND state = 'pending'"
        f" AND {_IS_DUE} AND {among(_KIND_APART, 'kinds')} ORDER BY due_at, n LIMIT 1",
        kinds=texts(sorted(kinds)),
        **_moments(now),
    )
    return _job(rows[0]) if rows else None


def is_held(db: Connection, kind: str, subject: str, *, now: datetime) -> bool:
    """Tell whether a job that failed is parked, or waits for its next attempt."""
    return bool(
        db.find(
            f"SELECT 1 FROM jobs WHERE kind = :kind AND subject = :subject AND {_IS_HELD}",
            kind=kind,
            subject=subject,
            **_moments(now),
        )
    )


def failures(db: Connection, kinds: Collection[str]) -> dict[str, int]:
    """Return how often jobs of these kinds failed since they last went well, by subject."""
    rows = db.rows(
        "SELECT subject, sum(attempts) FROM jobs WHERE state <> 'done' AND attempts > 0"
        f" AND {among(_KIND_APART, 'kinds')} GROUP BY subject",
        kinds=texts(sorted(kinds)),
    )
    return {subject: int(count) for subject, count in rows}


def held(db: Connection, kinds: Collection[str], *, now: datetime) -> set[str]:
    """Return the subjects of failed jobs that are parked, or wait for their next attempt."""
    rows = db.rows(
        f"SELECT subject FROM jobs WHERE state <> 'done' AND {_IS_HELD}"
        f" AND {among(_KIND_APART, 'kinds')}",
        kinds=texts(sorted(kinds)),
        **_moments(now),
    )
    return {subject for (subject,) in rows}


def _moments(now: datetime) -> dict[str, int]:
    longest = timedelta(seconds=LONGEST_DELAY_S * (1 + JITTER))
    return {"now": clock.to_us(now), "never": clock.to_us(now + longest)}


def open_jobs(db: Connection) -> list[Job]:
    """Return the jobs that are not done."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM jobs WHERE state <> 'done' ORDER BY n")
    return [_job(row) for row in rows]


def _job(row: Row) -> Job:
    n, kind, subject, state, attempts, last_error, progress, total, at, due = row
    return Job(
        n, kind, subject, state, attempts, last_error, progress, total, moment(at), moment(due)
    )
