"""Prices: what a call costs by the public price lists, which come with a package."""

from __future__ import annotations

import importlib.util
from datetime import datetime

from lore.llm.chat import Usage

FREE = ("ollama", "vllm")
"""Providers that run on a machine of one's own."""

LISTS = {
    "anthropic": "anthropic",
    "claude-cli": "anthropic",
    "gemini": "google",
    "openai": "openai",
    "openrouter": "openrouter",
}
"""The price list of each provider, as the package names it."""

_ALIASES = {
    "haiku": "claude-haiku-5-5",
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-5-5",
}
"""What `claude` takes in place of a model's name."""


def find_price(identity: str, usage: Usage, at: datetime) -> float | None:
    """Return what a call costs in US dollars, None where nobody knows."""
    provider, _, model = identity.partition(":")
    if usage.usd is not None:
        return usage.usd
    if provider in FREE:
        return 0.0
    if provider not in LISTS or importlib.util.find_spec("genai_prices") is None:
        return None
    # Loaded here: the package brings an HTTP client, and takes 0.4 s.
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=min(usage.cache_read_tokens, usage.input_tokens),
        cache_write_tokens=min(
            usage.cache_write_tokens, max(0, usage.input_tokens - usage.cache_read_tokens)
        ),
    )
    try:
        found = genai_prices.calc_price(
            counted,
            _ALIASES.get(model, model),
            provider_id=LISTS[provider],
            genai_request_timestamp=at,
        )
    except (LookupError, ValueError):
        return None
    return float(found.total_price)


def price_notice(identity: str, at: datetime) -> str:
    """Say that a budget cannot hold a chat whose price nobody knows, or nothing."""
    if find_price(identity, Usage(1000, 1000), at) is not None:
        return ""
    return f"The price of {identity} is not known: the daily budget cannot hold what it spends."
