"""Cost policy: the rule by which prompts are shortened to save money."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lore.budget import cache_economics
from lore.budget.cache_economics import SessionForecast
from lore.context.layers import PromptRoom, TokenMeasure
from lore.context.planner import PlanTerms
from lore.records.gateway import Layer, ModelPrice

KEEP_TOKENS = 10_000
"""The break-even rule cuts a window to this size, or to twice as much where the turn before the
current one needs it; the prefix may be as long. In a replayed session of 353 K tokens this costs
11 % of full context (20 K: 16 %, 40 K: 26 %), with the same evidence available."""

MIN_CUT_FACTOR = 2
"""A prompt shorter than this multiple of `keep_tokens` is left alone, even if the cache is cold."""

Rule = Literal["horizon", "seed"]


@dataclass(frozen=True, slots=True)
class SessionCosts:
    """The measured token ratio and the forecast of a session."""

    measure: TokenMeasure = field(default_factory=TokenMeasure)
    forecast: SessionForecast = field(default_factory=SessionForecast)
    calibrated: bool = True
    turns_without_writes: int = 0
    billed_read_usd: float | None = None


@dataclass(frozen=True, slots=True)
class CostPolicy:
    """The rule by which prompts are shortened to save money."""

    rule: Rule = "horizon"
    target_usd_per_turn: float = cache_economics.TARGET_USD_PER_TURN
    max_layer0_tokens: int = 0
    keep_tokens: int = KEEP_TOKENS

    def terms(
        self,
        price: ModelPrice,
        costs: SessionCosts,
        *,
        fixed_chars: int = 0,
        knowledge_tokens: int = 0,
        cold: bool = False,
        min_layer: Layer = 0,
    ) -> PlanTerms:
        """Return the terms for planning the next prompt; `fixed_chars` precede its first entry."""
        cap_tokens = cache_economics.compute_layer_0_cap(
            price,
            target_usd_per_turn=self.target_usd_per_turn,
            pinned_tokens=self.max_layer0_tokens,
            calibrated=costs.calibrated,
            turns_without_writes=costs.turns_without_writes,
            billed_read_usd=costs.billed_read_usd,
        )
        if self.rule == "seed":
            room = PromptRoom(price.window_tokens, knowledge_tokens)
            cost = _OneTurnRule(price, cap_tokens)
            return PlanTerms(room, costs.measure, cost, cold=cold, min_layer=min_layer)
        before = knowledge_tokens + costs.measure.of_chars(fixed_chars)
        least_tokens = before + MIN_CUT_FACTOR * self.keep_tokens
        return PlanTerms(
            PromptRoom(price.window_tokens, knowledge_tokens, self.keep_tokens),
            costs.measure,
            _BreakEvenRule(price, cap_tokens, costs.forecast, least_tokens),
            cold=cold,
            min_layer=min_layer,
        )


@dataclass(frozen=True, slots=True)
class _OneTurnRule:
    """Apply the cap of layer 0, and compare the cost of the next turn only."""

    price: ModelPrice
    cap_tokens: int

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Return whether to replace a prompt of a layer by a shorter one."""
        del cold
        if not layer and now_tokens > self.cap_tokens:
            return True
        return cache_economics.decide_for_one_turn(now_tokens, then_tokens, self.price).busts


@dataclass(frozen=True, slots=True)
class _BreakEvenRule:
    """Apply the cap of layer 0, and compare the cost of all expected turns."""

    price: ModelPrice
    cap_tokens: int
    outlook: SessionForecast
    least_tokens: int

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Return whether to replace a prompt of a layer by a shorter one."""
        if not layer and now_tokens > self.cap_tokens:
            return True
        if now_tokens <= self.least_tokens:
            return False
        return cache_economics.decide_break_even(
            now_tokens,
            then_tokens,
            self.price,
            self.outlook,
            cold=cold,
            least_tokens=self.least_tokens,
        ).busts
