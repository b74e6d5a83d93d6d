"""Standing: what of the entries that a prompt leaves out is said in it all the same.

Clients put the instructions of a project before the first prompt, in a user's place, and what
their programs have to say in messages of its own. Of the latter only the newest still holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from lore.records.dialogues import Block, Entry
from lore.text import fences, marks

MOST_CHARS = 64_000
"""About a twelfth of the usual window; the instructions of projects are shorter."""

_BOOT = "# AGENTS.md instructions for "
"""How Codex begins the instructions of a project; it does not fence them."""


class Stands(NamedTuple):
    """A text that still holds, and the number of the entry that said it."""

    entry: int
    block: Block


class Standing:
    """What still holds of a dialogue, wherever its window begins."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    def before(self, start: int) -> list[Stands]:
        """Return what still holds of the entries before a number, each text once."""
        if not start:
            return []
        found = {one.block.text: one for one in self._opening if one.entry < start}
        newest = bisect_left(self._systems, start) - 1
        if newest >= 0:
            for one in _texts(self._entries, self._systems[newest]):
                found.setdefault(one.block.text, one)
        kept: list[Stands] = []
        left = MOST_CHARS
        for one in found.values():
            if one.block.chars <= left:
                kept.append(one)
                left -= one.block.chars
        return kept

    @cached_property
    def _opening(self) -> list[Stands]:
        """All that was said before the first answer and holds for the whole conversation."""
        found: dict[str, Stands] = {}
        for number, entry in enumerate(self._entries):
            if entry.voice == "assistant":
                break
            for one in _texts(self._entries, number):
                if entry.voice == "system" or _is_standing(one.block.text):
                    found.setdefault(one.block.text, one)
        return list(found.values())

    @cached_property
    def _systems(self) -> list[int]:
        return [number for number, entry in enumerate(self._entries) if entry.voice == "system"]


def _texts(entries: Sequence[Entry], number: int) -> list[Stands]:
    blocks = entries[number].blocks
    return [Stands(number, block) for block in blocks if block.kind == "text" and block.text]


def _is_standing(text: str) -> bool:
    if text.startswith(_BOOT):
        return True
    pieces = marks.fences(text, fences.PUT_IN)
    return all(is_fence or not piece.strip() for is_fence, piece in pieces)
