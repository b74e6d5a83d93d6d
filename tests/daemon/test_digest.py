"""What the daemon does with sessions that have gone quiet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from lore.daemon import periodic_tasks
from lore.digest.consolidation import cycle
from lore.embed.embedder import NoEmbedder
from lore.errors import BadReply, BudgetSpent, LoreError, ProviderUnavailable
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import Extract, Log, NewMessage, Part, Segment
from tests.fakes import NOON, FixedClock

SAID = (
    "We switched from Redis to a queue in Postgres because Redis is one more service to run.",
    "Done, the table is called `jobs` and WORKER_MAX_ATTEMPTS is 3 in settings.py.",
    "From now on always run `make check` before every commit.",
    "Understood, `make check` runs before every commit from now on.",
    "And never push to main without asking me.",
    "I will never push to main without asking.",
)


class Broken(OfflineSummarizer):
    """A summarizer whose provider fails."""

    def __init__(self, error: LoreError) -> None:
        super().__init__()
        self.error: LoreError | None = error

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        if self.error:
            raise self.error
        return super().observe(segment, limit_tokens=limit_tokens)

    def extract(self, exchange: Segment) -> list[Extract]:
        if self.error:
            raise self.error
        return super().extract(exchange)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def memory(new_home: Path, clock: FixedClock):
    with Memory.open(home=new_home, embedder=NoEmbedder(), now=clock) as opened:
        yield opened


def talk(memory: Memory, said: Sequence[str] = SAID, session: str = "talk") -> None:
    memory.capture(session, [
        NewMessage("assistant" if place % 2 else "user", (Part("text", text),),
                   NOON + timedelta(seconds=place))
        for place, text in enumerate(said)
    ], project="/code")  # fmt: skip


def go_on() -> bool:
    return False


def test_a_session_is_distilled_after_a_minute_and_curated_after_five(
    memory: Memory, clock: FixedClock
):
    talk(memory)
    periodic_tasks.digest(memory, go_on)
    assert memory.maintenance.stats().distillations == 0
    clock.advance(seconds=90)
    periodic_tasks.digest(memory, go_on)
    assert (memory.maintenance.stats().distillations, memory.maintenance.stats().fragments) == (
        1,
        0,
    )
    clock.advance(seconds=300)
    periodic_tasks.digest(memory, go_on)
    made = memory.maintenance.stats().fragments
    assert made >= 1
    periodic_tasks.digest(memory, go_on)
    assert (memory.maintenance.stats().distillations, memory.maintenance.stats().fragments) == (
        1,
        made,
    )


def test_a_long_session_is_curated_except_its_current_exchange(memory: Memory, clock: FixedClock):
    small_talk = ["go on", "Done."] * 20
    talk(memory, [*SAID[:2], *small_talk, SAID[2]])
    clock.advance(seconds=55)
    assert memory.digest.queue_digest(limit=10) == 1
    periodic_tasks.digest(memory, go_on)
    told = " ".join(one.title for one in memory.search.roots())
    assert "queue in Postgres" in told
    assert "make check" not in told
    clock.advance(minutes=6)
    periodic_tasks.digest(memory, go_on)
    assert "make check" in " ".join(one.title for one in memory.search.roots())


def test_distill_on_request_covers_a_running_session(memory: Memory):
    talk(memory)
    assert memory.digest(["talk"]).fragments >= 1
    assert any("push to main" in one.title for one in memory.search.roots())


def test_a_spent_budget_delays_work_until_tomorrow(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(seconds=90)
    until = clock() + timedelta(hours=2)
    memory.context.summarizer = Broken(BudgetSpent("All spent.", until=until))
    periodic_tasks.digest(memory, go_on)
    [job] = memory.digest.jobs()
    assert (job.state, job.attempts, job.due_at) == ("pending", 0, until)
    memory.context.summarizer.error = None
    clock.advance(hours=2, seconds=1)
    periodic_tasks.digest(memory, go_on)
    assert memory.maintenance.stats().distillations == 1


def test_a_second_bad_reply_parks_the_job(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(seconds=90)
    memory.context.summarizer = Broken(BadReply("No JSON."))
    periodic_tasks.digest(memory, go_on)
    [job] = memory.digest.jobs()
    assert (job.state, job.last_error) == ("parked", "No JSON.")
    memory.context.summarizer.error = None
    memory.digest.retry_jobs()
    periodic_tasks.digest(memory, go_on)
    assert memory.maintenance.stats().distillations == 1


def test_an_unavailable_provider_is_retried_five_times(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(seconds=90)
    memory.context.summarizer = Broken(ProviderUnavailable("Nobody answers."))
    for _ in range(6):
        periodic_tasks.digest(memory, go_on)
        clock.advance(hours=5)
    states = {job.kind: (job.state, job.attempts) for job in memory.digest.jobs()}
    assert states["distill"] == ("parked", 5)
    assert len(memory.sessions.messages("talk")) == len(SAID)


def test_a_cycle_skips_a_session_with_a_parked_job(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(minutes=10)
    memory.context.summarizer = Broken(BadReply("No JSON."))
    periodic_tasks.digest(memory, go_on)
    assert {job.state for job in memory.digest.jobs()} == {"parked"}
    memory.context.summarizer.error = None
    assert periodic_tasks.consolidate(memory, go_on).counts == {"cycles": 1}
    assert (memory.maintenance.stats().distillations, memory.maintenance.stats().fragments) == (
        0,
        0,
    )
    memory.digest.retry_jobs()
    clock.advance(hours=2)
    periodic_tasks.consolidate(memory, go_on)
    assert memory.maintenance.stats().distillations == 1
    assert memory.digest.jobs() == []


def test_a_cycle_runs_when_due_and_resumes_after_a_stop(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(minutes=10)
    assert periodic_tasks.consolidate(memory, lambda: True).counts == {}
    [stopped] = memory.digest.cycles()
    assert stopped.ended_at is None
    assert periodic_tasks.consolidate(memory, go_on).counts == {"cycles": 1}
    [ended] = memory.digest.cycles()
    assert (ended.id, ended.ended_at) == (stopped.id, clock())
    clock.advance(hours=1)
    assert periodic_tasks.consolidate(memory, go_on).counts == {}
    clock.advance(hours=1)
    assert periodic_tasks.consolidate(memory, go_on).counts == {"cycles": 1}


def test_a_job_of_a_forgotten_session_succeeds(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(seconds=90)
    memory.digest.queue_digest(limit=10)
    memory.forget(session="talk")
    periodic_tasks.digest(memory, go_on)
    assert memory.digest.jobs() == []


def test_a_cycle_waits_for_that_of_another_process(memory: Memory):
    with cycle.hold_lock(memory.settings.database):
        assert periodic_tasks.consolidate(memory, lambda: False) == periodic_tasks.TaskResult()
    assert periodic_tasks.consolidate(memory, lambda: False) == periodic_tasks.TaskResult({
        "cycles": 1
    })
