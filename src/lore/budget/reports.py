"""Spend reports: ledger entries grouped, counters of this process, and costs without Lore."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lore.records import SpendCounter, SpendGroup, SpendLine
from lore.records.gateway import TokenUse
from lore.store.spend import AWAITED, ESTIMATED, REQUEST, UNPRICED, token_classes

if TYPE_CHECKING:
    from lore.records import Spend


@dataclass(slots=True)
class _Sum:
    requests: int = 0
    background: int = 0
    tokens: list[int] = field(default_factory=lambda: [0] * 5)
    usd: float = 0.0
    without_usd: float = 0.0
    busts: int = 0
    delayed: int = 0
    delay_ms: int = 0
    unpriced: int = 0
    estimated: int = 0

    def add(self, entry: Spend) -> None:
        is_request = entry.purpose.startswith(f"{REQUEST}:")
        self.requests += is_request
        self.background += not is_request
        for place, tokens in enumerate(token_classes(entry.usage)):
            self.tokens[place] += tokens
        self.usd += entry.usd
        self.without_usd += entry.without_usd
        self.busts += entry.busts
        self.delayed += entry.delay_ms > 0
        self.delay_ms += entry.delay_ms
        self.unpriced += UNPRICED in entry.usage
        self.estimated += ESTIMATED in entry.usage

    def line(self, name: str) -> SpendLine:
        return SpendLine(
            name,
            self.requests,
            self.background,
            TokenUse(*self.tokens),
            self.usd,
            self.without_usd,
            self.without_usd - self.usd,
            self.busts,
            self.delayed,
            self.delay_ms,
            self.unpriced,
            self.estimated,
        )


def summarize_spend(
    entries: Iterable[Spend], by: SpendGroup
) -> tuple[tuple[SpendLine, ...], SpendLine]:
    """Return a line for each group, most expensive first or by day, and the total."""
    whole, sums = _Sum(), dict[str, _Sum]()
    for entry in entries:
        whole.add(entry)
        sums.setdefault(_group(entry, by), _Sum()).add(entry)
    lines = [group.line(name) for name, group in sums.items()]
    lines.sort(key=(lambda one: one.name) if by == "day" else (lambda one: (-one.usd, one.name)))
    return tuple(lines), whole.line("")


def _group(entry: Spend, by: SpendGroup) -> str:
    if by == "day":
        return f"{entry.at:%Y-%m-%d}"
    if by == "model":
        return entry.model
    return (entry.project_id if by == "project" else entry.session_id) or ""


MAX_MODELS = 200
"""A client may send any model name: further ones are counted together."""

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
        for place, tokens in enumerate(used.classes):
            self.tokens[place] += tokens
        self.usd += entry.usd
        self.without_usd += entry.without_usd


class RequestCounters:
    """Count requests, tokens, money and delays; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def count(self, entry: Spend, used: TokenUse) -> None:
        """Count a settled request; the usage of a deferred response is added by `correct`."""
        with self._lock:
            tally = self._tally(entry.model)
            tally.requests += 1
            tally.delayed += entry.delay_ms > 0
            tally.delay_ms += entry.delay_ms
            if AWAITED not in entry.usage:
                tally.take(entry, used)

    def correct(self, entry: Spend, used: TokenUse) -> None:
        """Add the usage of a request whose response was deferred."""
        with self._lock:
            self._tally(entry.model).take(entry, used)

    def refuse(self, model: str) -> None:
        """Count a request that the budget refused."""
        with self._lock:
            self._tally(model).refused += 1

    def snapshot(self) -> list[SpendCounter]:
        """Return the counters by model."""
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
        if model not in self._tallies and len(self._tallies) >= MAX_MODELS:
            model = OTHER
        return self._tallies.setdefault(model, _Tally())


def usage_without_additions(used: TokenUse, *, standing_tokens: int, new_tokens: int) -> TokenUse:
    """Return the usage of a complete prompt without the text that Lore added.

    `standing_tokens` were already in the previous prompt, so they are subtracted from cache reads
    first. `new_tokens` are new in this prompt, so they are subtracted from uncached input.
    """
    read = used.cache_read_tokens
    from_read = min(standing_tokens, read)
    remaining = standing_tokens - from_read + new_tokens
    anew = _subtract_uncached(used, remaining)
    remaining -= used.input_tokens - anew.input_tokens
    return replace(anew, cache_read_tokens=max(0, read - from_read - remaining))


def usage_without_compaction(
    used: TokenUse,
    *,
    whole_tokens: int,
    known_tokens: int,
    new_tokens: int,
    busts: bool,
    cold: bool,
    caches: bool,
) -> TokenUse:
    """Return the estimated usage of the whole dialogue instead of the compacted prompt.

    The cache is assumed to treat it like the prompt that was sent: the same hits and the same
    misses. Only after a bust by Lore (`busts`) would the whole dialogue have been read from the
    cache up to `known_tokens`, the size of the previous prompt, unless the cache was `cold` or the
    provider does not cache (`caches`). New text that Lore added is left out.
    """
    rest, read = _subtract_uncached(used, new_tokens), used.cache_read_tokens
    tail = min(whole_tokens, rest.input_tokens - rest.cache_read_tokens)
    if busts:
        cached_tokens = known_tokens if caches and not cold else 0
        tail = whole_tokens - min(whole_tokens, max(cached_tokens, read))
    elif not read:
        tail = whole_tokens
    return _with_tail(used, read=whole_tokens - tail, tail=tail)


def _subtract_uncached(used: TokenUse, tokens: int) -> TokenUse:
    """Return a usage with fewer uncached tokens."""
    short = min(tokens, used.cache_write_1h_tokens)
    long_left, tokens = used.cache_write_1h_tokens - short, tokens - short
    short = min(tokens, used.cache_write_tokens)
    written_left, tokens = used.cache_write_tokens - short, tokens - short
    return replace(
        used,
        fresh_tokens=max(0, used.fresh_tokens - tokens),
        cache_write_tokens=written_left,
        cache_write_1h_tokens=long_left,
    )


def _with_tail(used: TokenUse, *, read: int, tail: int) -> TokenUse:
    """Return a usage with `read` cached tokens and a tail that is charged like that of `used`."""
    if used.cache_write_1h_tokens > used.cache_write_tokens:
        return TokenUse(0, read, 0, tail, used.output_tokens)
    if used.cache_write_tokens:
        return TokenUse(0, read, tail, 0, used.output_tokens)
    return TokenUse(tail, read, output_tokens=used.output_tokens)
