"""Reservations and costs of background work, also of killed processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lore.budget.ledger import HOLD_TIMEOUT, Ledger, process_key, settle_dead_processes
from lore.budget.prices import PriceCatalogue
from lore.errors import BudgetSpent
from lore.llm.chat import Usage
from lore.records import RequestCost, Spend, TokenUse
from lore.store import spend
from lore.store.database import open_database
from tests.fakes import NOON, FixedClock
from tests.store.samples import newest_spend

USED = Usage(1000, 100)
PRICES = ("m input=1 output=1 cache_read=1 cache_write=1 window=200000",)
"""A dollar for a million tokens."""


def call(model="openai:m", kind="observe", most=USED):
    tokens = TokenUse(most.input_tokens, output_tokens=most.output_tokens)
    return RequestCost(model, tokens, kind=kind, work="background")


def ledger_of(database, background_usd):
    return Ledger(database, PriceCatalogue(PRICES), background_usd=background_usd)


@pytest.fixture
def ledger(database):
    return ledger_of(database, 0.002)


def entries(database):
    with database.read() as db:
        return newest_spend(db, limit=1000)


def test_settled_call_is_stored_with_purpose_and_cost(database, ledger):
    ledger.settle(ledger.reserve(call()), Usage(500, 50, 20))
    (entry,) = entries(database)
    assert (entry.purpose, entry.model, entry.at) == ("background:observe", "openai:m", NOON)
    assert entry.usage == {"input": 500, "output": 50, "cache_read": 20, "cache_write": 0}
    assert entry.usd == pytest.approx(0.00055)
    assert ledger.background_today().reserved_usd == 0


def test_reservation_counts_until_call_is_settled(ledger):
    reserved = ledger.reserve(call())
    assert ledger.background_today().reserved_usd == pytest.approx(0.0011)
    assert ledger.background_today().left_usd == pytest.approx(0.0009)
    ledger.settle(reserved, Usage(100, 0))
    assert ledger.background_today().left_usd == pytest.approx(0.0019)


def test_released_call_leaves_no_entry(database, ledger):
    ledger.release(ledger.reserve(call()))
    assert ledger.background_today().left_usd == 0.002
    assert not entries(database)


def test_spent_budget_refuses_calls_until_next_day(ledger, clock):
    ledger.settle(ledger.reserve(call()), Usage(2000, 0))
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve(call(kind="judge"))
    assert caught.value.until == NOON.replace(day=14, hour=0)
    clock.advance(hours=11, minutes=59)
    with pytest.raises(BudgetSpent):
        ledger.reserve(call(kind="judge"))
    clock.advance(minutes=1)
    ledger.reserve(call(kind="judge"))


def test_at_most_one_call_exceeds_the_budget(ledger):
    begun = [ledger.reserve(call()) for _ in range(2)]
    with pytest.raises(BudgetSpent):
        ledger.reserve(call())
    for reserved in begun:
        ledger.settle(reserved, USED)
    assert 0.002 <= ledger.background_today().spent_usd <= 0.002 + 0.0011


def test_expired_reservation_is_released_by_next_call(ledger, clock):
    ledger.reserve(call(most=Usage(5000, 0)))
    with pytest.raises(BudgetSpent):
        ledger.reserve(call())
    clock.advance(seconds=HOLD_TIMEOUT.total_seconds() + 1)
    ledger.release(ledger.reserve(call()))
    assert ledger.background_today().reserved_usd == 0


def test_a_call_that_outlives_its_reservation_is_still_recorded(database, ledger, clock):
    slow = ledger.reserve(call())
    clock.advance(hours=2)
    ledger.release(ledger.reserve(call()))
    ledger.settle(slow, USED)
    ledger.settle(slow, USED)
    assert len(entries(database)) == 1


def test_call_with_unknown_price_is_stored_as_unpriced(database):
    ledger = ledger_of(database, 1.0)
    ledger.settle(ledger.reserve(call("openai:no-such-model")), USED)
    (entry,) = entries(database)
    assert (entry.usd, entry.usage["unpriced"]) == (0.0, 1)
    assert ledger.background_today().unpriced == 1


def test_zero_background_budget_allows_only_free_calls(database):
    with pytest.raises(BudgetSpent):
        ledger_of(database, 0.0).reserve(call())
    with pytest.raises(BudgetSpent):
        ledger_of(database, 0.0).reserve(call("openai:no-such-model"))
    ledger_of(database, 0.0).reserve(call("ollama:llama3"))


def test_other_spend_does_not_count_as_background_work(database, ledger):
    database.write(lambda db: spend.add(db, Spend("a", NOON, "answer", "m", {}, 50.0)))
    assert ledger.background_today().spent_usd == 0


def spend_all(path: Path, begun: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    database = open_database(path, busy_timeout_s=30, backups=None, now=FixedClock())
    ledger = ledger_of(database, 0.02)
    count = 0
    try:
        while True:
            ledger.settle(ledger.reserve(call()), USED)
            count += 1
    except BudgetSpent:
        begun.put(count)
    finally:
        database.close()


def test_concurrent_processes_share_one_budget(database, tmp_path):
    forked = multiprocessing.get_context("spawn")
    begun = forked.Queue()
    workers = [forked.Process(target=spend_all, args=(database.path, begun)) for _ in range(3)]
    for worker in workers:
        worker.start()
    counts = [begun.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    spent = ledger_of(database, 0.02).background_today().spent_usd
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
def test_reservation_of_dead_process_is_settled(database, process, left, entered):
    held = spend.SpendReservation("k", NOON, "request:turn", 1.0, process(), "m", 0.25)
    database.write(lambda db: spend.add_reservation(db, held))
    database.write(lambda db: settle_dead_processes(db, NOON))
    with database.read() as db:
        assert [one.key for one in spend.list_reservations(db)] == left
        assert [entry.usd for entry in newest_spend(db)] == entered


@pytest.mark.parametrize("away", [HOLD_TIMEOUT, -HOLD_TIMEOUT])
def test_expired_reservation_is_removed_without_entry(database, away):
    held = spend.SpendReservation("k", NOON, "request:turn", 1.0, process_key(), "m", 0.25)
    database.write(lambda db: spend.add_reservation(db, held))
    later = NOON + away + (away / abs(away)) * timedelta(seconds=1)
    database.write(lambda db: settle_dead_processes(db, later))
    with database.read() as db:
        assert spend.list_reservations(db) == []
        assert newest_spend(db) == []


def test_calls_of_agents_commands_are_counted_by_day_in_the_store(database, clock):
    def open_ledger():
        return Ledger(database, PriceCatalogue(PRICES), background_usd=9, calls_per_day=2)

    command = call(model="codex-cli:m")
    first = open_ledger()
    first.settle(first.reserve(command), USED)
    first.settle(first.reserve(call()), USED)  # an API has no quota
    held = open_ledger().reserve(command)
    with pytest.raises(BudgetSpent, match="2 calls") as caught:
        open_ledger().reserve(command)
    assert caught.value.until == NOON.replace(day=14, hour=0)
    first.release(held)
    first.settle(open_ledger().reserve(command), USED)
    clock.advance(days=1)
    assert open_ledger().reserve(command)
