from __future__ import annotations

from lore.store import jobs
from lore.store.sqlite import Connection
from tests.store.samples import NOON, minutes


def test_a_job_goes_on_where_it_was_and_begins_again_once_done(db: Connection) -> None:
    job = jobs.start(db, "embed", "model", total=10, now=NOON)
    jobs.advance(db, job.id, progress=4, now=minutes(1))
    again = jobs.start(db, "embed", "model", total=12, now=minutes(2))
    assert (again.id, again.progress, again.total) == (job.id, 4, 12)
    jobs.finish(db, job.id, now=minutes(3))
    assert jobs.open_jobs(db) == []
    fresh = jobs.start(db, "embed", "model", total=3, now=minutes(4))
    assert (fresh.id, fresh.progress, fresh.state) == (job.id, 0, "pending")


def test_a_job_that_fails_too_often_is_parked_with_its_error(db: Connection) -> None:
    job = jobs.start(db, "distil", "s", total=1, now=NOON)
    for _ in range(jobs.MAX_ATTEMPTS):
        assert jobs.open_jobs(db)[0].state == "pending"
        jobs.fail(db, job.id, "x" * 900, now=NOON)
    (parked,) = jobs.open_jobs(db)
    assert (parked.state, parked.attempts, len(parked.last_error)) == ("parked", 5, 500)
