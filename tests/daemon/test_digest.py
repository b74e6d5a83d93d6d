"""What the daemon does with sessions that have gone quiet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from lore.daemon import chores
from lore.digest.consolidation import lock
from lore.embed.none import NoEmbedder
from lore.errors import BadReply, BudgetSpent, LoreError, ProviderUnavailable
from lore.llm.offline.digester import OfflineDigester
from lore.memory import Memory
from lore.records import Extract, Log, NewMessage, Part, Segment
from tests.fakes import NOON, FixedClock

SAID = (
    "We decided to keep the queue in Postgres because Redis is one more service to run.",
    "Done, the table is called `jobs` and WORKER_MAX_ATTEMPTS is 3 in settings.py.",
    "From now on always run `make check` before every commit.",
    "Understood, `make check` runs before every commit from now on.",
    "And never push to main without asking me.",
    "I will never push to main without asking.",
)


class Broken(OfflineDigester):
    """A digester whose provider fails."""

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
def memory(tmp_path: Path, clock: FixedClock):
    with Memory.open(home=tmp_path, embedder=NoEmbedder(), now=clock) as opened:
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
    chores.digest(memory, go_on)
    assert memory.stats().distillations == 0
    clock.advance(seconds=90)
    chores.digest(memory, go_on)
    assert (memory.stats().distillations, memory.stats().fragments) == (1, 0)
    clock.advance(seconds=300)
    chores.digest(memory, go_on)
    made = memory.stats().fragments
    assert made >= 1
    chores.digest(memory, go_on)
    assert (memory.stats().distillations, memory.stats().fragments) == (1, made)


def test_after_many_turns_all_is_curated_but_the_exchange_that_is_under_way(
    memory: Memory, clock: FixedClock
):
    small_talk = ["go on", "Done."] * 20
    talk(memory, [*SAID[:2], *small_talk, SAID[2]])
    clock.advance(seconds=55)
    assert memory.queue_digest(limit=10) == 1
    chores.digest(memory, go_on)
    told = " ".join(one.title for one in memory.roots())
    assert "queue in Postgres" in told
    assert "make check" not in told
    clock.advance(minutes=6)
    chores.digest(memory, go_on)
    assert "make check" in " ".join(one.title for one in memory.roots())


def test_a_person_who_asks_gets_all_of_a_session_that_goes_on(memory: Memory):
    talk(memory)
    assert memory.digest(["talk"]).fragments >= 1
    assert any("push to main" in one.title for one in memory.roots())


def test_a_spent_budget_is_nobodys_fault_and_the_work_goes_on_tomorrow(
    memory: Memory, clock: FixedClock
):
    talk(memory)
    clock.advance(seconds=90)
    until = clock() + timedelta(hours=2)
    memory.digester = Broken(BudgetSpent("All spent.", until=until))
    chores.digest(memory, go_on)
    [job] = memory.jobs()
    assert (job.state, job.attempts, job.due_at) == ("pending", 0, until)
    memory.digester.error = None
    clock.advance(hours=2, seconds=1)
    chores.digest(memory, go_on)
    assert memory.stats().distillations == 1


def test_a_reply_that_is_bad_twice_parks_the_job_and_loses_nothing(
    memory: Memory, clock: FixedClock
):
    talk(memory)
    clock.advance(seconds=90)
    memory.digester = Broken(BadReply("No JSON."))
    chores.digest(memory, go_on)
    [job] = memory.jobs()
    assert (job.state, job.last_error) == ("parked", "No JSON.")
    memory.digester.error = None
    memory.retry_jobs()
    chores.digest(memory, go_on)
    assert memory.stats().distillations == 1


def test_a_provider_that_is_away_is_asked_again_and_the_job_parked_after_five_attempts(
    memory: Memory, clock: FixedClock
):
    talk(memory)
    clock.advance(seconds=90)
    memory.digester = Broken(ProviderUnavailable("Nobody answers."))
    for _ in range(6):
        chores.digest(memory, go_on)
        clock.advance(hours=5)
    states = {job.kind: (job.state, job.attempts) for job in memory.jobs()}
    assert states["distill"] == ("parked", 5)
    assert len(memory.messages("talk")) == len(SAID)


def test_a_cycle_leaves_a_session_alone_whose_job_is_parked(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(minutes=10)
    memory.digester = Broken(BadReply("No JSON."))
    chores.digest(memory, go_on)
    assert {job.state for job in memory.jobs()} == {"parked"}
    memory.digester.error = None
    assert chores.consolidate(memory, go_on).counts == {"cycles": 1}
    assert (memory.stats().distillations, memory.stats().fragments) == (0, 0)
    memory.retry_jobs()
    clock.advance(hours=2)
    chores.consolidate(memory, go_on)
    assert memory.stats().distillations == 1
    assert memory.jobs() == []


def test_a_cycle_runs_when_it_is_due_and_one_that_was_stopped_goes_on(
    memory: Memory, clock: FixedClock
):
    talk(memory)
    clock.advance(minutes=10)
    assert chores.consolidate(memory, lambda: True).counts == {}
    [stopped] = memory.cycles()
    assert stopped.ended_at is None
    assert chores.consolidate(memory, go_on).counts == {"cycles": 1}
    [ended] = memory.cycles()
    assert (ended.id, ended.ended_at) == (stopped.id, clock())
    clock.advance(hours=1)
    assert chores.consolidate(memory, go_on).counts == {}
    clock.advance(hours=1)
    assert chores.consolidate(memory, go_on).counts == {"cycles": 1}


def test_a_forgotten_session_is_no_failure(memory: Memory, clock: FixedClock):
    talk(memory)
    clock.advance(seconds=90)
    memory.queue_digest(limit=10)
    memory.forget(session="talk")
    chores.digest(memory, go_on)
    assert memory.jobs() == []


def test_a_cycle_beside_one_of_another_process_is_left_for_later(memory: Memory):
    with lock.hold(memory.settings.database):
        assert chores.consolidate(memory, lambda: False) == chores.Done()
    assert chores.consolidate(memory, lambda: False) == chores.Done({"cycles": 1})
