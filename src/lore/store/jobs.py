"""Jobs: background work that survives a restart and shows what went wrong."""

from __future__ import annotations

from datetime import datetime

from lore import clock
from lore.records import Job
from lore.store.packing import moment
from lore.store.sqlite import Connection, Row

MAX_ATTEMPTS = 5
"""A job that failed so often is parked: visible, and out of the way."""

_COLUMNS = "n, kind, subject, state, attempts, last_error, progress, total, updated_at"


def start(db: Connection, kind: str, subject: str, *, total: int, now: datetime) -> Job:
    """Return the job for a subject, made if it is new, begun again if it was done."""
    db.run(
        "INSERT INTO jobs"
        " (kind, subject, state, attempts, last_error, progress, total, updated_at)"
        " VALUES (:kind, :subject, 'pending', 0, '', 0, :total, :at)"
        " ON CONFLICT (kind, subject) DO UPDATE SET total = excluded.total,"
        " updated_at = excluded.updated_at,"
        " progress = CASE jobs.state WHEN 'done' THEN 0 ELSE jobs.progress END, state = 'pending'",
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
        "UPDATE jobs SET state = 'done', progress = total, last_error = '', updated_at = :at"
        " WHERE n = :n",
        at=clock.to_us(now),
        n=job_n,
    )


def fail(db: Connection, job_n: int, error: str, *, now: datetime) -> None:
    """Write down that a job failed; after 5 attempts it is parked."""
    db.run(
        "UPDATE jobs SET attempts = attempts + 1, last_error = :error, updated_at = :at,"
        " state = CASE WHEN attempts + 1 >= :most THEN 'parked' ELSE 'pending' END"
        " WHERE n = :n",
        error=error[:500],
        at=clock.to_us(now),
        most=MAX_ATTEMPTS,
        n=job_n,
    )


def is_parked(db: Connection, kind: str, subject: str) -> bool:
    """Tell whether a job failed so often that only a person starts it again."""
    found = db.value(
        "SELECT state FROM jobs WHERE kind = :kind AND subject = :subject",
        kind=kind,
        subject=subject,
    )
    return bool(found == "parked")


def open_jobs(db: Connection) -> list[Job]:
    """Return the jobs that are not done."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM jobs WHERE state <> 'done' ORDER BY n")
    return [_job(row) for row in rows]


def _job(row: Row) -> Job:
    n, kind, subject, state, attempts, last_error, progress, total, at = row
    return Job(n, kind, subject, state, attempts, last_error, progress, total, moment(at))
