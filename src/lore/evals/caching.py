"""Caching: what a provider would read from its cache, write to it and charge, request by request.

As Anthropic has it: a prompt is cached up to each breakpoint, for as long as it is read again
within the lifetime; a lookup goes back a number of blocks from each breakpoint. Providers that
cache by themselves do so after every piece, and charge nothing for writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from lore.records.dialogues import ModelPrice, TokenUse

LEAST_TOKENS = 1_024
"""A shorter prefix is not cached."""

LOOKED_BACK = 20
"""So many blocks before a breakpoint are looked at for what is cached."""

LIFETIME_S, LONG_LIFETIME_S = 300.0, 3_600.0

_MILLION = 1_000_000


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
        self._until: dict[bytes, float] = {}

    def send(self, pieces: Sequence[Piece], at_s: float) -> TokenUse:
        """Return what becomes of a prompt, and keep it."""
        prefixes = _prefixes(pieces)
        ends = [n for n, piece in enumerate(pieces) if piece.marked or self._automatic]
        cached = ends[-1] if ends else -1
        hit = self._find(pieces, prefixes, ends, at_s)
        total = [0, *_running(pieces)]
        read = total[hit + 1]
        written = max(0, total[cached + 1] - read) if total[cached + 1] >= LEAST_TOKENS else 0
        for end in {*ends, hit} - {-1}:
            if total[end + 1] >= LEAST_TOKENS:
                self._until[prefixes[end]] = at_s + self._lifetime_s
        fresh = total[-1] - read - written
        if self._lifetime_s > LIFETIME_S:
            return TokenUse(fresh, read, cache_write_1h_tokens=written)
        return TokenUse(fresh, read, written)

    def _find(
        self, pieces: Sequence[Piece], prefixes: Sequence[bytes], ends: Sequence[int], at_s: float
    ) -> int:
        """Return the last piece up to which a prompt is cached, -1 if it is not."""
        for end in reversed(ends):
            left = LOOKED_BACK
            for place in range(end, -1, -1):
                if self._until.get(prefixes[place], -1.0) >= at_s:
                    return place
                left -= pieces[place].blocks
                if left < 0 and not self._automatic:
                    break
        return -1


def cost(use: TokenUse, price: ModelPrice) -> float:
    """Return what a request costs in US dollars."""
    total = (
        use.fresh_tokens * price.input_usd
        + use.cache_read_tokens * price.cache_read_usd
        + use.cache_write_tokens * price.cache_write_usd
        + use.cache_write_1h_tokens * price.cache_write_1h_usd
        + use.output_tokens * price.output_usd
    )
    return total / _MILLION


def _prefixes(pieces: Sequence[Piece]) -> list[bytes]:
    """Return for each piece a digest of all up to it."""
    found: list[bytes] = []
    so_far = b""
    for piece in pieces:
        so_far = blake2b(so_far + piece.key.encode(), digest_size=16).digest()
        found.append(so_far)
    return found


def _running(pieces: Sequence[Piece]) -> list[int]:
    total, found = 0, []
    for piece in pieces:
        total += piece.tokens
        found.append(total)
    return found
