"""Linear patterns: compiled by re2, over bytes, in time that only grows with the text."""

from __future__ import annotations

from typing import Any

import re2

__all__ = ["compile_linear", "compile_linear_text"]

_MEMORY = 64 << 20
"""Bytes for an automaton; with re2's own 8 MB a large one is thrown away and built anew."""


def compile_linear(pattern: str, *, groups: bool = True) -> Any:
    """Compile a pattern for bytes, each of which is one character.

    Without its groups a pattern of many of them is found more quickly, or found not to be there.
    """
    options = re2.Options()
    options.never_capture = not groups
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    return re2.compile(pattern.encode("latin-1"), options)


def compile_linear_text(pattern: str) -> Any:
    """Compile a pattern for text that is decoded already."""
    options = re2.Options()
    options.max_mem = _MEMORY
    return re2.compile(pattern, options)
