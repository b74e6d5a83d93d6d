"""Jobs: one that fails is tried again later, then parked, and holds up no other."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from lore.daemon import periodic_tasks
from lore.daemon.periodic_tasks import TaskResult
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


def run_jobs(memory: Memory, kinds: periodic_tasks.Kinds, stopping) -> TaskResult:
    return periodic_tasks.run_jobs(memory, stopping, kinds=kinds)


def fail(_memory: Memory, _job: Job) -> None:
    raise ValueError(SECRET)


def test_a_failing_job_does_not_block_the_others(memory: Memory):
    queue(memory, "bad", "1", "2")
    queue(memory, "good", "1", "2")
    done: list[str] = []
    kinds = {"bad": fail, "good": lambda _memory, job: done.append(job.subject)}
    assert run_jobs(memory, kinds, never) == TaskResult(
        {"jobs done": 2, "jobs failed": 2}, more=False
    )
    assert done == ["1", "2"]
    assert [(job.kind, job.attempts) for job in memory.digest.jobs()] == [("bad", 1), ("bad", 1)]


def test_backoff_grows_and_the_fifth_failure_parks_a_job(memory: Memory, clock: FixedClock):
    queue(memory, "bad", "1")
    waited = []
    for attempt in range(1, 6):
        assert run_jobs(memory, {"bad": fail}, never).counts["jobs failed"] == 1
        (job,) = memory.digest.jobs()
        assert (job.attempts, job.state) == (attempt, "parked" if attempt == 5 else "pending")
        waited.append((job.due_at - clock()).total_seconds())
        assert run_jobs(memory, {"bad": fail}, never).counts["jobs failed"] == 0
        clock.moment = job.due_at
    for exact, found in zip((30, 120, 480, 1920), waited, strict=False):
        assert 0.8 * exact <= found <= 1.2 * exact
    clock.advance(days=365)
    assert run_jobs(memory, {"bad": fail}, never).counts["jobs failed"] == 0


def test_retry_runs_a_parked_job_again(memory: Memory, clock: FixedClock):
    queue(memory, "bad", "1", "2")
    for _ in range(5):
        run_jobs(memory, {"bad": fail}, never)
        clock.advance(hours=5)
    first, _ = memory.digest.jobs()
    assert memory.digest.retry_jobs(first.id) == 1
    assert [job.state for job in memory.digest.jobs()] == ["pending", "parked"]
    assert memory.digest.retry_jobs() == 1
    assert run_jobs(memory, {"bad": lambda _memory, _job: None}, never).counts["jobs done"] == 2
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
        run_jobs(memory, {"deadly": kill}, never)
    (job,) = memory.digest.jobs()
    assert (job.attempts, job.last_error) == (1, "It was begun and did not end.")


def test_a_clock_set_back_does_not_delay_a_job(memory: Memory, clock: FixedClock):
    clock.advance(days=400)
    queue(memory, "bad", "1")
    run_jobs(memory, {"bad": fail}, never)
    clock.advance(days=-400)
    assert run_jobs(memory, {"bad": lambda _memory, _job: None}, never).counts["jobs done"] == 1


def test_only_messages_of_own_errors_are_stored(memory: Memory, caplog):
    def refuse(_memory: Memory, _job: Job) -> None:
        msg = "The service is away."
        raise LoreError(msg, hint="Try later.")

    queue(memory, "foreign", "1")
    queue(memory, "own", "1")
    run_jobs(memory, {"foreign": fail, "own": refuse}, never)
    foreign, own = memory.digest.jobs()
    assert foreign.last_error.startswith("ValueError in test_job_runner.py:")
    assert own.last_error == "The service is away. Try later."
    assert SECRET not in caplog.text


def test_run_stops_between_jobs_and_reports_more(memory: Memory):
    queue(memory, "good", "1", "2", "3")
    done: list[str] = []
    kinds = {"good": lambda _memory, job: done.append(job.subject)}
    ran = run_jobs(memory, kinds, lambda: len(done) == 2)
    assert (ran.counts["jobs done"], ran.more, done) == (2, True, ["1", "2"])


def test_a_job_of_an_unknown_kind_stays_queued(memory: Memory):
    queue(memory, "future", "1")
    assert run_jobs(memory, {}, never) == TaskResult({"jobs done": 0, "jobs failed": 0}, more=False)
    assert [job.kind for job in memory.digest.jobs()] == ["future"]


def test_a_job_is_queued_once_until_it_is_done(memory: Memory):
    queue(memory, "good", "1", "1")
    assert len(memory.digest.jobs()) == 1
    assert run_jobs(memory, {"good": lambda _memory, _job: None}, never).counts["jobs done"] == 1
    queue(memory, "good", "1")
    assert len(memory.digest.jobs()) == 1
