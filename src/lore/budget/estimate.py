"""Cost estimates: the maximum usage of a request, before it is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lore.budget.prices import max_output_tokens
from lore.context.layers import TokenMeasure
from lore.records import ClientSession, TokenUse
from lore.text.tokens import UNCALIBRATED_FACTOR

_UNCALIBRATED_MEASURE = TokenMeasure()
"""The ratio for prompts without a reported token count; it overestimates to be safe."""

_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

MAX_TOKENS = 10_000_000
"""A larger output limit in a request is not believed."""

MAX_ANSWERS = 1_000
"""No provider returns more answers per request; OpenAI allows an `n` of at most 128."""


def output_limit(document: Mapping[str, object], model: str) -> int:
    """Return the maximum number of output tokens of all answers to a request."""
    config = document.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    limits = [document.get(name) for name in _OUTPUT_LIMITS]
    limit = _first_number(*limits, config.get("maxOutputTokens")) or max_output_tokens(model)
    answers = _first_number(document.get("n"), config.get("candidateCount")) or 1
    return min(limit, MAX_TOKENS) * min(answers, MAX_ANSWERS)


def _first_number(*values: object) -> int:
    """Return the first positive number among some values, else zero."""
    numbers = (one for one in values if isinstance(one, int | float) and not isinstance(one, bool))
    return next((int(one) for one in numbers if 1 <= one < math.inf), 0)


def requested_service(document: Mapping[str, object]) -> str:
    """Return the service tier that a request asks for, as some cost more or less than others."""
    tiers = (document.get(name) for name in ("speed", "service_tier"))
    return next((one for one in tiers if isinstance(one, str)), "")


def max_usage(wire: str, input_tokens: int, output_tokens: int, *, long: bool = False) -> TokenUse:
    """Return the maximum usage of an uncached request; `long` means the one-hour cache."""
    if wire == "anthropic" and long:
        return TokenUse(cache_write_1h_tokens=input_tokens, output_tokens=output_tokens)
    if wire == "anthropic":
        return TokenUse(cache_write_tokens=input_tokens, output_tokens=output_tokens)
    return TokenUse(fresh_tokens=input_tokens, output_tokens=output_tokens)


def max_usage_of_bytes(
    wire: str, length: int, output_tokens: int, *, long: bool = False
) -> TokenUse:
    """Return the maximum usage of a request with a body of `length` bytes."""
    return max_usage(wire, _UNCALIBRATED_MEASURE.of_chars(length), output_tokens, long=long)


def add_chars(most: TokenUse, chars: int) -> TokenUse:
    """Return the maximum usage of a request whose prompt has more characters."""
    more = _UNCALIBRATED_MEASURE.of_chars(max(0, chars))
    if most.cache_write_1h_tokens:
        return replace(most, cache_write_1h_tokens=most.cache_write_1h_tokens + more)
    if most.cache_write_tokens:
        return replace(most, cache_write_tokens=most.cache_write_tokens + more)
    return replace(most, fresh_tokens=most.fresh_tokens + more)


def prompt_usage(most: TokenUse, *, counted: bool) -> TokenUse:
    """Return the likely usage of a prompt: the estimate without its safety margin.

    The output is the maximum of all answers.
    """
    margin = 1.0 if counted else UNCALIBRATED_FACTOR
    return TokenUse(
        fresh_tokens=round(most.fresh_tokens / margin),
        cache_write_tokens=round(most.cache_write_tokens / margin),
        cache_write_1h_tokens=round(most.cache_write_1h_tokens / margin),
        output_tokens=most.output_tokens,
    )


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The model, the maximum usage and the origin of a request, for which money is reserved."""

    model: str
    max_usage: TokenUse
    service: str
    streams: bool
    kind: str = "errand"
    speaker: ClientSession | None = None
    is_counted: bool = False
    """Whether the provider has counted the tokens of this session's prompts before."""
