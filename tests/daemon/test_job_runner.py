"""Jobs: one that fails is tried again later, then parked, and holds up no other."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from lore.daemon import periodic_tasks
from lore.embed.embedder import NoEmbedder
from lore.errors import LoreError, NotFound
from lore.memory import Memory
from lore.records import Job
from lore.store import jobs as job_store
from tests.fakes import FixedClock

SECRET = "what was said in private"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock):
    with Memory.open(home=tmp_path / "home", embedder=NoEmbedder(), now=clock) as opened:
        yield opened


def queue(memory: Memory, kind: str, *subjects: str) -> None:
    for subject in subjects:
        memory.database.write(
            partial(
                job_store.ensure, kind=kind, subject=subject, total=1, now=memory.database.now()
            )
        )


def never() -> bool:
    return False


def fail(_memory: Memory, _job: Job) -> None:
    raise ValueError(SECRET)


def test_a_failing_job_does_not_block_the_others(memory: Memory):
    queue(memory, "bad", "1", "2")
    queue(memory, "good", "1", "2")
    done: list[str] = []
    kinds = {"bad": fail, "good": lambda _memory, job: done.append(job.subject)}
    assert periodic_tasks.run_due_jobs(memory, kinds, never) == periodic_tasks.JobCounts(
        2, 2, more=False
    )
    assert done == ["1", "2"]
    assert [(job.kind, job.attempts) for job in memory.digest.jobs()] == [("bad", 1), ("bad", 1)]


def test_the_delay_grows_and_the_fifth_failure_parks(memory: Memory, clock: FixedClock):
    queue(memory, "bad", "1")
    waited = []
    for attempt in range(1, 6):
        assert periodic_tasks.run_due_jobs(memory, {"bad": fail}, never).failed == 1
        (job,) = memory.digest.jobs()
        assert (job.attempts, job.state) == (attempt, "parked" if attempt == 5 else "pending")
        waited.append((job.due_at - clock()).total_seconds())
        assert periodic_tasks.run_due_jobs(memory, {"bad": fail}, never).failed == 0
        clock.moment = job.due_at
    for exact, found in zip((30, 120, 480, 1920), waited, strict=False):
        assert 0.8 * exact <= found <= 1.2 * exact
    clock.advance(days=365)
    assert periodic_tasks.run_due_jobs(memory, {"bad": fail}, never).failed == 0


def test_a_parked_job_is_tried_again_on_request(memory: Memory, clock: FixedClock):
    queue(memory, "bad", "1", "2")
    for _ in range(5):
        periodic_tasks.run_due_jobs(memory, {"bad": fail}, never)
        clock.advance(hours=5)
    first, _ = memory.digest.jobs()
    assert memory.digest.retry_jobs(first.id) == 1
    assert [job.state for job in memory.digest.jobs()] == ["pending", "parked"]
    assert memory.digest.retry_jobs() == 1
    assert periodic_tasks.run_due_jobs(memory, {"bad": lambda _memory, _job: None}, never).done == 2
    assert memory.digest.jobs() == []
    with pytest.raises(NotFound):
        memory.digest.retry_jobs(999)


def test_a_job_that_kills_its_process_counts_as_failed(memory: Memory):
    class Killed(BaseException):
        pass

    def kill(_memory: Memory, _job: Job) -> None:
        raise Killed

    queue(memory, "deadly", "1")
    with pytest.raises(Killed):
        periodic_tasks.run_due_jobs(memory, {"deadly": kill}, never)
    (job,) = memory.digest.jobs()
    assert (job.attempts, job.last_error) == (1, "It was begun and did not end.")


def test_a_clock_that_was_set_back_does_not_make_a_job_wait(memory: Memory, clock: FixedClock):
    clock.advance(days=400)
    queue(memory, "bad", "1")
    periodic_tasks.run_due_jobs(memory, {"bad": fail}, never)
    clock.advance(days=-400)
    assert periodic_tasks.run_due_jobs(memory, {"bad": lambda _memory, _job: None}, never).done == 1


def test_only_messages_of_lores_own_are_kept_as_reasons(memory: Memory, caplog):
    def refuse(_memory: Memory, _job: Job) -> None:
        msg = "The service is away."
        raise LoreError(msg, hint="Try later.")

    queue(memory, "foreign", "1")
    queue(memory, "own", "1")
    periodic_tasks.run_due_jobs(memory, {"foreign": fail, "own": refuse}, never)
    foreign, own = memory.digest.jobs()
    assert foreign.last_error.startswith("ValueError in test_job_runner.py:")
    assert own.last_error == "The service is away. Try later."
    assert SECRET not in caplog.text


def test_it_stops_between_jobs_and_says_that_there_are_more(memory: Memory):
    queue(memory, "good", "1", "2", "3")
    done: list[str] = []
    kinds = {"good": lambda _memory, job: done.append(job.subject)}
    ran = periodic_tasks.run_due_jobs(memory, kinds, lambda: len(done) == 2)
    assert (ran.done, ran.more, done) == (2, True, ["1", "2"])


def test_a_job_of_a_kind_that_nobody_knows_stays_where_it_is(memory: Memory):
    queue(memory, "future", "1")
    assert periodic_tasks.run_due_jobs(memory, {}, never) == periodic_tasks.JobCounts(
        0, 0, more=False
    )
    assert [job.kind for job in memory.digest.jobs()] == ["future"]


def test_a_job_is_queued_once_and_again_when_it_was_done(memory: Memory):
    queue(memory, "good", "1", "1")
    assert len(memory.digest.jobs()) == 1
    assert (
        periodic_tasks.run_due_jobs(memory, {"good": lambda _memory, _job: None}, never).done == 1
    )
    queue(memory, "good", "1")
    assert len(memory.digest.jobs()) == 1
