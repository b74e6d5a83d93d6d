"""Throttle: how long a request is delayed by the daily budget and by the providers' quotas."""

from __future__ import annotations

from collections.abc import Mapping

from lore.budget.throttle import Quota, parse_quotas, quota_delay_s, request_delay_s
from lore.memory.facade import Memory
from lore.records import Layer


class ThrottleDelay:
    """Remembers the rate limits that providers report; safe for threads."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._quotas: dict[str, tuple[Quota, ...]] = {}

    def note_quotas(self, provider: str, headers: Mapping[str, str]) -> None:
        """Remember the rate limits in the headers of a response, if it has any."""
        quotas = parse_quotas(headers, self._memory.database.now())
        if quotas:
            self._quotas[provider] = quotas

    def delay_s(
        self, provider: str, *, cache_left_s: float | None = None, free: bool = False
    ) -> float:
        """Return the delay of a request; `cache_left_s` is None if nothing is cached.

        A request that is `free` is only delayed by the rate limit of its provider.
        """
        now = self._memory.database.now()
        quota_s = quota_delay_s(self._quotas.get(provider, ()), now)
        budget_s = 0.0 if free else self._memory.budget.spend_pressure(at_hand=True).delay_s
        return request_delay_s(budget_s, quota_s, cache_left_s=cache_left_s)

    def least_layer(self, model: str = "", provider: str = "") -> Layer:
        """Return the least compaction layer that the daily budget demands for a paid model."""
        if not self._memory.budget.spend_pressure().exceeds:
            return 0
        price = self._memory.budget.find_model_price(model, provider=provider)
        is_free = price is not None and not price.input_usd and not price.output_usd
        return 0 if is_free else 2
