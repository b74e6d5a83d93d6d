"""Sentences: where one ends and the next begins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lore.text.later import compile_later

_TICKED = compile_later(r"`[^`\n]+`")
_WRITTEN_END = r"(?<=[.!?…])[\"'”’)\]*_]*\s+(?=[\"'“‘(\[*_]*[A-Z0-9\x01])|(?<=[。！？])\s*"
_END = compile_later(_WRITTEN_END)
_TYPED_END = compile_later(
    rf"\n\s*|{_WRITTEN_END}"
    r"|(?<=[^\W_][.!?])\s+(?=[(\[]?[^\W\d_])|(?<=[)\]\"'`\x01][.!?])\s+(?=[(\[]?[^\W\d_])"
    r"|(?<=[!?][!?])\s+(?=[^\W\d_])"
)
"""People who type go on in lower case and end with the line; three dots are a pause, not an end."""

_ABBREVIATION = compile_later(
    r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Mt|Jr|Sr|No|Nr|vs|ca|cf|etc|approx|e\.g|i\.e"
    r"|[a-z]\.[a-z])\.$",
    re.IGNORECASE,
)
_TYPED_ABBREVIATION = compile_later(
    r"(?:^|[\s(])(?:min|max|incl|excl|resp|dept|inc|fig|sec|no|est|misc|def|avg|temp|esp|orig|ver"
    r"|pp?|bzw|z\.B|u\.a|ggf|usw|evtl|inkl|nr|vgl|d\.h)\.$",
    re.IGNORECASE,
)
"""More that is cut short before a word in lower case."""

_ORDINAL_ONLY = compile_later(r"^\(?\d{1,3}[.)]$")


def spans(text: str, *, typed: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each sentence of a paragraph, with the space behind it.

    What stands in backticks is never cut. In what a person `typed` a sentence may begin in lower
    case, and ends with its line.
    """
    masked = text
    if "`" in text:
        masked = _TICKED.sub(lambda found: "\x01" * len(found.group()), text)
    start = 0
    for end in (_TYPED_END if typed else _END).finditer(masked):
        if not _goes_on(masked, start, end, typed=typed):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _goes_on(text: str, start: int, end: re.Match[str], *, typed: bool) -> bool:
    """Tell whether a dot ends no sentence, but a word that is cut short, or a number in a list."""
    if typed and "\n" in end.group():
        return False
    piece = text[start : end.start()].rstrip("\"'”’)]*_ ")
    if _ABBREVIATION.search(piece[-8:]) or _ORDINAL_ONLY.match(piece.strip()):
        return True
    in_lower_case = typed and text[end.end() : end.end() + 1].islower()
    return in_lower_case and bool(_TYPED_ABBREVIATION.search(piece[-8:]))


def cut(text: str, *, typed: bool = False) -> list[str]:
    """Return the sentences of a paragraph, none of them empty."""
    found = (text[start:end].strip() for start, end in spans(text, typed=typed))
    return [sentence for sentence in found if sentence]


def first(line: str) -> str:
    """Return the first sentence of a line."""
    start, end = next(spans(line, typed=True))
    return line[start:end].strip()
