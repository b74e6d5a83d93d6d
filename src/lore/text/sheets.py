"""Sheets: what a model reads of memory, in few tokens, with what is quoted told apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lore.text import marks, tokens
from lore.text.hidden import without_hidden

QUOTE = "> "
"""Begins every line of stored text, so that none of them passes for a line of Lore's own."""

_LEAST_CLIPPED_TOKENS = 24
"""Less of a text than this says nothing: it is left out."""


def one_line(text: str, most_tokens: int) -> str:
    """Return a text on one line of at most so many tokens, without what a reader cannot see."""
    head = text[: most_tokens * 40]
    return tokens.clip(" ".join(without_hidden(head).split()), most_tokens)


def quoted(text: str) -> list[str]:
    """Return stored text as lines of which each is marked as a quote."""
    lines = without_hidden(text).strip("\n").split("\n")
    return [f"{QUOTE}{line}".rstrip() for line in lines]


class Sheet:
    """Lines for a model between the marks of recalled memory, within a number of tokens."""

    def __init__(self, most_tokens: int, *opening: str) -> None:
        self._most = most_tokens
        self._lines = list(opening)

    def add(self, *lines: str) -> bool:
        """Add lines if all of them fit, and tell whether they did."""
        if tokens.count(fenced([*self._lines, *lines])) > self._most:
            return False
        self._lines += lines
        return True

    def add_quote(self, heading: str, text: str) -> bool:
        """Add a heading with a quote, cut where it does not fit; tell whether any of it did."""
        if self.add(heading, *quoted(text)):
            return True
        most = tokens.count(text)
        while most > _LEAST_CLIPPED_TOKENS:
            most = most * 3 // 4
            if self.add(heading, *quoted(tokens.clip(text, most))):
                return True
        return False

    @contextmanager
    def keeping(self, reserved_tokens: int) -> Iterator[None]:
        """Keep so many tokens free for what is added afterwards."""
        self._most -= reserved_tokens
        try:
            yield
        finally:
            self._most += reserved_tokens

    def text(self) -> str:
        """Return the sheet."""
        return fenced(self._lines)


def fenced(lines: Sequence[str]) -> str:
    """Return lines between the marks by which capture knows recalled memory again."""
    return marks.wrap("\n".join(lines))
