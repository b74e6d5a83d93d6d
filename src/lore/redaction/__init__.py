"""Redaction: find secrets in text and replace each with a mark that names only its kind.

Rules are tables in the modules of this package and data files in `rules/`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

RULES_FOLDER = Path(__file__).parent / "rules"


@cache
def _read_sections(file: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (RULES_FOLDER / file).read_text("utf-8").splitlines():
        if line.startswith("== "):
            lines = sections[line[3 : line.index(":")]] = []
        elif line:
            lines.append(line)
    return sections


def load_words(name: str) -> frozenset[str]:
    """Return a word list of `rules/words.txt`."""
    return frozenset(" ".join(_read_sections("words.txt")[name]).split())


def load_pattern(name: str, *, joint: str = "|") -> str:
    """Return a section of `rules/patterns.txt` with its lines joined."""
    return joint.join(_read_sections("patterns.txt")[name])
