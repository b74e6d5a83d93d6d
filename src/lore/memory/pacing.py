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

    def delay_s(self, provider: str, *, cache_left_s: float | None = None) -> float:
        """Return how long the next request waits; `cache_left_s` is None if nothing is cached."""
        now = self._memory.database.now()
        quota_s = quota_delay_s(self._quotas.get(provider, ()), now)
        return delay_s(self._memory.spend_pressure().delay_s, quota_s, cache_left_s=cache_left_s)

    def least_layer(self) -> Layer:
        """Return the layer that the budget of the day demands at least."""
        return 2 if self._memory.spend_pressure().exceeds else 0
