"""Calibration: token counts and billed prices of a session, as its provider reports them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lore.records.gateway import TokenUse
from lore.text.tokens import TOKENS_PER_CHAR

if TYPE_CHECKING:
    from lore.records.gateway import ModelPrice

WINDOW = 20
"""Number of turns in the calibration: a session that changes is followed within these."""

_MIN_TAIL_CHARS = 2_000
"""With fewer characters than this, the ratio of the whole prompt is more accurate."""


@dataclass(frozen=True, slots=True)
class ReportedTurn:
    """One turn: the characters of its prompt, and the usage that the provider reported."""

    chars: int
    use: TokenUse


@dataclass(frozen=True, slots=True)
class Calibration:
    """The latest usage reports of a session."""

    turns: tuple[ReportedTurn, ...] = ()
    turns_without_writes: int = 0

    @property
    def calibrated(self) -> bool:
        """Return whether the provider has reported any usage."""
        return bool(self.turns)

    @property
    def known_chars(self) -> int:
        """Return the number of characters of the last prompt."""
        return self.turns[-1].chars if self.turns else 0

    @property
    def known_tokens(self) -> int:
        """Return the number of tokens of the last prompt."""
        return self.turns[-1].use.input_tokens if self.turns else 0

    @property
    def tokens_per_char(self) -> float:
        """Return the tokens per character of what was added from turn to turn."""
        if not self.turns:
            return TOKENS_PER_CHAR
        chars = tokens = 0
        for before, after in pairwise(self.turns):
            more = after.use.input_tokens - before.use.input_tokens
            if after.chars > before.chars and more > 0:
                chars += after.chars - before.chars
                tokens += more
        if chars >= _MIN_TAIL_CHARS:
            return tokens / chars
        return self.known_tokens / self.known_chars if self.known_chars else TOKENS_PER_CHAR

    def billed_read_usd(self, price: ModelPrice) -> float | None:
        """Return the measured cost of a million tokens of the known prefix, None if there is none.

        It equals the price of a cache read if there was no miss. Missed tokens were written or read
        again.
        """
        usd, tokens = 0.0, 0
        for before, after in pairwise(self.turns):
            missed = _missed_tokens(before, after)
            prefix = min(before.use.input_tokens, after.use.input_tokens)
            anew = price.cache_write_usd if _written_tokens(after.use) else price.input_usd
            usd += (prefix - missed) * price.cache_read_usd + missed * anew
            tokens += prefix
        return usd / tokens if tokens else None


def add_turn(calibration: Calibration, chars: int, use: TokenUse) -> Calibration:
    """Return the calibration with one more turn; ignore a turn without reported input tokens."""
    if use.input_tokens <= 0:
        return calibration
    turns = (*calibration.turns[-(WINDOW - 1) :], ReportedTurn(chars, use))
    without = 0 if _written_tokens(use) else calibration.turns_without_writes + 1
    return Calibration(turns, without)


def _written_tokens(use: TokenUse) -> int:
    return use.cache_write_tokens + use.cache_write_1h_tokens


def _missed_tokens(before: ReportedTurn, after: ReportedTurn) -> int:
    prefix = min(before.use.input_tokens, after.use.input_tokens)
    return max(0, prefix - after.use.cache_read_tokens)
