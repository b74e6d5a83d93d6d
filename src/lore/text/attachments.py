"""Attachments: find the text of others that a message carries between tags."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from lore.text import memory_tags
from lore.text.memory_tags import Span
from lore.text.regex import compile_lazy

ATTACHMENT_TAGS = (
    "document",
    "documents",
    "document_content",
    "document_contents",
    "file",
    "files",
    "file_content",
    "file_contents",
    "folder_content",
    "url_content",
    "attachment",
    "attachments",
    "attached_file",
    "attached_files",
)
"""Tags that programs and people put around text of others, also with a hyphen."""

_NAMES = "|".join(sorted(ATTACHMENT_TAGS, key=len, reverse=True)).replace("_", "[_-]")
_OPEN = "<|&(?:amp;){0,3}(?:lt|#0{0,5}60|#x0{0,5}3c);"
_CLOSE = ">|&(?:amp;){0,3}(?:gt|#0{0,5}62|#x0{0,5}3e);"
_TAG = compile_lazy(
    rf"({_OPEN})([\s/\\]{{0,9}})({_NAMES})(?![^\s/>&])(?:\s{{0,9}}(?:{_CLOSE}))?", re.IGNORECASE
)
_ATTRIBUTE = compile_lazy(r"\s{1,9}[\w:.-]{1,60}\s{0,9}=")

_PROSE = compile_lazy(r"[ \t]+(?:[a-z|\[(&-]|<[a-z]{1,12}>)|[.,;:!?)\]'\"`]|\s*\Z")
"""What follows the name of an argument: 'cp <file> <folder>', 'wrap it in <file> tags'."""

_LINE_CHARS = 400
"""Characters of a line that are read before a tag."""

_BEGINNING = compile_lazy(r"(?:^|>|&gt;)[ \t]*\Z", re.IGNORECASE)
_QUOTES = "`'\"“”‘’"
_CODE = "```"


def find_attachments(text: str, fences: Collection[str] = ()) -> list[Span]:
    """Return where a text carries attachments, in order and without overlap.

    Anyone may write inside an attachment, also tags of its own name: one attachment per name
    reaches from its first tag to its last. An unclosed one reaches to the end of the text, unless
    its tag is only mentioned, or stands inside another attachment, a fence of these names or a
    block of code.
    """
    families: dict[tuple[str, bool], list[re.Match[str]]] = {}
    for tag in _TAG.finditer(text):
        if not _is_quoted(text, tag):
            name = tag[3].lower().replace("-", "_"), tag[1] == "<"
            families.setdefault(name, []).append(tag)
    closed: list[Span] = []
    unpaired: list[re.Match[str]] = []
    for tags in families.values():
        span = _enclosed(tags)
        closed += [span] if span else []
        unpaired += _unpaired(text, tags, span)
    return memory_tags.merge_spans([*closed, *_reached(text, closed, unpaired, fences)])


def _enclosed(tags: list[re.Match[str]]) -> Span | None:
    """Return the range from the first opening tag to the last closing one, if there are both."""
    first = next((tag for tag in tags if not _is_closing(tag)), None)
    last = next((tag for tag in reversed(tags) if _is_closing(tag)), None)
    if first is None or last is None or last.start() < first.start():
        return None
    return first.start(), last.end()


def _unpaired(text: str, tags: list[re.Match[str]], span: Span | None) -> Iterator[re.Match[str]]:
    """Yield the tags of a name that lack their other half, but none that is only mentioned."""
    start, end = span or (len(text), 0)
    inner = [tag for tag in tags if start <= tag.start() < end]
    openings = [tag for tag in inner if not _is_closing(tag)]
    blocks = sum(_is_block(text, tag) for tag in openings[1:])
    if openings and 1 + blocks > len(inner) - len(openings):
        yield openings[0]
    for tag in tags:
        if not start <= tag.start() < end and not _is_mention(text, tag):
            yield tag


def _reached(
    text: str, closed: list[Span], unpaired: list[re.Match[str]], fences: Collection[str]
) -> Iterator[Span]:
    """Yield what tags without their other half reach: the end of the text, or its beginning."""
    if not unpaired:
        return
    own = blank(text, closed)
    confining = memory_tags.merge_spans([*memory_tags.find_pairs(own, fences), *_code(own)])
    free = [
        tag
        for tag in unpaired
        if not _covers(confining, tag)
        and not any(start < tag.start() < end for start, end in closed)
    ]
    first = min((tag.start() for tag in free if not _is_closing(tag)), default=len(text))
    yield first, len(text)
    yield from ((0, tag.end()) for tag in free if _is_closing(tag) and tag.start() < first)


def _covers(spans: list[Span], tag: re.Match[str]) -> bool:
    """Return whether a tag is inside one of some spans, which are in order."""
    place = bisect(spans, tag.start(), key=lambda span: span[0])
    return bool(place) and tag.start() < spans[place - 1][1]


def _code(text: str) -> Iterator[Span]:
    """Yield the blocks of code."""
    marks = [mark.start() for mark in re.finditer(_CODE, text)]
    yield from list(pairwise(marks))[::2]


def blank(text: str, spans: Iterable[Span]) -> str:
    """Return a text of the same length with spaces in the place of some spans."""
    pieces, at = [], 0
    for start, end in memory_tags.merge_spans(spans):
        pieces += [text[at:start], " " * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])


def _is_closing(tag: re.Match[str]) -> bool:
    return bool(tag[2].strip())


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    before, after = _line(text, tag)[-1:], text[tag.end() : tag.end() + 1]
    return bool(before and after) and before in _QUOTES and after in _QUOTES


def _is_block(text: str, tag: re.Match[str]) -> bool:
    """Return whether a tag begins a line, follows another tag or has attributes."""
    if _BEGINNING.search(_line(text, tag)):
        return True
    return not tag[0].endswith((">", ";")) and _ATTRIBUTE.match(text, tag.end()) is not None


def _is_mention(text: str, tag: re.Match[str]) -> bool:
    """Return whether prose only names a tag, as in 'cp <file> <folder>'."""
    if _is_block(text, tag):
        return False
    before = _line(text, tag)
    if _is_closing(tag):
        return before[-1].isspace()
    return not before.rstrip().endswith(":") and _PROSE.match(text, tag.end()) is not None


def _line(text: str, tag: re.Match[str]) -> str:
    """Return what stands before a tag on its line."""
    start = max(0, tag.start() - _LINE_CHARS)
    return text[text.rfind("\n", start, tag.start()) + 1 or start : tag.start()]
