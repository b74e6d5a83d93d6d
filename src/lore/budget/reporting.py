"""Reporting: entries of the ledger added up by model, project, session or day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lore.records import SpendGroup, SpendLine
from lore.records.dialogues import TokenUse
from lore.store.spend import ESTIMATED, REQUEST, UNPRICED

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
        for place, tokens in enumerate(tokens_of(entry.usage)):
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
            requests=self.requests,
            background=self.background,
            tokens=TokenUse(*self.tokens),
            usd=self.usd,
            without_usd=self.without_usd,
            saved_usd=self.without_usd - self.usd,
            busts=self.busts,
            delayed=self.delayed,
            delay_ms=self.delay_ms,
            unpriced=self.unpriced,
            estimated=self.estimated,
        )


def add_up(entries: Iterable[Spend], by: SpendGroup) -> tuple[tuple[SpendLine, ...], SpendLine]:
    """Return a line for each group, dearest first or day by day, and one for all."""
    whole, sums = _Sum(), dict[str, _Sum]()
    for entry in entries:
        whole.add(entry)
        sums.setdefault(_group(entry, by), _Sum()).add(entry)
    lines = [found.line(name) for name, found in sums.items()]
    lines.sort(key=(lambda one: one.name) if by == "day" else (lambda one: (-one.usd, one.name)))
    return tuple(lines), whole.line("")


def tokens_of(usage: dict[str, int]) -> tuple[int, int, int, int, int]:
    """Return the tokens of an entry by class: fresh, read, written, written long, output."""
    read, written = usage.get("cache_read", 0), usage.get("cache_write", 0)
    long = usage.get("cache_write_1h", 0)
    fresh = max(0, usage.get("input", 0) - read - written - long)
    return fresh, read, written, long, usage.get("output", 0)


def _group(entry: Spend, by: SpendGroup) -> str:
    if by == "day":
        return f"{entry.at:%Y-%m-%d}"
    if by == "model":
        return entry.model
    return (entry.project_id if by == "project" else entry.session_id) or ""
