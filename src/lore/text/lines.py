"""Lines: one-line titles derived from longer text."""

from __future__ import annotations

from lore.text import sentences
from lore.text.later import compile_later

_SPACE = compile_later(r"\s+")
_MARKUP = compile_later(r"^(?:[#>*\-•]+\s+)+")

SUMMARY_CHARS = 120


def summary(content: str, most: int = SUMMARY_CHARS) -> str:
    """Return the first sentence of a text on one line, cut at a word if it is long."""
    head = content.lstrip()[: most * 8]
    lines = (_SPACE.sub(" ", line).strip() for line in head.splitlines())
    filled = [line for line in lines if line]
    telling = next((line for line in filled if line.strip("#>*-•=_ ")), "".join(filled[:1]))
    return _cut(sentences.first(_MARKUP.sub("", telling)), most)


def one_line(text: str, most: int) -> str:
    """Return a whole text on one line, cut at a word if it is long."""
    return _cut(_SPACE.sub(" ", text.lstrip()[: most * 8]).strip(), most)


def _cut(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    cut = line[: most - 1].rsplit(" ", 1)[0]
    return (cut if len(cut) > most // 2 else line[: most - 1]).rstrip(",;: ") + "…"
