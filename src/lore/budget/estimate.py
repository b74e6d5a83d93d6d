"""Estimates of tokens and costs before a request, calibrated by what the provider reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from lore.budget.prices import max_output_tokens
from lore.context.layers import TokenMeasure
from lore.records import ClientSession, TokenUse
from lore.text.tokens import TOKENS_PER_CHAR, UNCALIBRATED_FACTOR

if TYPE_CHECKING:
    from lore.records.gateway import ModelPrice


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


def max_usage(api: str, input_tokens: int, output_tokens: int, *, long: bool = False) -> TokenUse:
    """Return the maximum usage of an uncached request; `long` means the one-hour cache."""
    if api == "anthropic" and long:
        return TokenUse(cache_write_1h_tokens=input_tokens, output_tokens=output_tokens)
    if api == "anthropic":
        return TokenUse(cache_write_tokens=input_tokens, output_tokens=output_tokens)
    return TokenUse(fresh_tokens=input_tokens, output_tokens=output_tokens)


def max_usage_of_bytes(
    api: str, length: int, output_tokens: int, *, long: bool = False
) -> TokenUse:
    """Return the maximum usage of a request with a body of `length` bytes."""
    return max_usage(api, _UNCALIBRATED_MEASURE.of_chars(length), output_tokens, long=long)


def add_chars(most: TokenUse, chars: int) -> TokenUse:
    """Return the maximum usage of a request whose prompt has more characters."""
    more = _UNCALIBRATED_MEASURE.of_chars(max(0, chars))
    if most.cache_write_1h_tokens:
        return replace(most, cache_write_1h_tokens=most.cache_write_1h_tokens + more)
    if most.cache_write_tokens:
        return replace(most, cache_write_tokens=most.cache_write_tokens + more)
    return replace(most, fresh_tokens=most.fresh_tokens + more)


def prompt_usage(most: TokenUse, *, counted: bool, cached_share: float = 0.0) -> TokenUse:
    """Return the likely usage of a prompt: the estimate without its safety margin.

    `cached_share` of it is read from the cache. The output is the maximum of all answers.
    """
    margin = 1.0 if counted else UNCALIBRATED_FACTOR
    anew = (1 - cached_share) / margin
    use = TokenUse(
        fresh_tokens=round(most.fresh_tokens * anew),
        cache_write_tokens=round(most.cache_write_tokens * anew),
        cache_write_1h_tokens=round(most.cache_write_1h_tokens * anew),
        output_tokens=most.output_tokens,
    )
    whole_tokens = round(most.input_tokens / margin)
    return replace(use, cache_read_tokens=whole_tokens - use.input_tokens)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The model, the maximum usage and the origin of a request, for which money is reserved."""

    model: str
    max_usage: TokenUse
    service: str
    streams: bool
    # Stored in the ledger, so the value of auxiliary requests stays "errand".
    kind: str = "errand"
    client_session: ClientSession | None = None
    is_counted: bool = False
    """Whether the provider has counted the tokens of this session's prompts before."""
    cached_share: float = 0.0
    """Share of the prompt that is likely read from the cache."""


WINDOW = 20
"""Number of turns in the calibration: a session that changes is followed within these."""

MIN_WARM_TURNS = 2
"""A single miss may be a prompt that was too short to be cached, or a cache still being written."""

_MIN_TAIL_CHARS = 2_000
"""With fewer characters than this, the ratio of the whole prompt is more accurate."""


@dataclass(frozen=True, slots=True)
class ReportedTurn:
    """One turn: the characters of its prompt, and the usage that the provider reported."""

    chars: int
    use: TokenUse
    is_warm: bool = True
    """Whether it began like the prompt before it, within the time to live of the cache."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The latest usage reports of a session."""

    turns: tuple[ReportedTurn, ...] = ()
    turns_without_writes: int = 0

    @property
    def calibrated(self) -> bool:
        """Return whether the provider has reported any usage."""
        return bool(self.turns)

    @property
    def known_chars(self) -> int:
        """Return the number of characters of the last prompt."""
        return self.turns[-1].chars if self.turns else 0

    @property
    def known_tokens(self) -> int:
        """Return the number of tokens of the last prompt."""
        return self.turns[-1].use.input_tokens if self.turns else 0

    @property
    def tokens_per_char(self) -> float:
        """Return the tokens per character of what was added from turn to turn."""
        if not self.turns:
            return TOKENS_PER_CHAR
        chars = tokens = 0
        for before, after in pairwise(self.turns):
            more = after.use.input_tokens - before.use.input_tokens
            if after.chars > before.chars and more > 0:
                chars += after.chars - before.chars
                tokens += more
        if chars >= _MIN_TAIL_CHARS:
            return tokens / chars
        return self.known_tokens / self.known_chars if self.known_chars else TOKENS_PER_CHAR

    @property
    def cached_share(self) -> float:
        """Return the usual share of the known prefix that was read from a warm cache, 1 if unknown.

        Turns that rewrote the prompt or came too late say nothing about the provider, and neither
        does a single miss: clients change their tools at the start of a session.
        """
        warm = [(before, after) for before, after in pairwise(self.turns) if after.is_warm]
        shares = [
            1 - _missed_tokens(*pair) / prefix for pair in warm if (prefix := _prefix_tokens(*pair))
        ]
        return sorted(shares)[len(shares) // 2] if len(shares) >= MIN_WARM_TURNS else 1.0

    @property
    def last_cached_share(self) -> float:
        """Return the share of the last prompt that was read from the cache."""
        return self.turns[-1].use.cache_read_tokens / self.known_tokens if self.turns else 0.0

    def billed_read_usd(self, price: ModelPrice) -> float | None:
        """Return the measured cost of a million tokens of the known prefix, None if there is none.

        It equals the price of a cache read if there was no miss. Missed tokens were written or read
        again.
        """
        usd, tokens = 0.0, 0
        for before, after in pairwise(self.turns):
            missed = _missed_tokens(before, after)
            prefix = _prefix_tokens(before, after)
            anew = price.cache_write_usd if _written_tokens(after.use) else price.input_usd
            usd += (prefix - missed) * price.cache_read_usd + missed * anew
            tokens += prefix
        return usd / tokens if tokens else None


def add_turn(
    calibration: Calibration, chars: int, use: TokenUse, *, is_warm: bool = True
) -> Calibration:
    """Return the calibration with one more turn; ignore a turn without reported input tokens."""
    if use.input_tokens <= 0:
        return calibration
    turns = (*calibration.turns[-(WINDOW - 1) :], ReportedTurn(chars, use, is_warm))
    without = 0 if _written_tokens(use) else calibration.turns_without_writes + 1
    return Calibration(turns, without)


def _written_tokens(use: TokenUse) -> int:
    return use.cache_write_tokens + use.cache_write_1h_tokens


def _prefix_tokens(before: ReportedTurn, after: ReportedTurn) -> int:
    return min(before.use.input_tokens, after.use.input_tokens)


def _missed_tokens(before: ReportedTurn, after: ReportedTurn) -> int:
    return max(0, _prefix_tokens(before, after) - after.use.cache_read_tokens)
