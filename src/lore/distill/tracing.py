"""Tracing: which messages a line of a log tells, where nobody said so or said it wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lore.records import LogLine, Segment
from lore.text import words

RETOLD = 0.6
"""A line that shares so many of its words with a text tells the same messages as that text."""

_FEWEST = 3
"""A line of fewer words than this, as a heading is, tells nothing by itself."""


class Text(NamedTuple):
    """The words of a text, and the ordinals of the messages that it is or tells."""

    bag: frozenset[str]
    ordinals: tuple[int, ...]


def text_of(text: str, ordinals: Iterable[int]) -> Text:
    """Return a text as lines are compared with it."""
    return Text(_bag(text), tuple(ordinals))


def trace(line: str, texts: Sequence[Text]) -> tuple[int, ...]:
    """Return the ordinals of the texts that share most with a line; none if that is little."""
    bag = _bag(line)
    if sum(not word.isdigit() for word in bag) < _FEWEST:
        return ()
    shared = [
        (len(bag & text.bag) / min(len(bag), len(text.bag)), text.ordinals)
        for text in texts
        if text.bag
    ]
    most = max((share for share, _ in shared), default=0.0)
    found = {o for share, ordinals in shared if share >= max(RETOLD, most) for o in ordinals}
    return tuple(sorted(found))


def verified(lines: Sequence[LogLine], segment: Segment) -> list[LogLine]:
    """Return lines with sources in their segment only, traced by their words if none is left."""
    known = {one.ordinal for one in segment.said}
    texts = [text_of(one.text, [one.ordinal]) for one in segment.said]
    checked = []
    for line in lines:
        sources = tuple(ordinal for ordinal in line.sources if ordinal in known)
        checked.append(LogLine(line.text, sources or trace(line.text, texts)))
    return checked


def _bag(text: str) -> frozenset[str]:
    return frozenset(word for word in words.split(text) if word not in words.STOP_WORDS)
