"""Lines: one-line titles derived from longer text."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s")
_SPACE = re.compile(r"\s+")
_MARKUP = re.compile(r"^[#>*\-\s]+")

SUMMARY_CHARS = 120


def summary(content: str, most: int = SUMMARY_CHARS) -> str:
    """Return the first sentence of a text on one line, cut at a word if it is long."""
    head = content[: most * 8].strip()
    line = next((line for line in head.splitlines() if _MARKUP.sub("", line).strip()), "")
    line = _SPACE.sub(" ", _MARKUP.sub("", line)).strip()
    sentence = _SENTENCE_END.split(line, maxsplit=1)[0]
    if len(sentence) <= most:
        return sentence
    cut = sentence[:most].rsplit(" ", 1)[0]
    return (cut if len(cut) > most // 2 else sentence[:most]).rstrip(",;:") + "…"
