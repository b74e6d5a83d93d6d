"""Costing: what a model costs, and the rules by which a plan may bust to save money."""

from __future__ import annotations

from dataclasses import dataclass, field

from lore.budget import busting, caps, horizon
from lore.budget.catalogue import Catalogue, Pricing
from lore.budget.horizon import Outlook, foresee
from lore.records.dialogues import Layer, ModelPrice

__all__ = ["KEPT_TOKENS", "Catalogue", "HorizonRule", "Outlook", "Pricing", "SeedRule", "foresee"]


KEPT_TOKENS = 20_000
"""To so much a window is cut by the horizon: see `lore eval economics`."""


@dataclass(frozen=True, slots=True)
class SeedRule:
    """The cap of layer 0, and one turn weighed against the next."""

    price: ModelPrice
    cap_tokens: int

    @classmethod
    def of(cls, price: ModelPrice, *, calibrated: bool = True) -> SeedRule:
        """Return the rule for a model with the usual target."""
        return cls(price, caps.cap_of_layer_0(price, calibrated=calibrated))

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Tell whether to leave a prompt of a layer for a shorter one."""
        del cold
        if not layer and now_tokens > self.cap_tokens:
            return True
        return busting.decide_for_one_turn(now_tokens, then_tokens, self.price).busts


@dataclass(frozen=True, slots=True)
class HorizonRule:
    """All turns weighed that are still expected."""

    price: ModelPrice
    outlook: Outlook = field(default_factory=Outlook)
    least_tokens: int = caps.LEAST_TOKENS
    cap_tokens: int = 0
    """What a prompt of layer 0 may not exceed, whatever is still expected; 0: anything."""

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Tell whether to leave a prompt of a layer for a shorter one."""
        if not layer and 0 < self.cap_tokens < now_tokens:
            return True
        return horizon.decide(
            now_tokens,
            then_tokens,
            self.price,
            self.outlook,
            cold=cold,
            least_tokens=self.least_tokens,
        ).busts
