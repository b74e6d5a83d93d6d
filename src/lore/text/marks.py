"""Marks: how recalled memory is fenced in a prompt, and found again in what was said.

What stands between the marks was put there by Lore. It is never taken for words of the person
who sent the prompt, or memory would learn from itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from lore.text.later import compile_later

MEMORY = "lore-memory"
"""The name of the mark around recalled memory."""

_SEARCHED = "lore-recall-"
SEARCHED = compile_later(rf"\n*\[memory searched: {_SEARCHED}([0-9A-Za-z]{{8,64}})\]\n*")
"""What stands in an agent's history where the gateway searched memory for its model."""

_LEAD = r"[\s/\\]{0,9}"
"""What may stand in a tag before its name; more blanks than these are prose with a bracket."""

_ANY = r"[\w.:-]{1,60}"
"""What a star in a name stands for; names of hooks are a few words."""

_SMUGGLED = compile_later(rf"<(?={_LEAD}(?:{MEMORY}|system-reminder))", re.IGNORECASE)
"""Our own mark, and the one that agents put around what hooks give them."""

_NAMED = compile_later("-(?i:memory)")
"""The end of our mark's name: a search for its first letter is quicker than lower case for all."""

Pieces = list[tuple[str, str]]
"""A text in pieces, each with the name of the mark it stands in, or ''."""


def wrap(text: str) -> str:
    """Return recalled memory between marks; a mark inside it becomes harmless."""
    return f"<{MEMORY}>\n{_SMUGGLED.sub('&lt;', text)}\n</{MEMORY}>"


def may_have_memory(text: str) -> bool:
    """Tell whether a text names the mark around recalled memory; cheap for those that do not."""
    return "<" in text and _NAMED.search(text) is not None and MEMORY in text.lower()


def searched(marker_id: str) -> str:
    """Return the words that stand in an agent's history in the place of a search."""
    return f"[memory searched: {_SEARCHED}{marker_id}]"


def may_have_searches(text: str) -> bool:
    """Tell whether a text names a search of the gateway; cheap for those that do not."""
    return _SEARCHED in text


def split(text: str) -> list[tuple[bool, str]]:
    """Return a text in order, each piece with whether it is an aside: memory that Lore put there.

    Doubt counts against the text: a mark that is never closed reaches to the end, and what
    stands before a closing mark that was never opened is an aside as well.
    """
    if "<" not in text:
        return [(False, text)] if text else []
    return [(bool(name), piece) for name, piece in cut(text, (MEMORY,), strict=True)]


def fences(text: str, names: Collection[str]) -> list[tuple[bool, str]]:
    """Return a text in order, each piece with whether it stands in a fence of the given names.

    What a fence holds may be written by anyone, tags of its own name too, so all of a name is
    one fence: from its first tag to its last, and to the beginning or the end of the text where
    the other half is missing. A star in a name stands for anything.
    """
    found: dict[str, list[re.Match[str]]] = {}
    for tag in _tags(tuple(names)).finditer(text):
        found.setdefault(tag[2].lower(), []).append(tag)
    pieces: list[tuple[bool, str]] = []
    at = 0
    for start, end in sorted(_span(tags, len(text)) for tags in found.values()):
        if end > at:
            pieces += [(False, text[at:start]), (True, text[max(at, start) : end])]
            at = end
    pieces.append((False, text[at:]))
    return [(is_fence, piece) for is_fence, piece in pieces if piece]


def _span(tags: list[re.Match[str]], size: int) -> tuple[int, int]:
    """Return from where to where the tags of one name reach at most."""
    closing = sum(_closes(tag) for tag in tags)
    is_closed = _closes(tags[-1]) and closing >= len(tags) - closing
    return 0 if _closes(tags[0]) else tags[0].start(), tags[-1].end() if is_closed else size


def _closes(tag: re.Match[str]) -> bool:
    return bool(tag[1].strip())


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
        name = tag[2].lower()
        if _closes(tag):
            if name != outer if depth else not strict:
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
    ordered = sorted(names, key=len, reverse=True)
    either = "|".join(re.escape(name).replace(r"\*", _ANY) for name in ordered)
    # A tag may hold a bracket of its own, so it counts by its beginning alone.
    return re.compile(rf"<({_LEAD})({either})(?![\w-])(?:[^<>]*>)?", re.IGNORECASE)


def _paired(tags: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the tags that have their other half."""
    kept: set[int] = set()
    waiting: dict[str, list[int]] = {}
    for i, tag in enumerate(tags):
        opened = waiting.setdefault(tag[2].lower(), [])
        if not _closes(tag):
            opened.append(i)
        elif opened:
            kept |= {opened.pop(), i}
    return [tag for i, tag in enumerate(tags) if i in kept]
