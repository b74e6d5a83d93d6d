"""Pacing: how long a request waits, by the budget of the day and by what providers still allow."""

from __future__ import annotations

from collections.abc import Mapping

from lore.budget.throttle import Quota, delay_s, quota_delay_s, quotas_of
from lore.memory.front import Memory
from lore.records import Layer


class Pacing:
    """Knows what the answers of providers said of their quotas; for many threads."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._quotas: dict[str, tuple[Quota, ...]] = {}

    def note_quotas(self, provider: str, headers: Mapping[str, str]) -> None:
        """Take note of what an answer says of quotas; one that says nothing changes nothing."""
        told = quotas_of(headers, self._memory.database.now())
        if told:
            self._quotas[provider] = told

    def delay_s(
        self, provider: str, *, cache_left_s: float | None = None, free: bool = False
    ) -> float:
        """Return how long a request waits; `cache_left_s` is None if nothing is cached.

        Its money was set aside before. One that is `free` waits for its provider alone.
        """
        now = self._memory.database.now()
        quota_s = quota_delay_s(self._quotas.get(provider, ()), now)
        budget_s = 0.0 if free else self._memory.spend_pressure(at_hand=True).delay_s
        return delay_s(budget_s, quota_s, cache_left_s=cache_left_s)

    def least_layer(self, model: str = "", provider: str = "") -> Layer:
        """Return the layer that the budget of the day demands at least, of what costs money."""
        if not self._memory.spend_pressure().exceeds:
            return 0
        price = self._memory.find_model_price(model, provider=provider)
        is_free = price is not None and not price.input_usd and not price.output_usd
        return 0 if is_free else 2
