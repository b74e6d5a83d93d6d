"""Sentences: split text into sentences, and shorten text to a one-line title."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lore.text.regex import compile_lazy

_TICKED = compile_lazy(r"`[^`\n]+`")
_WRITTEN_END = r"(?<=[.!?…])[\"'”’)\]*_]*\s+(?=[\"'“‘(\[*_]*[A-Z0-9\x01])|(?<=[。！？])\s*"
_END = compile_lazy(_WRITTEN_END)
_TYPED_END = compile_lazy(
    rf"\n\s*|{_WRITTEN_END}"
    r"|(?<=[^\W_][.!?])\s+(?=[(\[]?[^\W\d_])|(?<=[)\]\"'`\x01][.!?])\s+(?=[(\[]?[^\W\d_])"
    r"|(?<=[!?][!?])\s+(?=[^\W\d_])"
)
"""Typed text continues in lower case, and a sentence ends with its line; three dots are a pause."""

_ABBREVIATION = compile_lazy(
    r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Mt|Jr|Sr|No|Nr|vs|ca|cf|etc|approx|e\.g|i\.e"
    r"|[a-z]\.[a-z])\.$",
    re.IGNORECASE,
)
_TYPED_ABBREVIATION = compile_lazy(
    r"(?:^|[\s(])(?:min|max|incl|excl|resp|dept|inc|fig|sec|no|est|misc|def|avg|temp|esp|orig|ver"
    r"|pp?|bzw|z\.B|u\.a|ggf|usw|evtl|inkl|nr|vgl|d\.h)\.$",
    re.IGNORECASE,
)
"""Further abbreviations before a word in lower case."""

_ORDINAL_ONLY = compile_lazy(r"^\(?\d{1,3}[.)]$")


def sentence_spans(text: str, *, typed: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence of a paragraph, with the space after it.

    Code in backticks is never split. In `typed` text a sentence may start in lower case, and ends
    with its line.
    """
    masked = text
    if "`" in text:
        masked = _TICKED.sub(lambda match: "\x01" * len(match.group()), text)
    start = 0
    for end in (_TYPED_END if typed else _END).finditer(masked):
        if not _is_abbreviation(masked, start, end, typed=typed):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _is_abbreviation(text: str, start: int, end: re.Match[str], *, typed: bool) -> bool:
    """Return whether a dot belongs to an abbreviation or a list number."""
    if typed and "\n" in end.group():
        return False
    piece = text[start : end.start()].rstrip("\"'”’)]*_ ")
    if _ABBREVIATION.search(piece[-8:]) or _ORDINAL_ONLY.match(piece.strip()):
        return True
    in_lower_case = typed and text[end.end() : end.end() + 1].islower()
    return in_lower_case and bool(_TYPED_ABBREVIATION.search(piece[-8:]))


def split_sentences(text: str, *, typed: bool = False) -> list[str]:
    """Return the sentences of a paragraph, none of them empty."""
    pieces = (text[start:end].strip() for start, end in sentence_spans(text, typed=typed))
    return [sentence for sentence in pieces if sentence]


def first_sentence(line: str) -> str:
    """Return the first sentence of a line."""
    start, end = next(sentence_spans(line, typed=True))
    return line[start:end].strip()


_SPACE = compile_lazy(r"\s+")
_MARKUP = compile_lazy(r"^(?:[#>*\-•]+\s+)+")

SUMMARY_CHARS = 120


def summary(content: str, most: int = SUMMARY_CHARS) -> str:
    """Return the first sentence of a text on one line, cut at a word if it is long."""
    head = content.lstrip()[: most * 8]
    lines = (_SPACE.sub(" ", line).strip() for line in head.splitlines())
    filled = [line for line in lines if line]
    telling = next((line for line in filled if line.strip("#>*-•=_ ")), "".join(filled[:1]))
    return _cut(first_sentence(_MARKUP.sub("", telling)), most)


def one_line(text: str, most: int) -> str:
    """Return a whole text on one line, cut at a word if it is long."""
    return _cut(_SPACE.sub(" ", text.lstrip()[: most * 8]).strip(), most)


def _cut(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    cut = line[: most - 1].rsplit(" ", 1)[0]
    return (cut if len(cut) > most // 2 else line[: most - 1]).rstrip(",;: ") + "…"
