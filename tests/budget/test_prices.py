from __future__ import annotations

import subprocess
import sys

import pytest

from lore.budget.prices import LISTS, find_price, price_notice
from lore.llm.chat import Usage
from lore.llm.presets import PRESETS
from tests.fakes import NOON


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
    assert find_price(identity, Usage(1000, 1000), NOON) == usd


def test_what_was_read_from_a_cache_costs_less():
    fresh = find_price("anthropic:claude-haiku-4-5", Usage(1000, 10), NOON)
    cached = find_price("anthropic:claude-haiku-4-5", Usage(1000, 10, 900), NOON)
    written = find_price("anthropic:claude-haiku-4-5", Usage(1000, 10, 0, 900), NOON)
    assert fresh is not None
    assert cached is not None
    assert written is not None
    assert cached < fresh < written


def test_a_usage_that_cannot_be_has_a_price_or_none():
    find_price("anthropic:claude-haiku-4-5", Usage(10, 10, 900, 900), NOON)


def test_what_a_provider_charged_counts_before_any_list():
    assert find_price("openrouter:no-such-model", Usage(1, 1, usd=0.25), NOON) == 0.25


@pytest.mark.parametrize("provider", [name for name in PRESETS if PRESETS[name].model])
def test_every_usual_model_has_a_price(provider):
    assert provider in LISTS
    assert find_price(f"{provider}:{PRESETS[provider].model}", Usage(1000, 1000), NOON)


@pytest.mark.parametrize("alias", ["haiku", "sonnet", "opus"])
def test_every_alias_of_the_command_has_a_price(alias):
    assert find_price(f"claude-cli:{alias}", Usage(1000, 1000), NOON)


def test_a_chat_without_a_price_is_told():
    assert "openai:mystery" in price_notice("openai:mystery", NOON)
    assert price_notice("anthropic:claude-haiku-4-5", NOON) == ""
    assert price_notice("ollama:llama3", NOON) == ""


def test_the_lists_are_loaded_only_when_a_price_is_asked_for():
    script = "import lore.budget, sys; print({'genai_prices', 'pydantic'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
