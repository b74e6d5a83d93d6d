"""Secret crowds: where places for secrets stand too close to judge each, words are judged once."""

from __future__ import annotations

from collections.abc import Iterator

from lore.text.later import compile_later
from lore.text.secret_fitting import Span, is_named_password

__all__ = ["BEHIND", "CROWD_PLACES", "STRETCH", "find_in_crowd", "is_crowded"]

CROWD_PLACES = 512
"""So many places near each other are a crowd; that text repeats itself is seen before."""

_NEAR = 48
"""Bytes from one place to the next: files of nothing but settings have as many, and end."""

STRETCH = 65_536
"""Bytes that are judged by their words: long beside the places that showed a crowd."""

BEHIND = 512
"""Bytes at the end of a stretch that are looked at again: a name there has its value behind it."""

_WORD = compile_later(rb"[!#-&*-+\-./0-9:=?@A-Z^_a-z~]{7,256}")
_TELLING = compile_later(rb"[0-9!#$%^&*?~+]")
_NAME = compile_later(rb"^[\w.\-]{1,40}[=:]+(?=.)")


def is_crowded(places: int, size: int) -> bool:
    """Tell whether so many places in so many bytes are more than can be judged one by one."""
    return places >= CROWD_PLACES and size < places * _NEAR


def find_in_crowd(data: bytes, at: int) -> Iterator[Span]:
    """Yield the words of a stretch that could be secrets, whatever stands before them."""
    for word in _WORD.finditer(data, at, at + STRETCH):
        if not _TELLING.search(word.group()):
            continue
        name = _NAME.match(word.group())
        start = word.start() + (name.end() if name else 0)
        if is_named_password(data[start : word.end()].decode("latin-1")):
            yield start, word.end(), "secret"
