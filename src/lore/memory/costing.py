"""Costing: what a model costs, and under what terms its prompts are planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lore.budget import busting, caps, horizon
from lore.budget.catalogue import Catalogue, Pricing
from lore.budget.horizon import Outlook, foresee
from lore.budget.outputs import most_output
from lore.context.layers import Room
from lore.context.planning import Terms
from lore.context.sizing import Measure
from lore.records.dialogues import Layer, ModelPrice

__all__ = [
    "KEPT_TOKENS",
    "Catalogue",
    "Economy",
    "Outlook",
    "Pricing",
    "SoFar",
    "foresee",
    "most_output",
]

KEPT_TOKENS = 10_000
"""To so much raw talk a window is cut by the horizon, and to twice as much where the turn before
the current one needs it; the prefix has as much. In a replayed session of 353 K tokens that costs
11 % of full context, 20 K 16 %, 40 K 26 %, while the same is at hand."""

WORTH_CUTTING = 2
"""Less than so many times what is kept is left alone, however cold the cache."""

Rule = Literal["horizon", "seed"]


@dataclass(frozen=True, slots=True)
class SoFar:
    """What is known of a session: how its characters count, and what is foreseen of it."""

    measure: Measure = field(default_factory=Measure)
    outlook: Outlook = field(default_factory=Outlook)
    calibrated: bool = True
    turns_without_writes: int = 0
    billed_read_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Economy:
    """By what rule prompts are made shorter to save money."""

    rule: Rule = "horizon"
    target_usd_per_turn: float = caps.TARGET_USD_PER_TURN
    max_layer0_tokens: int = 0
    kept_tokens: int = KEPT_TOKENS

    def terms(
        self,
        price: ModelPrice,
        so_far: SoFar,
        *,
        fixed_chars: int = 0,
        knowledge_tokens: int = 0,
        cold: bool = False,
        least: Layer = 0,
    ) -> Terms:
        """Return the terms for the next prompt; `fixed_chars` stand before its first entry."""
        cap_tokens = caps.cap_of_layer_0(
            price,
            target_usd_per_turn=self.target_usd_per_turn,
            pinned_tokens=self.max_layer0_tokens,
            calibrated=so_far.calibrated,
            turns_without_writes=so_far.turns_without_writes,
            billed_read_usd=so_far.billed_read_usd,
        )
        if self.rule == "seed":
            room = Room(price.window_tokens, knowledge_tokens)
            cost = _SeedRule(price, cap_tokens)
            return Terms(room, so_far.measure, cost, cold=cold, least=least)
        before = knowledge_tokens + so_far.measure.of_chars(fixed_chars)
        least_tokens = before + WORTH_CUTTING * self.kept_tokens
        return Terms(
            Room(price.window_tokens, knowledge_tokens, self.kept_tokens),
            so_far.measure,
            _HorizonRule(price, cap_tokens, so_far.outlook, least_tokens),
            cold=cold,
            least=least,
        )


@dataclass(frozen=True, slots=True)
class _SeedRule:
    """The cap of layer 0, and one turn weighed against the next."""

    price: ModelPrice
    cap_tokens: int

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Tell whether to leave a prompt of a layer for a shorter one."""
        del cold
        if not layer and now_tokens > self.cap_tokens:
            return True
        return busting.decide_for_one_turn(now_tokens, then_tokens, self.price).busts


@dataclass(frozen=True, slots=True)
class _HorizonRule:
    """The cap of layer 0, and all turns weighed that are still expected."""

    price: ModelPrice
    cap_tokens: int
    outlook: Outlook
    least_tokens: int

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Tell whether to leave a prompt of a layer for a shorter one."""
        if not layer and now_tokens > self.cap_tokens:
            return True
        if now_tokens <= self.least_tokens:
            return False
        return horizon.decide(
            now_tokens,
            then_tokens,
            self.price,
            self.outlook,
            cold=cold,
            least_tokens=self.least_tokens,
        ).busts
