"""Reservations and costs of background work, also of killed processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lore.budget import BackgroundLedger
from lore.budget.ledger import HOLD_TIMEOUT, process_key, settle_dead_processes
from lore.errors import BudgetSpent
from lore.llm.chat import Usage
from lore.store import spend
from lore.store.database import open_database
from tests.fakes import NOON, FixedClock
from tests.store.samples import newest_spend

CALL = Usage(1000, 100)


def by_tokens(_identity, usage, _at):
    """A dollar for a million tokens."""
    return (usage.input_tokens + usage.output_tokens) / 1e6


@pytest.fixture
def ledger(database):
    return BackgroundLedger(database, 0.002, price=by_tokens)


def entries(database):
    with database.read() as db:
        return newest_spend(db, limit=1000)


def test_a_call_is_entered_with_its_question_and_its_price(database, ledger):
    ledger.settle(ledger.reserve("observe", "openai:m", CALL), Usage(500, 50, 20))
    (entry,) = entries(database)
    assert (entry.purpose, entry.model, entry.at) == ("background:observe", "openai:m", NOON)
    assert entry.usage == {"input": 500, "output": 50, "cache_read": 20, "cache_write": 0}
    assert entry.usd == pytest.approx(0.00055)
    assert ledger.today().reserved_usd == 0


def test_what_is_set_aside_counts_until_it_is_settled(ledger):
    reserved = ledger.reserve("observe", "openai:m", CALL)
    assert ledger.today().reserved_usd == pytest.approx(0.0011)
    assert ledger.today().left_usd == pytest.approx(0.0009)
    ledger.settle(reserved, Usage(100, 0))
    assert ledger.today().left_usd == pytest.approx(0.0019)


def test_a_call_that_took_nothing_leaves_nothing(database, ledger):
    ledger.release(ledger.reserve("observe", "openai:m", CALL))
    assert ledger.today().left_usd == 0.002
    assert not entries(database)


def test_a_spent_budget_stops_calls_until_the_next_day(ledger, clock):
    ledger.settle(ledger.reserve("observe", "openai:m", CALL), Usage(2000, 0))
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve("judge", "openai:m", CALL)
    assert caught.value.until == NOON.replace(day=14, hour=0)
    clock.advance(hours=11, minutes=59)
    with pytest.raises(BudgetSpent):
        ledger.reserve("judge", "openai:m", CALL)
    clock.advance(minutes=1)
    ledger.reserve("judge", "openai:m", CALL)


def test_the_budget_is_exceeded_by_one_call_at_most(ledger):
    begun = [ledger.reserve("observe", "openai:m", CALL) for _ in range(2)]
    with pytest.raises(BudgetSpent):
        ledger.reserve("observe", "openai:m", CALL)
    for reserved in begun:
        ledger.settle(reserved, CALL)
    assert 0.002 <= ledger.today().spent_usd <= 0.002 + 0.0011


def test_what_is_set_aside_for_longer_than_any_call_takes_comes_back(ledger, clock):
    ledger.reserve("observe", "openai:m", Usage(5000, 0))
    with pytest.raises(BudgetSpent):
        ledger.reserve("observe", "openai:m", CALL)
    clock.advance(seconds=HOLD_TIMEOUT.total_seconds() + 1)
    ledger.release(ledger.reserve("observe", "openai:m", CALL))
    assert ledger.today().reserved_usd == 0


def test_a_call_that_outlives_its_reservation_is_still_recorded(database, ledger, clock):
    slow = ledger.reserve("observe", "openai:m", CALL)
    clock.advance(hours=2)
    ledger.release(ledger.reserve("observe", "openai:m", CALL))
    ledger.settle(slow, CALL)
    ledger.settle(slow, CALL)
    assert len(entries(database)) == 1


def test_an_unknown_price_is_entered_as_such(database):
    ledger = BackgroundLedger(database, 1.0, price=lambda *_: None)
    ledger.settle(ledger.reserve("observe", "openai:m", CALL), CALL)
    (entry,) = entries(database)
    assert (entry.usd, entry.usage["unpriced"]) == (0.0, 1)
    assert ledger.today().unpriced == 1


def test_without_a_budget_only_what_is_free_is_done(database):
    with pytest.raises(BudgetSpent):
        BackgroundLedger(database, 0.0, price=by_tokens).reserve("observe", "openai:m", CALL)
    with pytest.raises(BudgetSpent):
        BackgroundLedger(database, 0.0, price=lambda *_: None).reserve("observe", "openai:m", CALL)
    BackgroundLedger(database, 0.0, price=lambda *_: 0.0).reserve("observe", "ollama:m", CALL)


def test_what_was_spent_in_the_foreground_is_not_counted(database, ledger):
    from lore.records import Spend

    database.write(lambda db: spend.add(db, Spend("a", NOON, "answer", "m", {}, 50.0)))
    assert ledger.today().spent_usd == 0


def spend_all(path: Path, begun: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    database = open_database(path, busy_timeout_s=30, backups=None, now=FixedClock())
    ledger = BackgroundLedger(database, 0.02, price=by_tokens)
    count = 0
    try:
        while True:
            ledger.settle(ledger.reserve("observe", "openai:m", CALL), CALL)
            count += 1
    except BudgetSpent:
        begun.put(count)
    finally:
        database.close()


def test_processes_beside_each_other_share_one_budget(database, tmp_path):
    forked = multiprocessing.get_context("spawn")
    begun = forked.Queue()
    workers = [forked.Process(target=spend_all, args=(database.path, begun)) for _ in range(3)]
    for worker in workers:
        worker.start()
    counts = [begun.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    spent = BackgroundLedger(database, 0.02, price=by_tokens).today().spent_usd
    assert sum(counts) == len(entries(database))
    assert 0.02 <= spent <= 0.02 + 0.0011


def gone() -> str:
    """Return a process that was there."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return f"{process.pid}.before"


@pytest.mark.parametrize(
    ("process", "left", "entered"),
    [
        (process_key, ["k"], []),
        (lambda: f"{os.getppid()}.other", ["k"], []),
        # In a container the next daemon has the number of the one that was killed.
        (lambda: f"{os.getpid()}.before", [], [0.25]),
        (gone, [], [0.25]),
        # As it was written before processes were named.
        (lambda: "", ["k"], []),
    ],
)
def test_what_was_set_aside_is_settled_once_its_process_is_gone(database, process, left, entered):
    held = spend.SpendReservation("k", NOON, "request:turn", 1.0, process(), "m", 0.25)
    database.write(lambda db: spend.add_reservation(db, held))
    database.write(lambda db: settle_dead_processes(db, NOON))
    with database.read() as db:
        assert [one.key for one in spend.list_reservations(db)] == left
        assert [entry.usd for entry in newest_spend(db)] == entered


@pytest.mark.parametrize("away", [HOLD_TIMEOUT, -HOLD_TIMEOUT])
def test_what_is_set_aside_for_longer_than_any_call_takes_is_given_back(database, away):
    held = spend.SpendReservation("k", NOON, "request:turn", 1.0, process_key(), "m", 0.25)
    database.write(lambda db: spend.add_reservation(db, held))
    later = NOON + away + (away / abs(away)) * timedelta(seconds=1)
    database.write(lambda db: settle_dead_processes(db, later))
    with database.read() as db:
        assert spend.list_reservations(db) == []
        assert newest_spend(db) == []
