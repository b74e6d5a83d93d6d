"""Overview: a fresh text for a root, made of its own words and the lines below it."""

from __future__ import annotations

from collections.abc import Sequence

from lore.records import Fragment
from lore.text import lines, words

_MOST_LINES = 12
_LINE_CHARS = 200
_ALIKE = 0.8
"""A line with so many of its words in one that is there already says nothing new."""

_MARK = "- "


def overview(root: Fragment, children: Sequence[Fragment]) -> str:
    """Return what a root says in its own words, and under it what its children say.

    What mattered most comes first, and of two that say the same the newer.
    """
    head = root.content.rstrip()
    said = [set(words.split(head))]
    kept: list[str] = []
    for child in sorted(children, key=lambda one: (-one.importance, -one.created_at.timestamp())):
        line = lines.one_line(child.summary or child.content, _LINE_CHARS)
        told = set(words.split(line))
        if told and not any(_covers(other, told) for other in said):
            said.append(told)
            kept.append(f"{_MARK}{line}")
        if len(kept) == _MOST_LINES:
            break
    return "\n".join([head, *kept])


def _covers(other: set[str], told: set[str]) -> bool:
    return len(told & other) >= _ALIKE * len(told)
