"""Private text: what a person puts between `<private>` and `</private>` is never stored."""

from __future__ import annotations

import re

from lore.text.regex import compile_lazy

PRIVATE_MARK = "[private]"
"""Stands in the memory where private text was."""

_SPAN = compile_lazy(
    r"<\s*private(?![\w-])[^<>]*>.*?(?:<\s*/\s*private(?![\w-])[^<>]*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_REST = compile_lazy(r"\A.*<\s*/\s*private(?![\w-])[^<>]*>", re.DOTALL | re.IGNORECASE)
"""Doubt counts against the text: an unclosed tag reaches to the end, a lone closing one from the
beginning, as after nested tags."""

_NAME = compile_lazy("private", re.IGNORECASE)


def hide_private(text: str) -> str:
    """Return a text with a mark in place of each private span."""
    if "<" not in text or not _NAME.search(text):
        return text
    return _REST.sub(PRIVATE_MARK, _SPAN.sub(PRIVATE_MARK, text))
