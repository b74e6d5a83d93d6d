from __future__ import annotations

from lore.store import jobs
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, minutes


def test_an_open_job_resumes_and_a_finished_one_restarts(db: Connection) -> None:
    job = jobs.ensure(db, "embed", "model", total=10, now=NOON)
    jobs.advance(db, job.id, progress=4, now=minutes(1))
    again = jobs.ensure(db, "embed", "model", total=12, now=minutes(2))
    assert (again.id, again.progress, again.total) == (job.id, 4, 12)
    jobs.finish(db, job.id, now=minutes(3))
    assert jobs.open_jobs(db) == []
    fresh = jobs.ensure(db, "embed", "model", total=3, now=minutes(4))
    assert (fresh.id, fresh.progress, fresh.state) == (job.id, 0, "pending")


def test_a_job_that_fails_too_often_is_parked_with_its_error(db: Connection) -> None:
    job = jobs.ensure(db, "distil", "s", total=1, now=NOON)
    for _ in range(jobs.MAX_ATTEMPTS):
        assert jobs.open_jobs(db)[0].state == "pending"
        jobs.fail(db, job.id, "x" * 900, now=NOON)
    (parked,) = jobs.open_jobs(db)
    assert (parked.state, parked.attempts, len(parked.last_error)) == ("parked", 5, 500)


def test_a_parked_job_stays_parked_until_retry(db: Connection) -> None:
    job = jobs.ensure(db, "distil", "s", total=4, now=NOON)
    jobs.advance(db, job.id, progress=2, now=NOON)
    for _ in range(jobs.MAX_ATTEMPTS):
        jobs.fail(db, job.id, "away", now=NOON)
    again = jobs.ensure(db, "distil", "s", total=6, now=minutes(9))
    assert (again.id, again.state, again.attempts) == (job.id, "parked", jobs.MAX_ATTEMPTS)
    assert (again.progress, again.total, again.last_error) == (2, 6, "away")
    assert jobs.find_due(db, ["distil"], now=minutes(9_999)) is None
    jobs.retry(db, job.id, now=minutes(10))
    found = jobs.find_due(db, ["distil"], now=minutes(10))
    assert found
    assert (found.id, found.progress, found.attempts) == (job.id, 2, 0)


def test_ensuring_a_delayed_job_keeps_its_delay(db: Connection) -> None:
    job = jobs.ensure(db, "distil", "s", total=1, now=NOON)
    jobs.fail(db, job.id, "away", now=NOON)
    assert jobs.ensure(db, "distil", "s", total=1, now=NOON).attempts == 1
    assert jobs.find_due(db, ["distil"], now=NOON) is None


def test_a_failed_job_waits_for_its_backoff(db: Connection) -> None:
    job = jobs.ensure(db, "embed", "model", total=1, now=NOON)
    assert not jobs.is_held(db, "embed", "model", now=NOON)
    jobs.fail(db, job.id, "away", now=NOON)
    assert jobs.is_held(db, "embed", "model", now=NOON)
    assert jobs.find_due(db, ["embed"], now=NOON) is None
    assert not jobs.is_held(db, "embed", "model", now=minutes(1))
    assert jobs.find_due(db, ["other", "embed"], now=minutes(1))


def test_a_restarted_job_has_no_failures(db: Connection) -> None:
    job = jobs.ensure(db, "embed", "model", total=1, now=NOON)
    jobs.fail(db, job.id, "away", now=NOON)
    jobs.finish(db, job.id, now=NOON)
    again = jobs.ensure(db, "embed", "model", total=1, now=NOON)
    assert (again.attempts, again.last_error) == (0, "")


def test_the_backoff_delay_is_limited() -> None:
    longest = jobs.MAX_RETRY_DELAY_S * (1 + jobs.JITTER)
    assert all(0 < jobs.retry_delay_s(failures) <= longest for failures in range(60))


def test_postponing_a_job_counts_no_attempt(db: Connection) -> None:
    job = jobs.ensure(db, "distil", "s", total=1, now=NOON)
    for _ in range(2 * jobs.MAX_ATTEMPTS):
        jobs.fail(db, job.id, "begun", now=NOON)
        jobs.postpone(db, job.id, "The budget is spent.", until=minutes(90), now=NOON)
    (waiting,) = jobs.open_jobs(db)
    assert (waiting.state, waiting.attempts) == ("pending", 0)
    assert (waiting.last_error, waiting.due_at) == ("The budget is spent.", minutes(90))
    assert jobs.find_due(db, ["distil"], now=minutes(89)) is None
    assert jobs.find_due(db, ["distil"], now=minutes(90))


def test_a_postponed_job_is_due_after_the_longest_delay(db: Connection) -> None:
    job = jobs.ensure(db, "distil", "s", total=1, now=NOON)
    jobs.postpone(db, job.id, "spent", until=minutes(11 * 60), now=NOON)
    assert jobs.find_due(db, ["distil"], now=minutes(1)) is None
    assert jobs.find_due(db, ["distil"], now=minutes(4 * 60))
