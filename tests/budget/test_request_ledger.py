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

from lore.budget import BackgroundLedger
from lore.budget.prices import PriceCatalogue
from lore.budget.request_ledger import RETRY_AFTER_S, RequestLedger, deferred_key
from lore.errors import BudgetSpent
from lore.llm.chat import Usage
from lore.records import RequestOutcome, Spend
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
    return RequestLedger(database, PriceCatalogue(PRICES), budget_usd, store_timeout_s=30, **more)


def entries(database):
    database.write(lambda _: None)
    with database.read() as db:
        return newest_spend(db, limit=1_000)


def reserved_rows(database):
    with database.read() as db:
        return db.value("SELECT COUNT(*) FROM spend_reservations")


def test_a_request_is_entered_with_all_that_is_known_of_it(database):
    def begin(db):
        project_n = project_rows.ensure_project(db, "/code/app", now=NOON)
        sessions.ensure_session(db, "talk", agent="a", project_n=project_n, started_at=NOON)

    database.write(begin)
    ledger = ledger_of(database)
    reserved = ledger.reserve("m", DOLLAR, session="talk", kind="turn")
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
def test_money_is_entered_whatever_the_session_is_called(database, name):
    ledger = ledger_of(database)
    ledger.settle(ledger.reserve("m", CENT, session=name, project=name), CENT)
    (entry,) = entries(database)
    assert (entry.session_id, entry.project_id, entry.usd) == (None, None, pytest.approx(0.01))


def test_without_a_budget_nothing_is_set_aside_and_nobody_is_refused(database):
    ledger = ledger_of(database)
    for _ in range(5):
        ledger.reserve("m", TokenUse(10**12))
    assert reserved_rows(database) == 0
    assert ledger.day_budget().budget_usd is None


def test_with_a_budget_money_is_set_aside_until_it_is_settled_or_released(database):
    ledger = ledger_of(database, 10.0)
    one, other = ledger.reserve("m", DOLLAR), ledger.reserve("m", DOLLAR)
    assert ledger.day_budget().reserved_usd == pytest.approx(2)
    ledger.settle(one, CENT)
    ledger.release(other)
    assert len(entries(database)) == 1
    assert ledger.day_budget().reserved_usd == 0
    assert ledger.day_budget().spent_usd == pytest.approx(0.01)


def test_a_spent_budget_refuses_until_midnight(database, clock):
    ledger = ledger_of(database, 1.0)
    ledger.settle(ledger.reserve("m", CENT), DOLLAR)
    entries(database)
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve("m", CENT)
    assert caught.value.until == NOON.replace(day=14, hour=0)
    assert [one.refused for one in ledger.counters()] == [1]
    clock.advance(hours=12)
    ledger.reserve("m", CENT)


def test_where_all_is_only_set_aside_one_may_come_again_soon(database):
    ledger = ledger_of(database, 1.0)
    ledger.reserve("m", DOLLAR)
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve("m", CENT)
    assert caught.value.until == NOON + timedelta(seconds=RETRY_AFTER_S)


def test_a_budget_of_nothing_lets_only_what_is_free_pass(database):
    ledger = ledger_of(database, 0.0)
    with pytest.raises(BudgetSpent):
        ledger.reserve("m", CENT)
    ledger.settle(ledger.reserve("qwen3:8b", CENT, provider="ollama"), CENT)
    assert [entry.usd for entry in entries(database)] == [0.0]


def test_a_price_that_nobody_knows_is_entered_as_such(database):
    ledger = RequestLedger(database, PriceCatalogue(), 1.0, store_timeout_s=30)
    assert (
        ledger.settle(ledger.reserve("no-such-model", CENT), CENT, RequestOutcome(without=DOLLAR))
        is None
    )
    (entry,) = entries(database)
    assert (entry.usd, entry.without_usd, entry.usage["unpriced"]) == (0.0, 0.0, 1)


def test_of_200_requests_at_once_with_money_for_10_one_more_passes_at_most(database):
    ledger = ledger_of(database, 10.5)
    start = threading.Barrier(40)

    def ask(number):
        if number < 40:
            start.wait()
        try:
            reserved = ledger.reserve("m", DOLLAR)
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
            reserved = ledger.reserve("m", DOLLAR)
        except BudgetSpent:
            return 0
        ledger.settle(reserved, DOLLAR)
        return 1

    with ThreadPoolExecutor(8) as pool:
        count = sum(pool.map(ask, range(50)))
    database.close()
    passed.put(count)


def test_processes_beside_each_other_share_one_budget(database):
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


def test_background_work_and_requests_share_the_budget_of_the_day(database):
    background = BackgroundLedger(database, 5.0, whole_usd=1.0, price=lambda *_: 0.6)
    background.settle(background.reserve("observe", "openai:m", Usage(1, 1)), Usage(1, 1))
    requests = ledger_of(database, 1.0)
    assert requests.day_budget().spent_usd == pytest.approx(0.6)
    requests.settle(requests.reserve("m", CENT), TokenUse(400_000))
    entries(database)
    with pytest.raises(BudgetSpent):
        requests.reserve("m", CENT)
    with pytest.raises(BudgetSpent, match="Today"):
        background.reserve("observe", "openai:m", Usage(1, 1))
    BackgroundLedger(database, 5.0, price=lambda *_: 0.6).reserve("observe", "m", Usage(1, 1))


def locked(database):
    """Return a connection that holds the lock of the database, as a stuck process would."""
    holder = sqlite.open_connection(database.path, busy_timeout_s=5, read_only=False)
    holder.begin_write()
    return holder


def test_a_locked_store_stops_nobody_but_the_count_goes_on(database):
    ledger = RequestLedger(database, PriceCatalogue(PRICES), 3.0, store_timeout_s=0.05)
    ledger.settle(ledger.reserve("m", DOLLAR), DOLLAR)
    entries(database)
    ledger.day_budget()
    holder = locked(database)
    for _ in range(2):
        ledger.settle(ledger.reserve("m", DOLLAR), DOLLAR)
    with pytest.raises(BudgetSpent):
        ledger.reserve("m", DOLLAR)
    holder.rows("ROLLBACK")
    holder.close()
    eventually(lambda: len(entries(database)) == 3)
    eventually(lambda: reserved_rows(database) == 0)
    assert ledger.day_budget().spent_usd == pytest.approx(3)


def test_a_store_that_is_locked_while_200_requests_come_lets_one_more_pass_at_most(database):
    ledger = RequestLedger(database, PriceCatalogue(PRICES), 10.5, store_timeout_s=0.05)
    first = [ledger.reserve("m", DOLLAR) for _ in range(4)]
    holder = locked(database)

    def ask(_number):
        try:
            return ledger.reserve("m", DOLLAR)
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


def test_without_a_budget_a_locked_store_is_not_waited_for(database):
    ledger = ledger_of(database)
    holder = locked(database)
    ledger.settle(ledger.reserve("m", CENT), CENT)
    assert ledger.counters()[0].requests == 1
    holder.rows("ROLLBACK")
    holder.close()
    eventually(lambda: len(entries(database)) == 1)


def test_a_store_that_can_only_be_read_stops_nobody_either(database, tmp_path):
    database.write(lambda db: spend.add(db, Spend("a", NOON, "request:turn", "m", {}, 1.0)))
    reader = open_database(
        database.path, busy_timeout_s=5, backups=None, read_only=True, now=FixedClock()
    )
    ledger = ledger_of(reader, 3.0)
    ledger.day_budget()
    passed = [ledger.settle(ledger.reserve("m", DOLLAR), DOLLAR) for _ in range(2)]
    assert passed == [pytest.approx(1.0)] * 2
    with pytest.raises(BudgetSpent):
        ledger.reserve("m", DOLLAR)
    reader.close()


def test_what_a_store_refused_is_entered_when_it_takes_it_again(database):
    ledger = ledger_of(database)
    database.full = True
    ledger.settle(ledger.reserve("m", CENT), CENT)
    database.full = False
    ledger.settle(ledger.reserve("m", CENT), CENT)
    assert len(entries(database)) == 2


def test_without_a_budget_nothing_presses(database):
    assert ledger_of(database).pressure().delay_s == 0


def test_the_pressure_is_that_of_the_last_hour(database, clock):
    ledger = ledger_of(database, 10.0)
    assert not ledger.pressure().exceeds
    ledger.settle(ledger.reserve("m", DOLLAR), TokenUse(9_000_000))
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
            ledger.reserve("m", CENT), TokenUse(1, 2, 3, 4, 5), RequestOutcome(delay_s=delay_s)
        )
    (counted,) = ledger.counters()
    assert (counted.model, counted.requests, counted.delayed, counted.delay_ms) == (
        "m",
        3,
        2,
        2_500,
    )
    assert counted.tokens == TokenUse(3, 6, 9, 12, 15)


def test_any_number_of_models_is_counted_with_few_names(database):
    from lore.budget.reports import MAX_MODELS

    ledger = ledger_of(database)
    for number in range(MAX_MODELS + 50):
        ledger.settle(ledger.reserve(f"ollama/{number}", CENT), CENT)
    counted = ledger.counters()
    assert len(counted) == MAX_MODELS + 1
    assert sum(one.requests for one in counted) == MAX_MODELS + 50


def test_each_round_of_a_request_has_the_price_of_its_own_length(database):
    ledger = RequestLedger(database, PriceCatalogue(), store_timeout_s=30)
    one = TokenUse(150_000)
    reserved = ledger.reserve("claude-sonnet-4-5", one, provider="anthropic")
    usd = ledger.settle(reserved, TokenUse(300_000), RequestOutcome(rounds=(one, one)))
    assert usd == pytest.approx(2 * 0.45)


def test_what_a_provider_did_not_report_is_marked(database):
    ledger = ledger_of(database)
    ledger.settle(ledger.reserve("m", CENT), CENT, RequestOutcome(estimated=True))
    ledger.settle(ledger.reserve("m", CENT), CENT)
    assert sorted("estimated" in entry.usage for entry in entries(database)) == [False, True]


def test_money_is_set_aside_for_the_service_that_is_asked_for(database):
    ledger = RequestLedger(database, PriceCatalogue(), 100.0, store_timeout_s=30)
    asked = [
        ledger.reserve("claude-opus-4-6", TokenUse(100_000), provider="anthropic", service=service)
        for service in ("", "fast")
    ]
    assert [one.usd for one in asked] == [pytest.approx(0.5), pytest.approx(3.0)]


def test_money_reserved_in_this_process_is_not_reported_as_spent(database):
    ledger = ledger_of(database, 0.045, store_backoff_s=0)
    database.full = True
    ledger.reserve("m", DOLLAR)
    database.full = False
    with pytest.raises(BudgetSpent, match=r"left of today's \$0\.045 is set aside") as caught:
        ledger.reserve("m", CENT)
    assert caught.value.until == NOON + timedelta(seconds=RETRY_AFTER_S)


def test_a_refusal_shows_all_digits_and_how_to_raise_the_budget(database):
    ledger = ledger_of(database, 0.045)
    ledger.settle(ledger.reserve("m", CENT), TokenUse(50_000))
    with pytest.raises(BudgetSpent, match=r"Today \$0\.05 of \$0\.045 are spent") as caught:
        ledger.reserve("m", CENT)
    assert "lore config daily_budget" in caught.value.hint


def test_a_budget_of_nothing_promises_nothing_for_tomorrow(database):
    with pytest.raises(BudgetSpent) as caught:
        ledger_of(database, 0.0).reserve("m", CENT)
    assert caught.value.until is None
    assert "00:00" not in f"{caught.value} {caught.value.hint}"


def test_what_a_full_store_refused_is_entered_with_the_next_request_though_that_is_refused(
    database,
):
    ledger = ledger_of(database, 1.0)
    reserved = ledger.reserve("m", CENT)
    database.full = True
    ledger.settle(reserved, TokenUse(2_000_000))
    database.full = False
    with pytest.raises(BudgetSpent):
        ledger.reserve("m", CENT)
    assert [entry.usd for entry in entries(database)] == [pytest.approx(2.0)]


def test_what_a_full_store_refused_is_entered_when_the_ledger_is_closed(database):
    ledger = ledger_of(database)
    database.full = True
    ledger.settle(ledger.reserve("m", CENT), CENT)
    ledger.settle(ledger.reserve("m", CENT), CENT)
    database.full = False
    ledger.close()
    assert len(entries(database)) == 2


def test_a_client_that_asks_one_thing_after_the_other_is_not_refused_for_itself(database):
    ledger = ledger_of(database, 1.0, settle_wait_s=30)
    for _ in range(5):
        reserved = ledger.reserve("m", DOLLAR)
        later = threading.Timer(0.01, ledger.settle, (reserved, CENT))
        later.start()
    later.join()
    assert len(entries(database)) == 5


def test_what_a_request_did_not_take_is_given_back_before_it_is_settled(database):
    ledger = ledger_of(database, 1.0)
    first = ledger.reserve("m", DOLLAR)
    ledger.release_unused(first, CENT)
    second = ledger.reserve("m", DOLLAR)
    assert ledger.day_budget().reserved_usd == pytest.approx(1.01)
    for reserved in (first, second):
        ledger.settle(reserved, CENT)
    assert [entry.usd for entry in entries(database)] == [pytest.approx(0.01)] * 2
    assert ledger.day_budget().reserved_usd == 0


def test_money_is_set_aside_for_a_stream_as_long_as_it_runs(database, clock):
    ledger = ledger_of(database, 1.0)
    ledger.reserve("m", DOLLAR)
    clock.advance(minutes=30)
    with pytest.raises(BudgetSpent):
        ledger.reserve("m", CENT)


def kill_itself(path: Path) -> None:
    database = open_database(path, busy_timeout_s=30, backups=None, now=FixedClock())
    ledger_of(database, 5.0).reserve("m", TokenUse(1_000_000, output_tokens=300_000))
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_had_under_way_is_entered_with_its_prompt(database):
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


def test_money_of_a_clock_that_ran_ahead_counts_on_its_own_day_only(database, clock):
    tomorrow = Spend("a", NOON + timedelta(days=1), "request:turn", "m", {}, 5.0)
    database.write(lambda db: spend.add(db, tomorrow))
    ledger = ledger_of(database, 1.0)
    ledger.release(ledger.reserve("m", CENT))
    assert ledger.day_budget().spent_usd == 0
    clock.advance(days=1)
    with pytest.raises(BudgetSpent):
        ledger.reserve("m", CENT)


def test_a_request_that_cannot_wait_is_decided_by_local_knowledge(database):
    ledger = ledger_of(database, 1.0)
    ledger.settle(ledger.reserve("m", CENT), CENT)
    entries(database)
    ledger.day_budget()
    holder = locked(database)
    first = ledger.reserve("m", DOLLAR, within_s=0)
    with pytest.raises(BudgetSpent) as caught:
        ledger.reserve("m", CENT, within_s=0)
    assert caught.value.until == NOON + timedelta(seconds=RETRY_AFTER_S)
    holder.rows("ROLLBACK")
    holder.close()
    ledger.release(first)
    eventually(lambda: not reserved_rows(database))


def test_who_cannot_wait_does_not_wait_for_the_lists_either(database):
    class Slow:
        def find(self, *_asked: object) -> None:
            release.wait(PATIENCE_S)

    release = threading.Event()
    ledger = RequestLedger(database, PriceCatalogue(lists=Slow()), 1.0, store_timeout_s=30)
    assert ledger.reserve("claude-sonnet-5", CENT, within_s=0).usd is None
    release.set()


def test_what_is_remembered_by_its_money_alone_is_spent_all_day(database, clock):
    ledger = ledger_of(database, 1.0, max_unwritten=0)
    reserved = ledger.reserve("m", CENT, within_s=0)
    database.full = True
    ledger.settle(reserved, DOLLAR)
    database.full = False
    ledger.day_budget()
    with pytest.raises(BudgetSpent):
        ledger.reserve("m", CENT)
    clock.advance(days=1)
    ledger.reserve("m", CENT)


def test_a_request_sees_one_budget_however_often_that_changes(database):
    told = iter([1.0, None, None, None, None, None])
    ledger = ledger_of(database, current_budget=lambda: next(told))
    reserved = ledger.reserve("m", DOLLAR)
    assert reserved.is_stored
    ledger.release_unused(reserved, CENT)
    entries(database)
    assert ledger.day_budget().reserved_usd == pytest.approx(0.01)


def test_a_budget_that_was_raised_slows_nobody_down_by_the_former_one(database, clock):
    allowed = [10.0]
    ledger = ledger_of(database, current_budget=lambda: allowed[0])
    ledger.settle(ledger.reserve("m", DOLLAR), TokenUse(9_000_000))
    entries(database)
    clock.advance(minutes=10)
    assert ledger.pressure().delay_s > 30
    allowed[0] = 10_000.0
    ledger.release(ledger.reserve("m", CENT))
    assert ledger.pressure(at_hand=True).delay_s == 0
    assert ledger.pressure().delay_s == 0


def test_who_sets_money_aside_sees_the_pace_of_the_day(database, clock):
    ledger = ledger_of(database, 10.0)
    ledger.settle(ledger.reserve("m", DOLLAR), TokenUse(9_000_000))
    entries(database)
    clock.advance(minutes=10)
    assert ledger.pressure(at_hand=True).delay_s == 0, "seen ten minutes ago"
    ledger.release(ledger.reserve("m", CENT))
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
    ledger = RequestLedger(database, PriceCatalogue(DEFERRED_PRICES), 10.0, store_timeout_s=30)
    ledger.settle(ledger.reserve("m", MOST), MOST, AWAITED)
    assert entered(database).usd == pytest.approx(2.0)
    return ledger


def test_what_is_fetched_is_entered_once_in_the_place_of_what_it_might_take(database, ledger):
    ledger.correct("resp_1", USED, RequestOutcome(), provider="")
    ledger.correct("resp_1", MOST, RequestOutcome(), provider="")
    entry = entered(database)
    assert (entry.usd, entry.without_usd) == (pytest.approx(0.6), pytest.approx(0.6))
    assert entry.usage == {"input": 500_000, "output": 10_000, "cache_read": 0, "cache_write": 0}
    (counted,) = ledger.counters()
    assert (counted.requests, counted.tokens, counted.usd) == (1, USED, pytest.approx(0.6))


def test_nothing_stays_set_aside_for_what_is_awaited(database, ledger):
    assert ledger.day_budget().reserved_usd == 0
    ledger.correct("resp_1", USED, RequestOutcome(), provider="")
    entered(database)
    assert ledger.day_budget().spent_usd == pytest.approx(0.6)


def test_an_answer_that_does_not_say_has_the_prompt_that_was_entered(database, ledger):
    ledger.correct("resp_1", TokenUse(output_tokens=7), RequestOutcome(estimated=True), provider="")
    usage = entered(database).usage
    assert (usage["input"], usage["output"], usage["estimated"]) == (1_000_000, 7, 1)


def test_what_nobody_awaits_changes_nothing(database, ledger):
    before = entered(database)
    ledger.correct("resp_2", USED, RequestOutcome(), provider="")
    assert entered(database) == before
    assert ledger.counters()[0].tokens == TokenUse()


def test_an_id_that_a_provider_gives_twice_hides_no_money(database, ledger):
    ledger.settle(ledger.reserve("m", MOST), MOST, AWAITED)
    database.write(lambda _: None)
    assert ledger.day_budget().spent_usd == pytest.approx(4.0)
    ledger.correct("resp_1", USED, RequestOutcome(), provider="")
    database.write(lambda _: None)
    assert ledger.day_budget().spent_usd == pytest.approx(2.6)


@pytest.mark.parametrize("full", [True, False])
def test_what_is_fetched_is_not_lost_while_its_entry_waits_for_a_full_store(database, full):
    ledger = RequestLedger(database, PriceCatalogue(DEFERRED_PRICES), 10.0, store_timeout_s=30)
    reserved = ledger.reserve("m", MOST)
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


def test_a_key_says_nothing_of_the_id_that_it_is_made_of():
    assert deferred_key("resp_1") != deferred_key("resp_2")
    assert "resp" not in deferred_key("resp_1")
    assert len(deferred_key("x" * 10_000)) == len(deferred_key("\udc80"))
