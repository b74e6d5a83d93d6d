"""Reservations and costs of agents' requests."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from lore.budget.entries import deferred_key
from lore.budget.ledger import RETRY_AFTER_S, Ledger
from lore.budget.prices import PriceCatalogue
from lore.errors import BudgetSpent
from lore.llm.chat import Usage
from lore.records import RequestCost, RequestOutcome, Spend
from lore.records.gateway import TokenUse
from lore.store import project_rows, sessions, spend, sqlite
from lore.store.database import open_database
from tests.fakes import NOON, FixedClock
from tests.store.samples import newest_spend
from tests.waiting import PATIENCE_S, eventually

PRICES = ("m input=1 output=10 cache_read=0.1 cache_write=1.25 window=200000",)
"""A million tokens for a dollar."""

DOLLAR = TokenUse(1_000_000)
CENT = TokenUse(10_000)


def ledger_of(database, budget_usd=None, **more):
    return Ledger(database, PriceCatalogue(PRICES), budget_usd, store_timeout_s=30, **more)


def entries(database):
    database.write(lambda _: None)
    with database.read() as db:
        return newest_spend(db, limit=1_000)


def reserved_rows(database):
    with database.read() as db:
        return db.value("SELECT COUNT(*) FROM spend_reservations")


def test_settled_request_is_stored_with_all_fields(database):
    def begin(db):
        project_n = project_rows.ensure_project(db, "/code/app", now=NOON)
        sessions.ensure_session(db, "talk", agent="a", project_n=project_n, started_at=NOON)

    database.write(begin)
    ledger = ledger_of(database)
    reserved = ledger.reserve(RequestCost("m", DOLLAR, session="talk", kind="turn"))
    used = TokenUse(1_000, 50_000, 2_000, 0, 500)
    without = TokenUse(0, 150_000, 2_000, 0, 500)
    usd = ledger.settle(reserved, used, RequestOutcome(2, busts=True, delay_s=1.5, without=without))
    assert usd == pytest.approx(0.001 + 0.005 + 0.0025 + 0.005)
    (entry,) = entries(database)
    assert (entry.purpose, entry.model, entry.at) == ("request:turn", "m", NOON)
    assert entry.usage == {
        "input": 53_000, "output": 500, "cache_read": 50_000, "cache_write": 2_000,
    }  # fmt: skip
    assert (entry.usd, entry.without_usd) == (pytest.approx(usd), pytest.approx(0.0225))
    assert (entry.layer, entry.busts, entry.delay_ms) == (2, True, 1_500)
    assert entry.session_id
    assert entry.project_id


@pytest.mark.parametrize("name", ["", "nobody-knows-it", "~", "x" * 500])
def test_cost_is_stored_for_any_session_name(database, name):
    ledger = ledger_of(database)
    ledger.settle(ledger.reserve(RequestCost("m", CENT, session=name, project=name)), CENT)
    (entry,) = entries(database)
    assert (entry.session_id, entry.project_id, entry.usd) == (None, None, pytest.approx(0.01))


def test_without_budget_nothing_is_reserved_or_refused(database):
    ledger = ledger_of(database)
    for _ in range(5):
        ledger.reserve(RequestCost("m", TokenUse(10**12)))
    assert reserved_rows(database) == 0
    assert ledger.day_budget().budget_usd is None


def test_reservation_lasts_until_settled_or_released(database):
    ledger = ledger_of(database, 10.0)
    one, other = ledger.reserve(RequestCost("m", DOLLAR)), ledger.reserve(RequestCost("m", DOLLAR))
    assert ledger.day_budget().reserved_usd == pytest.approx(2)
    ledger.settle(one, CENT)
    ledger.release(other)
    assert len(entries(database)) == 1
    assert ledger.day_budget().reserved_usd == 0
    assert ledger.day_budget().spent_usd == pytest.approx(0.01)


def test_spent_budget_refuses_requests_until_midnight(database, clock):
    ledger = ledger_of(database, 1.0)
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), DOLLAR)
    entries(database)
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve(RequestCost("m", CENT))
    assert caught.value.until == NOON.replace(day=14, hour=0)
    assert [one.refused for one in ledger.counters()] == [1]
    clock.advance(hours=12)
    ledger.reserve(RequestCost("m", CENT))


def test_fully_reserved_budget_asks_to_retry_soon(database):
    ledger = ledger_of(database, 1.0)
    ledger.reserve(RequestCost("m", DOLLAR))
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve(RequestCost("m", CENT))
    assert caught.value.until == NOON + timedelta(seconds=RETRY_AFTER_S)


def test_zero_budget_allows_only_free_requests(database):
    ledger = ledger_of(database, 0.0)
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", CENT))
    ledger.settle(ledger.reserve(RequestCost("qwen3:8b", CENT, provider="ollama")), CENT)
    assert [entry.usd for entry in entries(database)] == [0.0]


def test_request_with_unknown_price_is_stored_as_unpriced(database):
    ledger = Ledger(database, PriceCatalogue(), 1.0, store_timeout_s=30)
    assert (
        ledger.settle(
            ledger.reserve(RequestCost("no-such-model", CENT)), CENT, RequestOutcome(without=DOLLAR)
        )
        is None
    )
    (entry,) = entries(database)
    assert (entry.usd, entry.without_usd, entry.usage["unpriced"]) == (0.0, 0.0, 1)


def test_200_concurrent_requests_exceed_budget_by_one_at_most(database):
    ledger = ledger_of(database, 10.5)
    start = threading.Barrier(40)

    def ask(number):
        if number < 40:
            start.wait()
        try:
            reserved = ledger.reserve(RequestCost("m", DOLLAR))
        except BudgetSpent:
            return 0
        ledger.settle(reserved, DOLLAR)
        return 1

    with ThreadPoolExecutor(40) as pool:
        passed = sum(pool.map(ask, range(200)))
    assert passed == 11
    assert sum(entry.usd for entry in entries(database)) == pytest.approx(11)


def spend_all(path: Path, passed: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    database = open_database(path, busy_timeout_s=30, backups=None, now=FixedClock())
    ledger = ledger_of(database, 10.5)

    def ask(_number):
        try:
            reserved = ledger.reserve(RequestCost("m", DOLLAR))
        except BudgetSpent:
            return 0
        ledger.settle(reserved, DOLLAR)
        return 1

    with ThreadPoolExecutor(8) as pool:
        count = sum(pool.map(ask, range(50)))
    database.close()
    passed.put(count)


def test_concurrent_processes_share_one_budget(database):
    spawning = multiprocessing.get_context("spawn")
    passed = spawning.Queue()
    workers = [spawning.Process(target=spend_all, args=(database.path, passed)) for _ in range(4)]
    for worker in workers:
        worker.start()
    counts = [passed.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(counts) == 11
    assert sum(entry.usd for entry in entries(database)) == pytest.approx(11)


def test_background_work_and_requests_share_the_daily_budget(database):
    background = RequestCost("openai:m", CENT, kind="observe", work="background")
    requests = ledger_of(database, 1.0, background_usd=5.0)
    requests.settle(requests.reserve(background), Usage(600_000))
    assert requests.day_budget().spent_usd == pytest.approx(0.6)
    requests.settle(requests.reserve(RequestCost("m", CENT)), TokenUse(400_000))
    entries(database)
    with pytest.raises(BudgetSpent):
        requests.reserve(RequestCost("m", CENT))
    with pytest.raises(BudgetSpent, match="Today"):
        requests.reserve(background)
    ledger_of(database, background_usd=5.0).reserve(background)


def locked(database):
    """Return a connection that holds the lock of the database, as a stuck process would."""
    holder = sqlite.open_connection(database.path, busy_timeout_s=5, read_only=False)
    holder.begin_write()
    return holder


def test_limit_holds_while_store_is_locked(database):
    ledger = Ledger(database, PriceCatalogue(PRICES), 3.0, store_timeout_s=0.05)
    ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), DOLLAR)
    entries(database)
    ledger.day_budget()
    holder = locked(database)
    for _ in range(2):
        ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), DOLLAR)
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", DOLLAR))
    holder.rows("ROLLBACK")
    holder.close()
    eventually(lambda: len(entries(database)) == 3)
    eventually(lambda: reserved_rows(database) == 0)
    assert ledger.day_budget().spent_usd == pytest.approx(3)


def test_200_requests_on_locked_store_exceed_budget_by_one_at_most(database):
    ledger = Ledger(database, PriceCatalogue(PRICES), 10.5, store_timeout_s=0.05)
    first = [ledger.reserve(RequestCost("m", DOLLAR)) for _ in range(4)]
    holder = locked(database)

    def ask(_number):
        try:
            return ledger.reserve(RequestCost("m", DOLLAR))
        except BudgetSpent:
            return None

    with ThreadPoolExecutor(40) as pool:
        begun = [one for one in pool.map(ask, range(200)) if one is not None]
    assert len(first) + len(begun) == 11
    holder.rows("ROLLBACK")
    holder.close()
    for reserved in (*first, *begun):
        ledger.settle(reserved, DOLLAR)
    eventually(lambda: len(entries(database)) == 11)
    assert ledger.day_budget().spent_usd == pytest.approx(11)


def test_without_budget_requests_do_not_wait_for_locked_store(database):
    ledger = ledger_of(database)
    holder = locked(database)
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT)
    assert ledger.counters()[0].requests == 1
    holder.rows("ROLLBACK")
    holder.close()
    eventually(lambda: len(entries(database)) == 1)


def test_limit_holds_on_read_only_store(database, tmp_path):
    database.write(lambda db: spend.add(db, Spend("a", NOON, "request:turn", "m", {}, 1.0)))
    reader = open_database(
        database.path, busy_timeout_s=5, backups=None, read_only=True, now=FixedClock()
    )
    ledger = ledger_of(reader, 3.0)
    ledger.day_budget()
    passed = [ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), DOLLAR) for _ in range(2)]
    assert passed == [pytest.approx(1.0)] * 2
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", DOLLAR))
    reader.close()


def test_refused_entry_is_written_after_store_recovers(database):
    ledger = ledger_of(database)
    database.full = True
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT)
    database.full = False
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT)
    assert len(entries(database)) == 2


def test_without_budget_there_is_no_delay(database):
    assert ledger_of(database).pressure().delay_s == 0


def test_pressure_follows_spend_of_last_hour(database, clock):
    ledger = ledger_of(database, 10.0)
    assert not ledger.pressure().exceeds
    ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), TokenUse(9_000_000))
    entries(database)
    assert not ledger.pressure().exceeds, "looked up a moment ago"
    clock.advance(minutes=10)
    pressing = ledger.pressure()
    # $9 in ten minutes, $1 for the rest of the day: the longest delay but for 0.8² of pressure.
    assert pressing.exceeds
    assert pressing.delay_s == pytest.approx(60 * 0.64, abs=0.1)
    clock.advance(hours=2)
    assert ledger.pressure().delay_s == 0


def test_delays_and_tokens_are_counted_by_model(database):
    ledger = ledger_of(database)
    for delay_s in (0.0, 2.0, 0.5):
        ledger.settle(
            ledger.reserve(RequestCost("m", CENT)),
            TokenUse(1, 2, 3, 4, 5),
            RequestOutcome(delay_s=delay_s),
        )
    (counted,) = ledger.counters()
    assert (counted.model, counted.requests, counted.delayed, counted.delay_ms) == (
        "m",
        3,
        2,
        2_500,
    )
    assert counted.tokens == TokenUse(3, 6, 9, 12, 15)


def test_counters_group_models_beyond_the_maximum(database):
    from lore.budget.reports import MAX_MODELS

    ledger = ledger_of(database)
    for number in range(MAX_MODELS + 50):
        ledger.settle(ledger.reserve(RequestCost(f"ollama/{number}", CENT)), CENT)
    counted = ledger.counters()
    assert len(counted) == MAX_MODELS + 1
    assert sum(one.requests for one in counted) == MAX_MODELS + 50


def test_each_round_of_a_request_has_the_price_of_its_own_length(database):
    ledger = Ledger(database, PriceCatalogue(), store_timeout_s=30)
    one = TokenUse(150_000)
    reserved = ledger.reserve(RequestCost("claude-sonnet-4-5", one, provider="anthropic"))
    usd = ledger.settle(reserved, TokenUse(300_000), RequestOutcome(rounds=(one, one)))
    assert usd == pytest.approx(2 * 0.45)


def test_unreported_usage_is_marked_as_estimated(database):
    ledger = ledger_of(database)
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT, RequestOutcome(estimated=True))
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT)
    assert sorted("estimated" in entry.usage for entry in entries(database)) == [False, True]


def test_reservation_has_the_price_of_the_requested_service(database):
    ledger = Ledger(database, PriceCatalogue(), 100.0, store_timeout_s=30)
    asked = [
        ledger.reserve(
            RequestCost("claude-opus-4-6", TokenUse(100_000), provider="anthropic", service=service)
        )
        for service in ("", "fast")
    ]
    assert [one.usd for one in asked] == [pytest.approx(0.5), pytest.approx(3.0)]


def test_money_reserved_in_this_process_is_not_reported_as_spent(database):
    ledger = ledger_of(database, 0.045, store_backoff_s=0)
    database.full = True
    ledger.reserve(RequestCost("m", DOLLAR))
    database.full = False
    with pytest.raises(BudgetSpent, match=r"left of today's \$0\.045 is set aside") as caught:
        ledger.reserve(RequestCost("m", CENT))
    assert caught.value.until == NOON + timedelta(seconds=RETRY_AFTER_S)


def test_a_refusal_shows_all_digits_and_how_to_raise_the_budget(database):
    ledger = ledger_of(database, 0.045)
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), TokenUse(50_000))
    with pytest.raises(BudgetSpent, match=r"Today \$0\.05 of \$0\.045 are spent") as caught:
        ledger.reserve(RequestCost("m", CENT))
    assert "lore config daily_budget" in caught.value.hint


def test_zero_budget_names_no_time_to_retry(database):
    with pytest.raises(BudgetSpent) as caught:
        ledger_of(database, 0.0).reserve(RequestCost("m", CENT))
    assert caught.value.until is None
    assert "00:00" not in f"{caught.value} {caught.value.hint}"


def test_refused_entry_is_written_by_next_request_even_if_that_is_refused(
    database,
):
    ledger = ledger_of(database, 1.0)
    reserved = ledger.reserve(RequestCost("m", CENT))
    database.full = True
    ledger.settle(reserved, TokenUse(2_000_000))
    database.full = False
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", CENT))
    assert [entry.usd for entry in entries(database)] == [pytest.approx(2.0)]


def test_refused_entries_are_written_on_close(database):
    ledger = ledger_of(database)
    database.full = True
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT)
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT)
    database.full = False
    ledger.close()
    assert len(entries(database)) == 2


def test_sequential_requests_wait_for_their_own_settlement(database):
    ledger = ledger_of(database, 1.0, settle_wait_s=30)
    for _ in range(5):
        reserved = ledger.reserve(RequestCost("m", DOLLAR))
        later = threading.Timer(0.01, ledger.settle, (reserved, CENT))
        later.start()
    later.join()
    assert len(entries(database)) == 5


def test_unused_part_is_released_before_settlement(database):
    ledger = ledger_of(database, 1.0)
    first = ledger.reserve(RequestCost("m", DOLLAR))
    ledger.release_unused(first, CENT)
    second = ledger.reserve(RequestCost("m", DOLLAR))
    assert ledger.day_budget().reserved_usd == pytest.approx(1.01)
    for reserved in (first, second):
        ledger.settle(reserved, CENT)
    assert [entry.usd for entry in entries(database)] == [pytest.approx(0.01)] * 2
    assert ledger.day_budget().reserved_usd == 0


def test_reservation_of_long_stream_is_kept(database, clock):
    ledger = ledger_of(database, 1.0)
    ledger.reserve(RequestCost("m", DOLLAR))
    clock.advance(minutes=30)
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", CENT))


def kill_itself(path: Path) -> None:
    database = open_database(path, busy_timeout_s=30, backups=None, now=FixedClock())
    ledger_of(database, 5.0).reserve(RequestCost("m", TokenUse(1_000_000, output_tokens=300_000)))
    os.kill(os.getpid(), signal.SIGKILL)


def test_request_of_killed_process_is_settled_with_prompt_cost(database):
    dying = multiprocessing.get_context("spawn").Process(target=kill_itself, args=(database.path,))
    dying.start()
    dying.join()
    assert reserved_rows(database) == 1
    ledger = ledger_of(database, 5.0)
    ledger.start()
    (entry,) = entries(database)
    assert (entry.model, entry.purpose, entry.usd) == ("m", "request:turn", pytest.approx(1.0))
    assert entry.usage == {"estimated": 1}
    assert ledger.day_budget().reserved_usd == 0


def test_entry_dated_ahead_counts_on_its_own_day(database, clock):
    tomorrow = Spend("a", NOON + timedelta(days=1), "request:turn", "m", {}, 5.0)
    database.write(lambda db: spend.add(db, tomorrow))
    ledger = ledger_of(database, 1.0)
    ledger.release(ledger.reserve(RequestCost("m", CENT)))
    assert ledger.day_budget().spent_usd == 0
    clock.advance(days=1)
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", CENT))


def test_a_request_that_cannot_wait_is_decided_by_local_knowledge(database):
    ledger = ledger_of(database, 1.0)
    ledger.settle(ledger.reserve(RequestCost("m", CENT)), CENT)
    entries(database)
    ledger.day_budget()
    holder = locked(database)
    first = ledger.reserve(RequestCost("m", DOLLAR), within_s=0)
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve(RequestCost("m", CENT), within_s=0)
    assert caught.value.until == NOON + timedelta(seconds=RETRY_AFTER_S)
    holder.rows("ROLLBACK")
    holder.close()
    ledger.release(first)
    eventually(lambda: not reserved_rows(database))


def test_request_without_time_does_not_wait_for_price_lists(database):
    class Slow:
        def find(self, *_asked: object) -> None:
            release.wait(PATIENCE_S)

    release = threading.Event()
    ledger = Ledger(database, PriceCatalogue(lists=Slow()), 1.0, store_timeout_s=30)
    assert ledger.reserve(RequestCost("claude-sonnet-5", CENT), within_s=0).usd is None
    release.set()


def test_cost_of_dropped_entry_counts_all_day(database, clock):
    ledger = ledger_of(database, 1.0, max_unwritten=0)
    reserved = ledger.reserve(RequestCost("m", CENT), within_s=0)
    database.full = True
    ledger.settle(reserved, DOLLAR)
    database.full = False
    ledger.day_budget()
    with pytest.raises(BudgetSpent):
        ledger.reserve(RequestCost("m", CENT))
    clock.advance(days=1)
    ledger.reserve(RequestCost("m", CENT))


def test_request_uses_one_budget_while_the_setting_changes(database):
    told = iter([1.0, None, None, None, None, None])
    ledger = ledger_of(database, current_budget=lambda: next(told))
    reserved = ledger.reserve(RequestCost("m", DOLLAR))
    assert reserved.is_stored
    ledger.release_unused(reserved, CENT)
    entries(database)
    assert ledger.day_budget().reserved_usd == pytest.approx(0.01)


def test_raised_budget_ends_the_delay_at_once(database, clock):
    allowed = [10.0]
    ledger = ledger_of(database, current_budget=lambda: allowed[0])
    ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), TokenUse(9_000_000))
    entries(database)
    clock.advance(minutes=10)
    assert ledger.pressure().delay_s > 30
    allowed[0] = 10_000.0
    ledger.release(ledger.reserve(RequestCost("m", CENT)))
    assert ledger.pressure(at_hand=True).delay_s == 0
    assert ledger.pressure().delay_s == 0


def test_reserve_updates_the_cached_pace(database, clock):
    ledger = ledger_of(database, 10.0)
    ledger.settle(ledger.reserve(RequestCost("m", DOLLAR)), TokenUse(9_000_000))
    entries(database)
    clock.advance(minutes=10)
    assert ledger.pressure(at_hand=True).delay_s == 0, "seen ten minutes ago"
    ledger.release(ledger.reserve(RequestCost("m", CENT)))
    assert ledger.pressure(at_hand=True).delay_s > 30
    holder = locked(database)
    clock.advance(minutes=5)
    assert ledger.pressure(at_hand=True).delay_s > 30
    holder.rows("ROLLBACK")
    holder.close()
    clock.advance(hours=12)
    assert ledger.pressure(at_hand=True).delay_s == 0


DEFERRED_PRICES = ("m input=1 output=10 window=200000",)
"""In dollars for a million tokens."""

MOST = TokenUse(1_000_000, output_tokens=100_000)
USED = TokenUse(500_000, output_tokens=10_000)
AWAITED = RequestOutcome(estimated=True, fetched_by="resp_1")


def entered(database):
    database.write(lambda _: None)
    with database.read() as db:
        (entry,) = newest_spend(db)
    return entry


@pytest.fixture
def ledger(database):
    ledger = Ledger(database, PriceCatalogue(DEFERRED_PRICES), 10.0, store_timeout_s=30)
    ledger.settle(ledger.reserve(RequestCost("m", MOST)), MOST, AWAITED)
    assert entered(database).usd == pytest.approx(2.0)
    return ledger


def test_fetched_usage_replaces_estimate_once(database, ledger):
    ledger.correct("resp_1", USED, RequestOutcome(), provider="")
    ledger.correct("resp_1", MOST, RequestOutcome(), provider="")
    entry = entered(database)
    assert (entry.usd, entry.without_usd) == (pytest.approx(0.6), pytest.approx(0.6))
    assert entry.usage == {"input": 500_000, "output": 10_000, "cache_read": 0, "cache_write": 0}
    (counted,) = ledger.counters()
    assert (counted.requests, counted.tokens, counted.usd) == (1, USED, pytest.approx(0.6))


def test_deferred_response_keeps_no_reservation(database, ledger):
    assert ledger.day_budget().reserved_usd == 0
    ledger.correct("resp_1", USED, RequestOutcome(), provider="")
    entered(database)
    assert ledger.day_budget().spent_usd == pytest.approx(0.6)


def test_estimated_correction_keeps_stored_input_tokens(database, ledger):
    ledger.correct("resp_1", TokenUse(output_tokens=7), RequestOutcome(estimated=True), provider="")
    usage = entered(database).usage
    assert (usage["input"], usage["output"], usage["estimated"]) == (1_000_000, 7, 1)


def test_unknown_response_id_changes_nothing(database, ledger):
    before = entered(database)
    ledger.correct("resp_2", USED, RequestOutcome(), provider="")
    assert entered(database) == before
    assert ledger.counters()[0].tokens == TokenUse()


def test_repeated_response_id_makes_two_entries(database, ledger):
    ledger.settle(ledger.reserve(RequestCost("m", MOST)), MOST, AWAITED)
    database.write(lambda _: None)
    assert ledger.day_budget().spent_usd == pytest.approx(4.0)
    ledger.correct("resp_1", USED, RequestOutcome(), provider="")
    database.write(lambda _: None)
    assert ledger.day_budget().spent_usd == pytest.approx(2.6)


@pytest.mark.parametrize("full", [True, False])
def test_correction_applies_to_entry_waiting_for_full_store(database, full):
    ledger = Ledger(database, PriceCatalogue(DEFERRED_PRICES), 10.0, store_timeout_s=30)
    reserved = ledger.reserve(RequestCost("m", MOST))
    database.full = True
    ledger.settle(reserved, MOST, AWAITED)
    database.full = full
    ledger.correct("resp_1", USED, RequestOutcome(), provider="")
    ledger.correct("resp_1", MOST, RequestOutcome(), provider="")
    database.full = False
    database.write(lambda _: None)
    assert ledger.day_budget().spent_usd == pytest.approx(0.6)
    ledger.close()
    entry = entered(database)
    assert (entry.usd, spend.AWAITED in entry.usage) == (pytest.approx(0.6), False)
    assert ledger.day_budget().spent_usd == pytest.approx(0.6)
    (counted,) = ledger.counters()
    assert (counted.requests, counted.tokens) == (1, USED)
    assert counted.usd == pytest.approx(0.6)


def test_deferred_key_does_not_reveal_the_response_id():
    assert deferred_key("resp_1") != deferred_key("resp_2")
    assert "resp" not in deferred_key("resp_1")
    assert len(deferred_key("x" * 10_000)) == len(deferred_key("\udc80"))
