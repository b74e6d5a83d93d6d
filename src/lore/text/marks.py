"""Marks: how recalled memory is fenced in a prompt, and found again in what was said.

What stands between the marks was put there by Lore. It is never taken for words of the person
who sent the prompt, or memory would learn from itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

MEMORY = "lore-memory"
"""The name of the mark around recalled memory."""

_TAG_CHARS = 300
"""A tag of ours is short; what goes on for longer is prose with a bracket in it."""

_SMUGGLED = re.compile(rf"<(?=[\s/\\]{{0,9}}(?:{MEMORY}|system-reminder))", re.IGNORECASE)
"""Our own mark, and the one that agents put around what hooks give them."""

Pieces = list[tuple[str, str]]
"""A text in pieces, each with the name of the mark it stands in, or ''."""


def wrap(text: str) -> str:
    """Return recalled memory between marks; a mark inside it becomes harmless."""
    return f"<{MEMORY}>\n{_SMUGGLED.sub('&lt;', text)}\n</{MEMORY}>"


def split(text: str) -> list[tuple[bool, str]]:
    """Return a text in order, each piece with whether it is an aside: memory that Lore put there.

    Doubt counts against the text: a mark that is never closed reaches to the end, and what
    stands before a closing mark that was never opened is an aside as well.
    """
    if MEMORY not in text:
        return [(False, text)] if text else []
    return [(bool(name), piece) for name, piece in cut(text, (MEMORY,), strict=True)]


def cut(text: str, names: Collection[str], *, strict: bool = False) -> Pieces:
    """Return a text in pieces, those between marks of the given names with their tags.

    A mark inside another belongs to it. Unless `strict`, a mark without its other half is
    plain text.
    """
    pieces: Pieces = []
    tags = list(_tags(tuple(names)).finditer(text))
    if not strict:
        tags = _paired(tags)
    start, outer, depth = 0, "", 0
    for tag in tags:
        name = tag[2]
        if tag[1]:
            if depth and name != outer:
                continue
            depth = max(0, depth - 1)
            if depth == 0:
                pieces.append((name, text[start : tag.end()]))
                start, outer = tag.end(), ""
        elif depth == 0:
            pieces.append(("", text[start : tag.start()]))
            start, outer, depth = tag.start(), name, 1
        elif name == outer:
            depth += 1
    pieces.append((outer, text[start:]))
    return [(name, piece) for name, piece in pieces if piece]


def inside(piece: str) -> str:
    """Return what stands between the tags of a piece that is marked as a whole."""
    return piece[piece.find(">") + 1 : piece.rfind("<")]


@cache
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"<(/?)({either})(?![\w-])[^<>]{{0,{_TAG_CHARS}}}>")


def _paired(tags: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the tags that have their other half."""
    kept: set[int] = set()
    waiting: dict[str, list[int]] = {}
    for i, tag in enumerate(tags):
        opened = waiting.setdefault(tag[2], [])
        if not tag[1]:
            opened.append(i)
        elif opened:
            kept |= {opened.pop(), i}
    return [tag for i, tag in enumerate(tags) if i in kept]
