"""`lore spend` as a person sees it."""

import json

import pytest

from lore.memory import Memory
from lore.records import RequestOutcome, TokenUse
from lore.settings import load
from tests.cli.conftest import Lore

PRICES = "m input=1 output=10 cache_read=0.1 cache_write=1 window=200000"


@pytest.fixture
def spent(lore: Lore) -> Lore:
    """Return the command line on a home from which two models were asked."""
    environ = {"LORE_EMBED_PROVIDER": "none", "LORE_PRICES": PRICES}
    with Memory.open(config=load(environ, home=lore.home).settings) as memory:
        used, without = TokenUse(1_000, 50_000, 0, 0, 100), TokenUse(1_000, 150_000, 0, 0, 100)
        reserved = memory.budget.reserve_request("m", used)
        memory.budget.settle_request(
            reserved, used, RequestOutcome(1, delay_s=1.5, without=without)
        )
        memory.budget.settle_request(memory.budget.reserve_request("no-such-model", used), used)
    return lore


def test_spend_of_today_says_what_is_an_estimate(spent: Lore):
    out = spent("spend").works().out
    assert "$0.0070" in out
    assert "saved (estimated)" in out
    assert "would have cost about $0.0170 (estimated): $0.0100 saved" in out
    assert "1 request waited 2 s" in out
    assert "The price of 1 call is unknown" in out
    assert "Budget" not in out


def test_spend_has_stable_keys(spent: Lore):
    report = json.loads(spent("spend", "--json").works().out)
    assert set(report) == {"since", "by", "lines", "total", "budget", "throttle"}
    assert report["throttle"] == {"events": 1, "totalDelayMs": 1_500}
    assert report["total"]["requests"] == 2
    assert report["budget"]["budget_usd"] is None


@pytest.mark.parametrize("by", ["model", "project", "session", "day"])
def test_spend_is_added_up_by_what_is_asked_for(spent: Lore, by: str):
    assert json.loads(spent("spend", "--by", by, "--json").works().out)["by"] == by
    assert by in spent("spend", "--by", by, "--since", "last week").works().out


def test_where_nothing_was_asked_that_is_said(lore: Lore):
    lore("remember", "something").works()
    assert "Nothing spent yet" in lore("spend").works().out


@pytest.mark.parametrize("command", ["spend", "jobs", "key list"])
@pytest.mark.parametrize("place", ["home", "memory.db"])
def test_what_stands_in_the_place_of_a_memory_is_no_empty_one(lore: Lore, command: str, place: str):
    if place == "home":
        lore.home.write_text("a file")
    else:
        lore.home.mkdir()
        (lore.home / place).symlink_to("nowhere")
    assert lore(*command.split()).code != 0


def test_before_there_is_a_memory_nothing_was_spent_and_none_is_made(lore: Lore):
    assert "Nothing spent yet" in lore("spend").works().out
    report = json.loads(lore("spend", "--json").works().out)
    assert report["total"]["usd"] == report["total"]["requests"] == 0
    assert report["lines"] == []
    assert not lore.home.exists()


def test_a_time_or_a_group_that_nobody_knows_is_refused(spent: Lore):
    spent("spend", "--since", "the other day, perhaps").fails_with(2)
    spent("spend", "--by", "moon").fails_with(2)


def test_what_lore_cost_more_is_told_with_its_sign_before_the_dollars(lore: Lore):
    environ = {"LORE_EMBED_PROVIDER": "none", "LORE_PRICES": PRICES, "LORE_DAILY_BUDGET": "0.42"}
    with Memory.open(config=load(environ, home=lore.home).settings) as memory:
        used, without = TokenUse(2_200), TokenUse(1_000)
        memory.budget.settle_request(
            memory.budget.reserve_request("m", used), used, RequestOutcome(without=without)
        )
    out = lore("spend", "--by", "session", env={"LORE_DAILY_BUDGET": "0.42"}).works().out
    assert "-$0.0012" in out
    assert "Lore cost $0.0012 more" in out
    assert "$0.0022 of $0.4200 spent or reserved" in out
    assert "(no session)" in out


def test_status_tells_what_agents_have_spent(spent: Lore):
    assert "agents   $0.01 spent today, no daily_budget is set" in spent("status").works().out
    told = json.loads(spent("status", "--json").works().out)
    assert (told["agents_usd"], told["day_budget_usd"]) == (0.007, None)


def test_doctor_says_that_the_budget_is_spent_and_what_to_do(spent: Lore):
    assert "daily_budget" not in spent("doctor").works().out
    spent("config", "daily_budget", "0.005").works()
    out = spent("doctor").works().out
    assert "The daily_budget is spent" in out
    assert "'lore config daily_budget USD' raises it at once" in out
