"""How long a request waits: by what providers say of their quotas, and by the day's money."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lore.gateway.billing import ThrottleDelay
from lore.memory import Memory
from lore.records import RequestCost, Spend, TokenUse
from lore.settings import load
from lore.store import spend
from tests.fakes import FakeEmbedder, FixedClock

NEARLY_USED_UP = {
    "anthropic-ratelimit-tokens-limit": "1000",
    "anthropic-ratelimit-tokens-remaining": "10",
}


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    config = replace(load({}, home=tmp_path / "home").settings, daily_budget=None)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def test_no_delay_before_the_first_response(memory: Memory):
    assert ThrottleDelay(memory).delay_s("anthropic") == 0
    assert ThrottleDelay(memory).least_layer() == 0


def test_low_quota_delays_its_provider(memory: Memory):
    pacing = ThrottleDelay(memory)
    pacing.note_quotas("anthropic", NEARLY_USED_UP)
    assert 50 < pacing.delay_s("anthropic") <= 60
    assert pacing.delay_s("openai") == 0


def test_response_without_quota_headers_changes_nothing(memory: Memory):
    pacing = ThrottleDelay(memory)
    pacing.note_quotas("anthropic", NEARLY_USED_UP)
    pacing.note_quotas("anthropic", {"request-id": "r"})
    assert pacing.delay_s("anthropic") > 50


def test_expensive_day_demands_a_shorter_prompt(tmp_path: Path, clock: FixedClock):
    prices = ("m input=1 output=10 window=200000",)
    config = replace(load({}, home=tmp_path / "paid").settings, daily_budget=0.01, prices=prices)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        pacing = ThrottleDelay(memory)
        assert pacing.least_layer() == 0
        used = TokenUse(fresh_tokens=8_000)
        memory.budget.settle_request(memory.budget.reserve_request(RequestCost("m", used)), used)
        memory.database.write(lambda _: None)
        clock.advance(minutes=10)
        assert pacing.least_layer() == 2


def test_delay_is_at_most_half_of_the_cache_lifetime(memory: Memory):
    pacing = ThrottleDelay(memory)
    pacing.note_quotas("anthropic", NEARLY_USED_UP)
    assert pacing.delay_s("anthropic", cache_left_s=20.0) == 10.0


def test_free_request_is_delayed_by_quota_only(tmp_path: Path, clock: FixedClock):
    config = replace(load({}, home=tmp_path / "home").settings, daily_budget=0.0)
    spent = Spend("a", clock(), "request:turn", "m", {}, 1.0)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        memory.database.write(lambda db: spend.add(db, spent))
        pacing = ThrottleDelay(memory)
        assert pacing.delay_s("openai") == 0, "nobody has looked yet"
        assert pacing.least_layer("gpt-5", "openai") == 2
        assert pacing.delay_s("openai") > 50
        assert pacing.delay_s("openai", free=True) == 0
        assert pacing.least_layer("no-such-model", "openai") == 2
        assert pacing.least_layer("ollama/llama3", "openai") == 0
        pacing.note_quotas("openai", NEARLY_USED_UP)
        assert pacing.delay_s("openai", free=True) > 50
