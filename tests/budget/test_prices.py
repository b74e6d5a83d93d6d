"""Prices from the lists and the settings, and output limits."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import astuple, replace
from datetime import UTC, datetime

import pytest

from lore.budget.prices import (
    DEFAULT_OUTPUT_TOKENS,
    FREE_PRICE,
    PRICE_LISTS,
    PriceCatalogue,
    find_call_cost,
    max_output_tokens,
)
from lore.llm.chat import Usage
from lore.llm.presets import PRESETS
from lore.records.gateway import ModelPrice, TokenUse
from tests.fakes import NOON, FixedClock


@pytest.mark.parametrize(
    ("identity", "usd"),
    [
        ("anthropic:claude-haiku-4-5", 0.006),
        ("openai:gpt-5-mini", 0.00225),
        ("openrouter:anthropic/claude-haiku-4.5", 0.006),
        ("gemini:gemini-2.5-flash", 0.0028),
        ("ollama:llama3", 0.0),
        ("vllm:anything", 0.0),
        ("openai:no-such-model", None),
        ("unheard-of:model", None),
    ],
)
def test_a_call_has_the_price_of_its_list(identity, usd):
    assert find_call_cost(identity, Usage(1000, 1000), NOON) == usd


def test_what_was_read_from_a_cache_costs_less():
    fresh = find_call_cost("anthropic:claude-haiku-4-5", Usage(1000, 10), NOON)
    cached = find_call_cost("anthropic:claude-haiku-4-5", Usage(1000, 10, 900), NOON)
    written = find_call_cost("anthropic:claude-haiku-4-5", Usage(1000, 10, 0, 900), NOON)
    assert fresh is not None
    assert cached is not None
    assert written is not None
    assert cached < fresh < written


def test_a_usage_that_cannot_be_has_a_price_or_none():
    find_call_cost("anthropic:claude-haiku-4-5", Usage(10, 10, 900, 900), NOON)


def test_what_a_provider_charged_counts_before_any_list():
    assert find_call_cost("openrouter:no-such-model", Usage(1, 1, usd=0.25), NOON) == 0.25


@pytest.mark.parametrize("provider", [name for name in PRESETS if PRESETS[name].model])
def test_every_usual_model_has_a_price(provider):
    assert provider in PRICE_LISTS
    assert find_call_cost(f"{provider}:{PRESETS[provider].model}", Usage(1000, 1000), NOON)


@pytest.mark.parametrize("alias", ["haiku", "sonnet", "opus"])
def test_every_alias_of_the_command_has_a_price(alias):
    assert find_call_cost(f"claude-cli:{alias}", Usage(1000, 1000), NOON)


def test_price_of_unlisted_model_is_unknown_and_local_model_is_free():
    assert find_call_cost("openai:mystery", Usage(1000, 1000), NOON) is None
    assert find_call_cost("ollama:llama3", Usage(1000, 1000), NOON) == 0.0


def test_the_lists_are_loaded_only_when_a_price_is_asked_for():
    script = (
        "import lore.budget.prices, sys; print({'genai_prices', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


class FakeLists:
    """Lists of one model; they can be held back, and count how often they are asked."""

    def __init__(self):
        self.asked = []
        self.held = threading.Event()
        self.held.set()

    def find(self, model, provider, at, service=""):
        self.held.wait()
        self.asked.append(model)
        return ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0) if model == "listed" else None


@pytest.fixture(scope="module")
def catalogue():
    return PriceCatalogue(now=FixedClock())


@pytest.mark.parametrize(
    ("model", "provider", "price"),
    [
        ("claude-sonnet-4-5-20250929", "anthropic", (3.0, 15.0, 0.3, 3.75, 6.0, 200_000)),
        ("claude-opus-4-5-20251101", "", (5.0, 25.0, 0.5, 6.25, 10.0, 200_000)),
        ("claude-haiku-4-5", "", (1.0, 5.0, 0.1, 1.25, 2.0, 200_000)),
        # Writing to a cache that has no price of its own costs what input does.
        ("gpt-5-mini", "openai", (0.25, 2.0, 0.025, 0.25, 0.25, 400_000)),
        ("gpt-5.2-codex", "", (1.75, 14.0, 0.175, 1.75, 1.75, 400_000)),
        # No window is listed for it.
        ("gemini-2.5-pro", "gemini", (1.25, 10.0, 0.125, 1.25, 1.25, 1_048_576)),
        # The list has no price for an hour: twice the input.
        ("anthropic/claude-sonnet-4.5", "openrouter", (3.0, 15.0, 0.3, 3.75, 6.0, 1_000_000)),
        ("claude-sonnet-4-5[1m]", "anthropic", (3.0, 15.0, 0.3, 3.75, 6.0, 1_000_000)),
    ],
)
def test_a_model_has_the_price_of_its_list(catalogue, model, provider, price):
    assert replace(catalogue.find(model, provider), longer=()) == ModelPrice(*price)


def test_long_prompts_have_a_price_of_their_own(catalogue):
    pricing = catalogue.find("claude-sonnet-4-5", "anthropic")
    assert pricing.at(200_000).cache_read_usd == 0.3
    assert pricing.at(200_001) == ModelPrice(6.0, 22.5, 0.6, 7.5, 12.0, 200_000)
    short, long = TokenUse(1_000, 199_000), TokenUse(1_000, 199_001)
    assert pricing.cost(long) == pytest.approx(2 * pricing.cost(short), rel=1e-4)


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-5-5"])
@pytest.mark.parametrize("tokens", [10_000, 300_000])
def test_a_request_costs_what_the_package_says(catalogue, model, tokens):
    usage = Usage(tokens, 500, tokens // 2, tokens // 4)
    use = TokenUse(tokens - tokens // 2 - tokens // 4, tokens // 2, tokens // 4, 0, 500)
    expected = find_call_cost(f"anthropic:{model}", usage, NOON)
    assert catalogue.find(model, "anthropic").cost(use) == pytest.approx(expected)


def test_each_class_of_tokens_is_counted_once():
    pricing = ModelPrice(1.0, 10.0, 100.0, 1_000.0, 10_000.0)
    assert pricing.cost(TokenUse(1, 2, 3, 4, 5)) == pytest.approx(43_251e-6)


@pytest.mark.parametrize("model", ["no-such-model", "", "///"])
def test_what_is_listed_nowhere_has_no_price(catalogue, model):
    assert catalogue.find(model) is None


@pytest.mark.parametrize(
    ("model", "provider"), [("qwen3:8b", "ollama"), ("m", "vllm"), ("ollama/llama3", "")]
)
def test_a_machine_of_ones_own_charges_nothing_and_needs_no_list(model, provider):
    lists = FakeLists()
    assert PriceCatalogue(lists=lists).find(model, provider) == FREE_PRICE
    assert not lists.asked


@pytest.mark.parametrize(
    ("row", "price"),
    [
        ("listed input=2", (2.0, 15.0, 0.3, 3.75, 6.0, 200_000)),
        ("listed input=1 output=2", (1.0, 2.0, 0.3, 3.75, 6.0, 200_000)),
        ("listed input=2 window=500000", (2.0, 15.0, 0.3, 3.75, 6.0, 500_000)),
        ("listed output=20", (3.0, 20.0, 0.3, 3.75, 6.0, 200_000)),
        ("listed window=500000", (3.0, 15.0, 0.3, 3.75, 6.0, 500_000)),
        ("listed cache_read=0.1 cache_write=1", (3.0, 15.0, 0.1, 1.0, 6.0, 200_000)),
    ],
)
def test_the_settings_go_before_the_lists(row, price):
    found = PriceCatalogue([row], lists=FakeLists()).find("listed")
    assert found is not None
    assert replace(found, longer=()) == ModelPrice(*price)


@pytest.mark.parametrize(
    ("row", "longer"),
    [
        ("claude-sonnet-4-5 input=2", (4.0, 22.5, 0.6, 7.5, 12.0, 200_000)),
        ("claude-sonnet-4-5 output=10", (6.0, 15.0, 0.6, 7.5, 12.0, 200_000)),
        ("claude-sonnet-4-5 window=300000", (6.0, 22.5, 0.6, 7.5, 12.0, 300_000)),
        ("claude-sonnet-4-5 input=0", (0.0, 22.5, 0.6, 7.5, 12.0, 200_000)),
    ],
)
def test_a_configured_price_scales_for_long_prompts_like_the_listed_one(row, longer):
    found = PriceCatalogue([row], now=FixedClock()).find("claude-sonnet-4-5", "anthropic")
    assert found is not None
    assert astuple(found.at(200_001))[:6] == pytest.approx(longer)


def test_a_configured_price_of_a_free_model_applies_to_long_prompts_too():
    free, dear = ModelPrice(0.0, 0.0, 0.0, 0.0, 0.0), ModelPrice(1.0, 5.0, 1.0, 1.0, 1.0)

    class Stepped:
        def find(self, model, provider, at, service=""):
            return replace(free, longer=((100, dear),))

    found = PriceCatalogue(["m output=2"], lists=Stepped()).find("m")
    assert found is not None
    assert found.at(101).output_usd == 5.0
    assert found.output_usd == 2.0


@pytest.mark.parametrize(
    ("row", "price"),
    [
        ("ollama/x input=2 output=8", (2.0, 8.0, 2.0, 2.0, 2.0, 128_000)),
        ("ollama/x window=32000", (0.0, 0.0, 0.0, 0.0, 0.0, 32_000)),
    ],
)
def test_a_local_model_may_have_a_configured_price(row, price):
    found = PriceCatalogue([row], lists=FakeLists()).find("ollama/x")
    assert found == ModelPrice(*price)


def test_the_settings_price_a_model_that_no_list_has():
    rows = ["mine input=2 output=8 cache_read=0.2 cache_write=2.5 cache_write_1h=4 window=64000"]
    found = PriceCatalogue(rows, lists=FakeLists()).find("mine")
    assert found == ModelPrice(2.0, 8.0, 0.2, 2.5, 4.0, 64_000)
    assert PriceCatalogue(["mine output=8"], lists=FakeLists()).find("mine") is None


def test_a_price_is_looked_up_once():
    lists = FakeLists()
    catalogue = PriceCatalogue(lists=lists)
    for _ in range(3):
        assert catalogue.find("listed")
        assert catalogue.find("nowhere") is None
    assert sorted(lists.asked) == ["", "listed", "nowhere"]


def test_who_cannot_wait_goes_on_without_a_price():
    lists = FakeLists()
    lists.held.clear()
    catalogue = PriceCatalogue(lists=lists)
    assert catalogue.find("listed", wait_s=0) is None
    lists.held.set()
    assert catalogue.find("listed")


def test_a_configured_price_is_used_until_the_lists_are_loaded():
    lists = FakeLists()
    lists.held.clear()
    catalogue = PriceCatalogue(["listed input=2 window=9000"], lists=lists)
    assert catalogue.find("listed", wait_s=0) == ModelPrice(2.0, 0.0, 2.0, 2.0, 2.0, 9_000)
    lists.held.set()
    assert catalogue.find("listed") == ModelPrice(2.0, 15.0, 0.3, 3.75, 6.0, 9_000)


def test_the_price_of_a_local_model_needs_no_lists():
    script = (
        "import lore.budget.prices as c, sys; c.PriceCatalogue().find('m', 'ollama');"
        "print({'genai_prices', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("identity", "usage", "usd"),
    [
        # The settings, the lists, and what the provider itself says.
        ("openai:mine", Usage(1_000_000, 1_000, 400_000), 0.6 * 2 + 0.4 * 0.2 + 0.008),
        ("anthropic:claude-haiku-4-5", Usage(1_000, 1_000), 0.006),
        ("openai:mine", Usage(1, 1, usd=0.25), 0.25),
        ("openai:no-such-model", Usage(1, 1), None),
        ("ollama:qwen3", Usage(1, 1), 0.0),
    ],
)
def test_a_call_to_a_chat_has_a_price_too(identity, usage, usd):
    catalogue = PriceCatalogue(["mine input=2 output=8 cache_read=0.2 window=9000"])
    assert catalogue.cost(identity, usage, NOON) == (usd if usd is None else pytest.approx(usd))


def test_any_number_of_models_can_be_asked_for():
    catalogue = PriceCatalogue(lists=FakeLists())
    for number in range(2_500):
        assert catalogue.find(f"ollama/{number}") is not None
    assert len(catalogue._found) <= 1_000


def test_a_price_that_depends_on_the_hour_is_looked_up_again():
    night, day = datetime(2026, 11, 1, 0, 20, tzinfo=UTC), datetime(2026, 11, 1, 0, 35, tzinfo=UTC)
    now = FixedClock(night)
    catalogue = PriceCatalogue(now=now)
    cheap = catalogue.find("deepseek-chat")
    assert catalogue.find("deepseek-chat") is cheap
    now.advance(seconds=(day - night).total_seconds())
    dear = catalogue.find("deepseek-chat")
    assert cheap is not None
    assert dear is not None
    assert dear.input_usd == pytest.approx(2 * cheap.input_usd)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-4-5-20250929", 64_000),
        ("claude-opus-4-1", 32_000),
        ("claude-opus-5-5", 128_000),
        ("anthropic/claude-3-5-haiku-latest", 8_192),
        ("gpt-4o-mini", 16_384),
        ("gpt-5.1-codex", 128_000),
        ("models/gemini-2.5-pro", 65_536),
        ("O3-pro", 100_000),
        ("my-own-model", DEFAULT_OUTPUT_TOKENS),
        ("", DEFAULT_OUTPUT_TOKENS),
    ],
)
def test_a_model_answers_no_more_than_its_maker_says(model, tokens):
    assert max_output_tokens(model) == tokens
