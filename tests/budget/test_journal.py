"""The journal of requests in progress: nothing is lost with a killed process, or paid twice."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.budget.journal import MAX_BYTES, JournalRecord, SpendJournal
from lore.budget.ledger import Ledger
from lore.budget.prices import PriceCatalogue
from lore.errors import BudgetSpent
from lore.records import RequestCost, RequestHold, Spend
from lore.records.gateway import RequestOutcome, TokenUse
from lore.store.database import open_database
from tests.budget.test_ledger_requests import CENT, DOLLAR, PRICES, entries, locked, reserved_rows
from tests.fakes import NOON, FixedClock
from tests.waiting import PATIENCE_S, eventually

ANSWERED = TokenUse(1_000_000, output_tokens=100_000)


def hold(key: str, usd: float = 2.0, prompt_usd: float = 1.0) -> RequestHold:
    cost = RequestCost("m", None, session="s", project="/p")
    return RequestHold(key, NOON, cost, usd, prompt_usd=prompt_usd)


def journals(folder: Path) -> list[Path]:
    return sorted(folder.glob("memory.db-spend-*"))


def test_file_is_readable_by_its_owner_alone_and_goes_when_all_is_stored(tmp_path: Path):
    journal = SpendJournal(tmp_path / "memory.db", "1.a")
    journal.record(JournalRecord(hold("a")))
    (path,) = journals(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    journal.remove("a")
    assert path.stat().st_size == 0
    journal.close()
    assert not journals(tmp_path)


def test_file_of_a_living_process_is_not_taken(tmp_path: Path):
    journal = SpendJournal(tmp_path / "memory.db", "1.a")
    journal.record(JournalRecord(hold("a")))
    assert SpendJournal(tmp_path / "memory.db", "2.b").adopt() == []
    journal.close()
    (record,) = SpendJournal(tmp_path / "memory.db", "2.b").adopt()
    assert record == JournalRecord(hold("a"))


def test_file_stays_small_while_one_stream_stays_open(tmp_path: Path):
    journal = SpendJournal(tmp_path / "memory.db", "1.a")
    journal.record(JournalRecord(hold("long")))
    for n in range(6_000):
        journal.record(JournalRecord(hold(f"{n}")))
        journal.remove(f"{n}")
    (path,) = journals(tmp_path)
    assert path.stat().st_size < 2 * MAX_BYTES
    journal.close()
    adopted = SpendJournal(tmp_path / "memory.db", "2.b").adopt()
    assert [record.hold.key for record in adopted] == ["long"]


def test_a_pipe_in_the_place_of_a_journal_holds_nobody_up(tmp_path: Path):
    os.mkfifo(tmp_path / "memory.db-spend-9.x-0")
    assert SpendJournal(tmp_path / "memory.db", "2.b").adopt() == []


STEPS = st.lists(
    st.tuples(st.sampled_from(["reserve", "settle", "store"]), st.integers(0, 5)), max_size=30
)


@given(steps=STEPS, cut=st.integers(0, 200))
@settings(max_examples=50, deadline=None)
def test_every_open_request_is_adopted_and_a_torn_line_hurts_only_itself(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], cut: int
):
    folder = tmp_path_factory.mktemp("home")
    journal, expected = SpendJournal(folder / "memory.db", "1.a"), dict[str, JournalRecord]()
    for step, number in steps:
        key = f"{number}"
        entry = Spend(key, NOON, "request:turn", "m\ud800", {"input": number}, 1.5)
        if step == "store":
            expected.pop(key, None)
            journal.remove(key)
        else:
            expected[key] = JournalRecord(hold(key), entry if step == "settle" else None)
            journal.record(expected[key])
    if expected:
        (path,) = journals(folder)
        whole = JournalRecord(hold("torn")).line()
        with path.open("ab") as file:
            file.write(whole[: min(cut, len(whole) - 2)])
    journal.close()
    heir = SpendJournal(folder / "memory.db", "2.b")
    assert {one.hold.key: one for one in heir.adopt()} == expected
    heir.close()
    again = SpendJournal(folder / "memory.db", "3.c")  # the heir was killed as well
    assert {one.hold.key: one for one in again.adopt()} == expected
    again.close()


def killed(path: Path, how: str, pipe: Any) -> None:
    """Reserve on a locked store, do more, and be killed."""
    database = open_database(path, busy_timeout_s=30, backups=None, now=FixedClock())
    ledger = Ledger(database, PriceCatalogue(PRICES), 100.0, store_timeout_s=0.001)
    maximum = TokenUse(1_000_000, output_tokens=300_000)
    reserved = [ledger.reserve(RequestCost("m", maximum)) for _ in range(20)]
    if how == "settled":
        for one in reserved:
            ledger.settle(one, ANSWERED, RequestOutcome(layer=1))
    elif how == "released":
        for one in reserved:
            ledger.release(one)
    elif how == "unused":
        for one in reserved:
            ledger.release_unused(one, CENT)
    pipe.send(len(reserved))
    os.kill(os.getpid(), signal.SIGKILL)


def die(path: Path, how: str) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    dying = context.Process(target=killed, args=(path, how, there))
    dying.start()
    assert here.poll(PATIENCE_S)
    dying.join()
    assert dying.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("how", "usd"), [("reserved", 1.0), ("settled", 2.0), ("released", None), ("unused", 0.01)]
)
def test_no_cost_is_lost_with_a_process_killed_while_the_store_is_locked(
    database, how: str, usd: float | None
):
    holder = locked(database)
    die(database.path, how)
    ledger = Ledger(database, PriceCatalogue(PRICES), 100.0, store_timeout_s=0.001)
    ledger.start()
    assert ledger.day_budget().spent_usd == pytest.approx(20 * (usd or 0.0))  # still locked
    holder.rows("ROLLBACK")
    holder.close()
    eventually(lambda: len(entries(database)) == (20 if usd else 0))
    assert [one.usd for one in entries(database)] == [pytest.approx(usd)] * (20 if usd else 0)
    eventually(lambda: reserved_rows(database) == 0)
    assert ledger.day_budget().spent_usd == pytest.approx(20 * (usd or 0.0))
    ledger.close_journal()
    assert not journals(database.path.parent)


def test_a_running_process_settles_for_one_that_was_killed(database):
    ledger = Ledger(database, PriceCatalogue(PRICES), 100.0, store_timeout_s=30)
    holder = locked(database)
    die(database.path, "settled")
    holder.rows("ROLLBACK")
    holder.close()
    ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), DOLLAR)
    eventually(lambda: len(entries(database)) == 21)
    assert ledger.day_budget().spent_usd == pytest.approx(41)


def test_limit_holds_after_a_restart_on_a_locked_store(database):
    holder = locked(database)
    die(database.path, "settled")
    ledger = Ledger(database, PriceCatalogue(PRICES), 41.0, store_timeout_s=0.001)
    ledger.start()
    ledger.reserve(RequestCost("m", DOLLAR))
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", DOLLAR))
    holder.rows("ROLLBACK")
    holder.close()


def test_what_the_store_has_is_not_paid_twice(database, tmp_path: Path):
    ledger = Ledger(database, PriceCatalogue(PRICES), 100.0, store_timeout_s=30)
    ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), DOLLAR)
    (entry,) = entries(database)
    ledger.close_journal()
    journal = SpendJournal(database.path, "1.a")
    journal.record(JournalRecord(replace(hold(entry.key), is_stored=True), None))
    journal.close()
    heir = Ledger(database, PriceCatalogue(PRICES), 100.0)
    heir.start()
    assert entries(database) == [entry]
