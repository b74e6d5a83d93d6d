"""Caching: what a provider would read from its cache, write to it and charge, request by request.

As Anthropic has it: a prompt is cached up to each breakpoint, for as long as it is read again
within the lifetime; a lookup goes back a number of blocks from each breakpoint. Providers that
cache by themselves do so after every piece, and charge nothing for writing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import NamedTuple

from lore.context.breakpoints import LOOKED_BACK
from lore.records.dialogues import TokenUse

LEAST_TOKENS = 1_024
"""A shorter prefix is not cached."""

LIFETIME_S, LONG_LIFETIME_S = 300.0, 3_600.0

_PROMPTS = 8
"""Of one session, only the last prompts can be read again."""


class Piece(NamedTuple):
    """A part of a prompt that is cached as a whole or not: what it says, and how long it is."""

    key: str
    tokens: int
    blocks: int = 1
    marked: bool = False
    """There is a breakpoint after it."""


class PrefixCache:
    """The cache of one provider for one session."""

    def __init__(self, *, lifetime_s: float = LIFETIME_S, automatic: bool = False) -> None:
        self._lifetime_s = lifetime_s
        self._automatic = automatic
        self._sent: list[_Sent] = []

    def send(self, pieces: Sequence[Piece], at_s: float) -> TokenUse:
        """Return what becomes of a prompt, and keep it."""
        whole = frozenset(range(len(pieces)))
        ends = whole if self._automatic else frozenset(n for n in whole if pieces[n].marked)
        total = list(accumulate((piece.tokens for piece in pieces), initial=0))
        cached = frozenset(end for end in ends if total[end + 1] >= LEAST_TOKENS)
        hit, source = self._find(pieces, cached, at_s)
        read = total[hit + 1]
        written = max(0, total[max(cached, default=-1) + 1] - read)
        if source is not None:
            source.until_s = at_s + self._lifetime_s
        keys = tuple(piece.key for piece in pieces)
        kept = [one for one in self._sent if one.until_s >= at_s]
        self._sent = [*kept[-_PROMPTS:], _Sent(keys, cached, at_s + self._lifetime_s)]
        fresh = total[-1] - read - written
        if self._lifetime_s > LIFETIME_S:
            return TokenUse(fresh, read, cache_write_1h_tokens=written)
        return TokenUse(fresh, read, written)

    def _find(
        self, pieces: Sequence[Piece], ends: frozenset[int], at_s: float
    ) -> tuple[int, _Sent | None]:
        """Return the last piece up to which a prompt is cached, -1 if it is not, and since when."""
        looked_at = ends if self._automatic else _looked_at(pieces, ends)
        best: tuple[int, _Sent | None] = (-1, None)
        for sent in self._sent:
            if sent.until_s < at_s:
                continue
            same = _common(sent.keys, pieces)
            found = max((n for n in sent.ends if n < same and n in looked_at), default=-1)
            if found > best[0]:
                best = (found, sent)
        return best


@dataclass(slots=True)
class _Sent:
    """A prompt that was sent: after which pieces it is cached, and until when."""

    keys: tuple[str, ...]
    ends: frozenset[int]
    until_s: float


def _looked_at(pieces: Sequence[Piece], ends: Iterable[int]) -> set[int]:
    """Return the pieces within reach of a breakpoint."""
    found: set[int] = set()
    for end in ends:
        left = LOOKED_BACK
        for place in range(end, -1, -1):
            if left < 0:
                break
            found.add(place)
            left -= pieces[place].blocks
    return found


def _common(keys: Sequence[str], pieces: Sequence[Piece]) -> int:
    """Return with how many equal pieces two prompts begin."""
    pairs = zip(keys, pieces, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1].key, pairs))
