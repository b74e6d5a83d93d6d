"""Hidden text: remove what a reader cannot see, and format memory as blocks for a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from lore.text import memory_tags, tokens
from lore.text.regex import compile_lazy, compile_re2_text

_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Letters and marks that show nothing, though Unicode does not class them as format characters."""

_CHARACTERS = compile_lazy(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    f"\ufe00-\ufe0e\ufeff\ufff0-\ufffb\ue000-\uf8ff{_BLANK_LETTERS}\ud800-\udfff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_PICTURES = "\u2600-\u27bf\U0001f000-\U0001faff"
_JOINED = compile_lazy(f"(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])")
"""The joiner between two emoji is visible: it makes one of them."""

_EITHER = compile_lazy(f"({_JOINED.pattern})|{_CHARACTERS.pattern}")

_MARKUP = compile_re2_text(
    r"(?ims)<!--.*?(?:-->|\z)|^[ \t]*\[[^\]\n]*\]:\s*(?:#|<>|about:)[^\n]*$"
    r"|<(?:script|style|template|noscript|details|iframe|object|embed)\b[^>]*>"
    r"|<[a-z][^>]*\b(?:hidden|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0"
    r"|opacity\s*:\s*0)\b[^>]*>"
)
"""In linear time: a page of '<a <a …' took a minute with Python's expressions."""


class HiddenText(NamedTuple):
    """Something that a reader does not see: its line, from 1, and a description."""

    line: int
    what: str


def find_hidden(text: str) -> list[HiddenText]:
    """Return the hidden items of a text in order, each once per line."""
    places = [(place.start(), _describe(place[0])) for place in _CHARACTERS.finditer(_shown(text))]
    encodable = text.encode("utf-8", "replace").decode()  # re2 takes no lone surrogates
    places += [(place.start(), "markup that is not shown") for place in _MARKUP.finditer(encodable)]
    items: dict[HiddenText, None] = {}
    line, counted = 1, 0
    for at, what in sorted(places):
        line, counted = line + text.count("\n", counted, at), at
        items[HiddenText(line, what)] = None
    return list(items)


def strip_hidden(text: str) -> str:
    """Return a text without its hidden characters; visible markup stays."""
    plain = "\n".join(text.splitlines())
    return plain if plain.isascii() and plain.isprintable() else _EITHER.sub(_kept, plain)


def _kept(place: re.Match[str]) -> str:
    return place[1] or ""


def _shown(text: str) -> str:
    return _JOINED.sub(" ", text)


def _describe(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'without a name')}"


QUOTE_PREFIX = "> "
"""Begins every line of stored text, so that none can pass for a line of Lore's own."""

_LEAST_CLIPPED_TOKENS = 24
"""A shorter excerpt is useless and is left out."""


def one_line(text: str, most_tokens: int) -> str:
    """Return a text on one line of at most `most` tokens, without hidden characters."""
    head = text[: most_tokens * 40]
    return tokens.clip(" ".join(strip_hidden(head).split()), most_tokens)


def quote_lines(text: str) -> list[str]:
    """Return stored text as lines, each marked as a quote."""
    lines = strip_hidden(text).strip("\n").split("\n")
    return [f"{QUOTE_PREFIX}{line}".rstrip() for line in lines]


class PromptBlock:
    """Lines for a model between memory tags, within a token budget."""

    def __init__(self, most_tokens: int, *opening: str) -> None:
        self._most = most_tokens
        self._lines = list(opening)

    def add(self, *lines: str) -> bool:
        """Add lines if all of them fit, and return whether they did."""
        if tokens.count(wrap_lines([*self._lines, *lines])) > self._most:
            return False
        self._lines += lines
        return True

    def add_quote(self, heading: str, text: str) -> bool:
        """Add a heading with a quote, clipped to fit; return whether any of it did."""
        if self.add(heading, *quote_lines(text)):
            return True
        most = tokens.count(text)
        while most > _LEAST_CLIPPED_TOKENS:
            most = most * 3 // 4
            if self.add(heading, *quote_lines(tokens.clip(text, most))):
                return True
        return False

    @contextmanager
    def reserve(self, reserved_tokens: int) -> Iterator[None]:
        """Reserve tokens for what is added afterwards."""
        self._most -= reserved_tokens
        try:
            yield
        finally:
            self._most += reserved_tokens

    def text(self) -> str:
        """Return the block."""
        return wrap_lines(self._lines)


def wrap_lines(lines: Sequence[str]) -> str:
    """Return lines between the tags by which capture recognises recalled memory."""
    return memory_tags.wrap_memory("\n".join(lines))
