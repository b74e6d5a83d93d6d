"""Split long texts into overlapping passages, the units that are embedded and shown."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

WORDS, STRIDE = 110, 80
"""Words of a passage, and from the start of one to the start of the next. (110 words are about 200
tokens of a model that reads 256; the overlap keeps an answer from being cut in two.)"""

WHOLE = 150
"""A text of at most this many words is one passage."""

CHARS = 1_000
"""Characters of a passage: code and paths have more tokens in a word than prose."""

MOST = 64
"""Passages of one text: what comes after some 45,000 characters is found by its words only."""

_SNAP = 12
"""A passage begins at the start of a line if one is this few words before or after."""

_WORD = re.compile(r"\S{1,200}")


class Passage(NamedTuple):
    """The place of a passage in its text."""

    start: int
    end: int


def split(text: str) -> list[Passage]:
    """Return the passages of a text in their order; a short text is one passage."""
    if len(text) <= CHARS and len(text.split()) <= WHOLE:
        return [Passage(0, len(text))]
    words = [match.span() for match in _WORD.finditer(text)]
    if not words:
        return [Passage(0, len(text))]
    line_starts = [
        index
        for index, (start, _) in enumerate(words)
        if index == 0 or "\n" in text[words[index - 1][1] : start]
    ]
    passages: list[Passage] = []
    first = 0
    while len(passages) < MOST:
        last = first + 1
        while (
            last < len(words) and last - first < WORDS and words[last][1] - words[first][0] <= CHARS
        ):
            last += 1
        passages.append(Passage(words[first][0], words[last - 1][1]))
        if last == len(words):
            break
        first = _next_start(first, last, line_starts)
    return passages


def texts(text: str) -> list[str]:
    """Return the passages of a text as texts."""
    return [text[start:end] for start, end in split(text)]


def _next_start(first: int, last: int, line_starts: list[int]) -> int:
    """Return the first word of the next passage: after the stride, at a line's start if near."""
    wanted = first + max(1, (last - first) * STRIDE // WORDS)
    at = bisect_left(line_starts, wanted)
    near = [
        place
        for place in line_starts[max(0, at - 1) : at + 1]
        if first < place <= last and abs(place - wanted) <= _SNAP
    ]
    return min(near, key=lambda place: abs(place - wanted), default=wanted)
