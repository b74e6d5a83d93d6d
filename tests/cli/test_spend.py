"""`lore spend` as a person sees it."""

import json

import pytest

from lore.memory import Memory
from lore.records import RequestCost, RequestOutcome, TokenUse
from lore.settings import load
from tests.cli.conftest import Lore

PRICES = "m input=1 output=10 cache_read=0.1 cache_write=1 window=200000"


@pytest.fixture
def lore_with_spend(lore: Lore) -> Lore:
    """Return the command line on a home from which two models were asked."""
    environ = {"LORE_EMBED_PROVIDER": "none", "LORE_PRICES": PRICES}
    with Memory.open(config=load(environ, home=lore.home).settings) as memory:
        used, without = TokenUse(1_000, 50_000, 0, 0, 100), TokenUse(1_000, 150_000, 0, 0, 100)
        reserved = memory.budget.reserve_request(RequestCost("m", used))
        memory.budget.settle_request(
            reserved, used, RequestOutcome(1, delay_s=1.5, without=without)
        )
        memory.budget.settle_request(
            memory.budget.reserve_request(RequestCost("no-such-model", used)), used
        )
    return lore


def test_spend_marks_estimates(lore_with_spend: Lore):
    out = lore_with_spend("spend").works().out
    assert "$0.0070" in out
    assert "saved (estimated)" in out
    assert "would have cost about $0.0170 (estimated): $0.0100 saved" in out
    assert "1 request waited 2 s" in out
    assert "The price of 1 call is unknown" in out
    assert "Budget" not in out


def test_spend_has_stable_keys(lore_with_spend: Lore):
    report = json.loads(lore_with_spend("spend", "--json").works().out)
    assert set(report) == {"since", "by", "lines", "total", "budget", "throttle"}
    assert report["throttle"] == {"events": 1, "totalDelayMs": 1_500}
    assert report["total"]["requests"] == 2
    assert report["budget"]["budget_usd"] is None


@pytest.mark.parametrize("by", ["model", "project", "session", "day"])
def test_spend_is_grouped_as_requested(lore_with_spend: Lore, by: str):
    assert json.loads(lore_with_spend("spend", "--by", by, "--json").works().out)["by"] == by
    assert by in lore_with_spend("spend", "--by", by, "--since", "last week").works().out


def test_spend_without_requests_says_so(lore: Lore):
    lore("remember", "something").works()
    assert "Nothing spent yet" in lore("spend").works().out


@pytest.mark.parametrize("command", ["spend", "jobs", "key list"])
@pytest.mark.parametrize("place", ["home", "memory.db"])
def test_another_file_is_not_an_empty_memory(lore: Lore, command: str, place: str):
    if place == "home":
        lore.home.write_text("a file")
    else:
        lore.home.mkdir()
        (lore.home / place).symlink_to("nowhere")
    assert lore(*command.split()).code != 0


def test_spend_without_a_memory_is_empty_and_creates_none(lore: Lore):
    assert "Nothing spent yet" in lore("spend").works().out
    report = json.loads(lore("spend", "--json").works().out)
    assert report["total"]["usd"] == report["total"]["requests"] == 0
    assert report["lines"] == []
    assert not lore.home.exists()


def test_an_unknown_time_or_group_is_refused(lore_with_spend: Lore):
    lore_with_spend("spend", "--since", "the other day, perhaps").fails_with(2)
    lore_with_spend("spend", "--by", "moon").fails_with(2)


def test_a_negative_saving_has_its_sign_before_the_dollars(lore: Lore):
    environ = {"LORE_EMBED_PROVIDER": "none", "LORE_PRICES": PRICES, "LORE_DAILY_BUDGET": "0.42"}
    with Memory.open(config=load(environ, home=lore.home).settings) as memory:
        used, without = TokenUse(2_200), TokenUse(1_000)
        memory.budget.settle_request(
            memory.budget.reserve_request(RequestCost("m", used)),
            used,
            RequestOutcome(without=without),
        )
    out = lore("spend", "--by", "session", env={"LORE_DAILY_BUDGET": "0.42"}).works().out
    assert "-$0.0012" in out
    assert "Lore cost $0.0012 more" in out
    assert "$0.0022 of $0.4200 spent or reserved" in out
    assert "(no session)" in out


def test_status_shows_the_spend_of_agents(lore_with_spend: Lore):
    assert (
        "agents   $0.01 spent today, no daily_budget is set"
        in lore_with_spend("status").works().out
    )
    told = json.loads(lore_with_spend("status", "--json").works().out)
    assert (told["agents_usd"], told["day_budget_usd"]) == (0.007, None)


def test_doctor_says_that_the_budget_is_spent_and_what_to_do(lore_with_spend: Lore):
    assert "daily_budget" not in lore_with_spend("doctor").works().out
    lore_with_spend("config", "daily_budget", "0.005").works()
    out = lore_with_spend("doctor").works().out
    assert "The daily_budget is spent" in out
    assert "'lore config daily_budget USD' raises it at once" in out
