"""Sizing: how many tokens a prompt takes, by what the provider said of the one before."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from lore.records.dialogues import Block, Entry
from lore.text.tokens import TOKENS_PER_CHAR, UNCALIBRATED


@dataclass(frozen=True, slots=True)
class Measure:
    """What a session's characters cost, and what its last prompt did.

    `reported_tokens` is the size of the last prompt by its provider, and `reported_entries` with
    how many entries of the present dialogue it ended; 0 where nobody said.
    """

    tokens_per_char: float = TOKENS_PER_CHAR * UNCALIBRATED
    reported_tokens: int = 0
    reported_entries: int = 0

    def of_chars(self, chars: int) -> int:
        """Return the tokens of so many characters."""
        return ceil(chars * self.tokens_per_char)

    def of_block(self, block: Block) -> int:
        """Return the tokens of a block as it is."""
        return self.of_chars(block.chars)

    def of_entry(self, entry: Entry) -> int:
        """Return the tokens of an entry as it is."""
        return sum(self.of_block(block) for block in entry.blocks)
