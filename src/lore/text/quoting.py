"""Quoting: which of many short texts repeat a stretch of some long ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

STRETCH_CHARS = 40
"""So many characters in a row, some eight words, are no accident: who wrote them quotes."""

_BLOCK_CHARS = 24
_STRIDE_CHARS = STRETCH_CHARS - _BLOCK_CHARS + 1
"""A stretch holds at least one whole block that begins at a multiple of this."""

_MOST_BLOCKS = 500_000
"""Blocks that are kept in memory at a time, some 50 MB."""


def quoting(shorts: Mapping[int, str], longs: Iterable[str]) -> set[int]:
    """Return the keys of the short texts that share a stretch with one of the long ones.

    Each such text is found; one that shares a little less may be found too.
    """
    found: set[int] = set()
    left = {key: text for key, text in shorts.items() if len(text) >= _BLOCK_CHARS}
    if not left:
        return found
    for blocks in _batches(longs):
        new = {key for key, text in left.items() if _has_one_of(blocks, text)}
        found |= new
        left = {key: text for key, text in left.items() if key not in new}
    return found


def _batches(longs: Iterable[str]) -> Iterator[set[str]]:
    blocks: set[str] = set()
    for text in longs:
        starts = range(0, len(text) - _BLOCK_CHARS + 1, _STRIDE_CHARS)
        blocks.update(text[start : start + _BLOCK_CHARS] for start in starts)
        if len(blocks) >= _MOST_BLOCKS:
            yield blocks
            blocks = set()
    if blocks:
        yield blocks


def _has_one_of(blocks: set[str], text: str) -> bool:
    starts = range(len(text) - _BLOCK_CHARS + 1)
    return any(text[start : start + _BLOCK_CHARS] in blocks for start in starts)
