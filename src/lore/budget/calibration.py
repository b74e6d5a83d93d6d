"""Calibration: how many tokens a prompt has, and what it is billed for, by what was reported."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lore.records.dialogues import TokenUse
from lore.text.tokens import TOKENS_PER_CHAR

if TYPE_CHECKING:
    from lore.records.dialogues import ModelPrice

WINDOW = 20
"""Turns that are remembered: a session that changes its ways is followed within these."""

_LEAST_TAIL_CHARS = 2_000
"""With fewer characters of tails than that, the ratio of the whole prompt is the better one."""


@dataclass(frozen=True, slots=True)
class Reported:
    """One turn: how many characters its prompt had, and what the provider reported of it."""

    chars: int
    use: TokenUse


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known of a session's prompts, by the last reports of its provider."""

    turns: tuple[Reported, ...] = ()
    turns_without_writes: int = 0

    @property
    def calibrated(self) -> bool:
        """Tell whether anything was reported yet."""
        return bool(self.turns)

    @property
    def known_chars(self) -> int:
        """Return how many characters the last prompt had."""
        return self.turns[-1].chars if self.turns else 0

    @property
    def known_tokens(self) -> int:
        """Return how many tokens the last prompt had."""
        return self.turns[-1].use.input_tokens if self.turns else 0

    @property
    def tokens_per_char(self) -> float:
        """Return the session's own ratio: that of what was added from turn to turn."""
        if not self.turns:
            return TOKENS_PER_CHAR
        chars = tokens = 0
        for before, after in pairwise(self.turns):
            more = after.use.input_tokens - before.use.input_tokens
            if after.chars > before.chars and more > 0:
                chars += after.chars - before.chars
                tokens += more
        if chars >= _LEAST_TAIL_CHARS:
            return tokens / chars
        return self.known_tokens / self.known_chars if self.known_chars else TOKENS_PER_CHAR

    def billed_read_usd(self, price: ModelPrice) -> float | None:
        """Return what a million tokens of the known prefix really cost, None before any did.

        Without a miss that is the price of a cache read; what was missed was written or read anew.
        """
        usd, tokens = 0.0, 0
        for before, after in pairwise(self.turns):
            missed = _missed(before, after)
            prefix = min(before.use.input_tokens, after.use.input_tokens)
            anew = price.cache_write_usd if _written(after.use) else price.input_usd
            usd += (prefix - missed) * price.cache_read_usd + missed * anew
            tokens += prefix
        return usd / tokens if tokens else None


def calibrate(calibration: Calibration, chars: int, use: TokenUse) -> Calibration:
    """Return what is known after one more turn; one without a reported prompt tells nothing."""
    if use.input_tokens <= 0:
        return calibration
    turns = (*calibration.turns[-(WINDOW - 1) :], Reported(chars, use))
    without = 0 if _written(use) else calibration.turns_without_writes + 1
    return Calibration(turns, without)


def _written(use: TokenUse) -> int:
    return use.cache_write_tokens + use.cache_write_1h_tokens


def _missed(before: Reported, after: Reported) -> int:
    """Return how much of a prefix that had been sent was not read; a shorter prompt is a bust."""
    prefix = min(before.use.input_tokens, after.use.input_tokens)
    return max(0, prefix - after.use.cache_read_tokens)
