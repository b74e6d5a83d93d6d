"""Bust or continue, by the cost of one turn: the rule of the thumb that `horizon` improves on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lore.records.dialogues import ModelPrice

THRESHOLDS = ((200_000, 0.0), (500_000, 0.85))
"""Up to how many tokens a bust has to cost less than which share of going on: models are at their
best up to 200 K, where nothing presses, and still good up to 500 K."""

THRESHOLD_BEYOND = 1.0

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class OneTurn:
    """Whether to bust, and what both ways cost in the next turn."""

    busts: bool
    bust_usd: float
    continue_usd: float
    threshold: float


def threshold_of(current_tokens: int) -> float:
    """Return the share of the cost of going on that a bust of a prompt so long must stay under."""
    for most_tokens, threshold in THRESHOLDS:
        if current_tokens <= most_tokens:
            return threshold
    return THRESHOLD_BEYOND


def decide_for_one_turn(current_tokens: int, compressed_tokens: int, price: ModelPrice) -> OneTurn:
    """Compare writing a compressed prompt with reading the whole one once more."""
    threshold = threshold_of(current_tokens)
    bust_usd = compressed_tokens * price.at(compressed_tokens).cache_write_usd / _MILLION
    continue_usd = current_tokens * price.at(current_tokens).cache_read_usd / _MILLION
    busts = bust_usd < continue_usd * threshold
    return OneTurn(busts, bust_usd, continue_usd, threshold)
