"""Linear patterns: compiled by re2, over bytes, in time that only grows with the text."""

from __future__ import annotations

import re
from typing import Any

import re2

from lore.text.later import Later, compile_later

__all__ = ["compile_linear", "compile_linear_text", "find_headed", "groups_of", "loosened"]

_MEMORY = 64 << 20
"""Bytes for an automaton; with re2's own 8 MB a large one is thrown away and built anew."""

_COUNTED = 32
"""So far a loosened pattern counts: ids of tools are shorter than this, and most keys are not."""

_COUNT = compile_later(r"(?<!\\)\{(\d+)(,?)(\d*)\}\??")

_GROUP = compile_later(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?P<(\w+)>)", re.DOTALL)
"""Where a group begins: no escaped bracket, and none within a class of characters."""

_TRIES = 32
"""Heads without a match in a row, after which a text is taken for one made of nothing else."""


def compile_linear(pattern: str, *, groups: bool = True) -> Any:
    """Compile a pattern for bytes, each of which is one character, at its first use.

    Without its groups a pattern of many of them is found more quickly, or found not to be there.
    """
    options = re2.Options()
    options.never_capture = not groups
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    return Later(lambda: re2.compile(pattern.encode("latin-1"), options))


def compile_linear_text(pattern: str) -> Any:
    """Compile a pattern for text that is decoded already, at its first use."""
    options = re2.Options()
    options.max_mem = _MEMORY
    return Later(lambda: re2.compile(pattern, options))


def groups_of(pattern: str) -> dict[str, int]:
    """Return the numbers of a pattern's groups by their names, as they will be once compiled."""
    begun = [found for found in _GROUP.finditer(pattern) if found.group(1)]
    return {found.group(2): at for at, found in enumerate(begun, 1) if found.group(2)}


def loosened(pattern: str) -> str:
    """Return a pattern without its high counts: it matches wherever the other does, and more."""
    return _COUNT.sub(_loosened_count, pattern)


def _loosened_count(count: re.Match[str]) -> str:
    least = int(count.group(1))
    most = int(count.group(3) or 0) if count.group(2) else least
    return count.group() if 0 < most <= _COUNTED else f"{{{min(least, _COUNTED)},}}?"


def find_headed(heads: Any, pattern: Any, data: bytes, at: int) -> Any:
    """Return the first match of a pattern from a place on, as its own search would.

    Every match must begin where the heads have one: they have a small automaton for all of the
    text, and the large one of the pattern is only asked where they say so.
    """
    for _ in range(_TRIES):
        head = heads.search(data, at)
        if head is None:
            return None
        found = pattern.match(data, head.start())
        if found is not None:
            return found
        at = head.start() + 1
    return pattern.search(data, at)
