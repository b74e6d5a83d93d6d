"""Counters: what one process has forwarded since it began, by model."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lore.records import SpendCounter
from lore.records.dialogues import TokenUse
from lore.store.spend import AWAITED

if TYPE_CHECKING:
    from lore.records import Spend

MOST_MODELS = 200
"""A client may name any model: those beyond so many are counted as one."""

OTHER = "other"


@dataclass(slots=True)
class _Tally:
    requests: int = 0
    tokens: list[int] = field(default_factory=lambda: [0] * 5)
    usd: float = 0.0
    without_usd: float = 0.0
    delayed: int = 0
    delay_ms: int = 0
    refused: int = 0

    def take(self, entry: Spend, used: TokenUse) -> None:
        for place, tokens in enumerate(_classes(used)):
            self.tokens[place] += tokens
        self.usd += entry.usd
        self.without_usd += entry.without_usd


class Counters:
    """Counts requests, tokens, money and delays; for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def count(self, entry: Spend, used: TokenUse) -> None:
        """Count a request that was settled; what it took only later, where that is awaited."""
        with self._lock:
            tally = self._tally(entry.model)
            tally.requests += 1
            tally.delayed += entry.delay_ms > 0
            tally.delay_ms += entry.delay_ms
            if AWAITED not in entry.usage:
                tally.take(entry, used)

    def correct(self, entry: Spend, used: TokenUse) -> None:
        """Count what a request took that was awaited."""
        with self._lock:
            self._tally(entry.model).take(entry, used)

    def refuse(self, model: str) -> None:
        """Count a request for which there was no money."""
        with self._lock:
            self._tally(model).refused += 1

    def snapshot(self) -> list[SpendCounter]:
        """Return what was counted, by model."""
        with self._lock:
            return [
                SpendCounter(
                    model,
                    tally.requests,
                    TokenUse(*tally.tokens),
                    tally.usd,
                    tally.without_usd,
                    tally.delayed,
                    tally.delay_ms,
                    tally.refused,
                )
                for model, tally in sorted(self._tallies.items())
            ]

    def _tally(self, model: str) -> _Tally:
        if model not in self._tallies and len(self._tallies) >= MOST_MODELS:
            model = OTHER
        return self._tallies.setdefault(model, _Tally())


def _classes(used: TokenUse) -> tuple[int, ...]:
    return (
        used.fresh_tokens,
        used.cache_read_tokens,
        used.cache_write_tokens,
        used.cache_write_1h_tokens,
        used.output_tokens,
    )
