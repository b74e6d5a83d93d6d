"""Redaction: find secrets in text and replace each with a mark that names only its kind.

Patterns, word lists and key formats are data files in `rules/`.
"""

from __future__ import annotations

import re
from pathlib import Path

from lore.text.regex import PatternFile, compile_lazy

RULES_FOLDER = Path(__file__).parent / "rules"
PATTERNS = PatternFile("patterns", RULES_FOLDER)
_WORDS = PatternFile("words", RULES_FOLDER)
_WORD_LIST = compile_lazy(r"\{words:(\w+)\}")


def load_words(name: str) -> frozenset[str]:
    """Return a word list of `rules/words.txt`."""
    return _WORDS.words(name)


def load_pattern(name: str) -> str:
    """Return a pattern of `rules/patterns.txt`; `{words:list}` matches any word of a list."""
    return _WORD_LIST.sub(lambda reference: any_word(reference[1]), PATTERNS.text(name))


def compile_bytes(name: str) -> re.Pattern[bytes]:
    """Return a pattern of `rules/patterns.txt` for bytes, compiled at its first use."""
    return compile_lazy(load_pattern(name).encode("latin-1"))


def any_word(name: str) -> str:
    """Return a pattern of bytes for the words of a list.

    It contains capitals, which re2 does not fold outside ASCII; `_` stands for space.
    """
    each = dict.fromkeys(
        form
        for word in " ".join(_WORDS.sections[name]).split()
        for form in ((word,) if word.isascii() else (word, word.capitalize(), word.upper()))
    )
    return "|".join(each).replace("_", r"[ \t]+").encode().decode("latin-1")
