"""`lore spend` as a person sees it."""

import json

import pytest

from lore.memory import Memory
from lore.records import Course, TokenUse
from lore.settings import load
from tests.cli.conftest import Lore

PRICES = "m input=1 output=10 cache_read=0.1 cache_write=1 window=200000"


@pytest.fixture
def spent(lore: Lore) -> Lore:
    """Return the command line on a home from which two models were asked."""
    environ = {"LORE_EMBED_PROVIDER": "none", "LORE_PRICES": PRICES}
    with Memory.open(config=load(environ, home=lore.home).settings) as memory:
        used, without = TokenUse(1_000, 50_000, 0, 0, 100), TokenUse(1_000, 150_000, 0, 0, 100)
        reserved = memory.reserve_request("m", used)
        memory.settle_request(reserved, used, Course(1, delay_s=1.5, without=without))
        memory.settle_request(memory.reserve_request("no-such-model", used), used)
    return lore


def test_spend_of_today_says_what_is_an_estimate(spent: Lore):
    out = spent("spend").works().out
    assert "$0.0070" in out
    assert "saved (estimated)" in out
    assert "would have cost about $0.0170 (estimated): $0.0100 saved" in out
    assert "1 request waited 2 s" in out
    assert "The price of 1 call is not known" in out
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
    lore("spend").fails_with(3)
    lore("remember", "something").works()
    assert "Nothing was asked of a model." in lore("spend").works().out


def test_a_time_or_a_group_that_nobody_knows_is_refused(spent: Lore):
    spent("spend", "--since", "the other day, perhaps").fails_with(2)
    spent("spend", "--by", "moon").fails_with(2)
