from __future__ import annotations

import pytest

from lore.budget.catalogue import Catalogue
from lore.budget.daily import RequestLedger
from lore.budget.entries import fetched_key
from lore.records import Course
from lore.records.dialogues import TokenUse
from lore.store import spend

PRICES = ("m input=1 output=10 window=200000",)
"""In dollars for a million tokens."""

MOST = TokenUse(1_000_000, output_tokens=100_000)
USED = TokenUse(500_000, output_tokens=10_000)
AWAITED = Course(estimated=True, fetched_by="resp_1")


def entered(database):
    database.write(lambda _: None)
    with database.read() as db:
        (entry,) = spend.newest(db)
    return entry


@pytest.fixture
def ledger(database):
    ledger = RequestLedger(database, Catalogue(PRICES), 10.0, patience_s=30)
    ledger.settle(ledger.reserve("m", MOST), MOST, AWAITED)
    assert entered(database).usd == pytest.approx(2.0)
    return ledger


def test_what_is_fetched_is_entered_once_in_the_place_of_what_it_might_take(database, ledger):
    ledger.correct("resp_1", USED, Course(), provider="")
    ledger.correct("resp_1", MOST, Course(), provider="")
    entry = entered(database)
    assert (entry.usd, entry.without_usd) == (pytest.approx(0.6), pytest.approx(0.6))
    assert entry.usage == {"input": 500_000, "output": 10_000, "cache_read": 0, "cache_write": 0}
    (counted,) = ledger.counters()
    assert (counted.requests, counted.tokens, counted.usd) == (1, USED, pytest.approx(0.6))


def test_nothing_stays_set_aside_for_what_is_awaited(database, ledger):
    assert ledger.day().reserved_usd == 0
    ledger.correct("resp_1", USED, Course(), provider="")
    entered(database)
    assert ledger.day().spent_usd == pytest.approx(0.6)


def test_an_answer_that_does_not_say_has_the_prompt_that_was_entered(database, ledger):
    ledger.correct("resp_1", TokenUse(output_tokens=7), Course(estimated=True), provider="")
    usage = entered(database).usage
    assert (usage["input"], usage["output"], usage["estimated"]) == (1_000_000, 7, 1)


def test_what_nobody_awaits_changes_nothing(database, ledger):
    before = entered(database)
    ledger.correct("resp_2", USED, Course(), provider="")
    assert entered(database) == before
    assert ledger.counters()[0].tokens == TokenUse()


def test_an_id_that_a_provider_gives_twice_hides_no_money(database, ledger):
    ledger.settle(ledger.reserve("m", MOST), MOST, AWAITED)
    database.write(lambda _: None)
    assert ledger.day().spent_usd == pytest.approx(4.0)
    ledger.correct("resp_1", USED, Course(), provider="")
    database.write(lambda _: None)
    assert ledger.day().spent_usd == pytest.approx(2.6)


@pytest.mark.parametrize("full", [True, False])
def test_what_is_fetched_is_not_lost_while_its_entry_waits_for_a_full_store(database, full):
    ledger = RequestLedger(database, Catalogue(PRICES), 10.0, patience_s=30)
    reserved = ledger.reserve("m", MOST)
    database.full = True
    ledger.settle(reserved, MOST, AWAITED)
    database.full = full
    ledger.correct("resp_1", USED, Course(), provider="")
    ledger.correct("resp_1", MOST, Course(), provider="")
    database.full = False
    database.write(lambda _: None)
    assert ledger.day().spent_usd == pytest.approx(0.6)
    ledger.close()
    entry = entered(database)
    assert (entry.usd, spend.AWAITED in entry.usage) == (pytest.approx(0.6), False)
    assert ledger.day().spent_usd == pytest.approx(0.6)
    (counted,) = ledger.counters()
    assert (counted.requests, counted.tokens) == (1, USED)
    assert counted.usd == pytest.approx(0.6)


def test_a_key_says_nothing_of_the_id_that_it_is_made_of():
    assert fetched_key("resp_1") != fetched_key("resp_2")
    assert "resp" not in fetched_key("resp_1")
    assert len(fetched_key("x" * 10_000)) == len(fetched_key("\udc80"))
