"""What a statement says is no longer so: the words that it takes the place of."""

from __future__ import annotations

import re

VERBS = (
    "switch|mov|migrat|chang|upgrad|downgrad|rais|lower|increas|decreas|reduc|extend|postpon"
    "|reschedul|renam|bump|updat|revis|transition|convert"
)
"""How verbs begin that say that something is different afterwards."""

_FORMS = (
    re.compile(
        rf"\b(?:switch|went|(?:{VERBS}|port)(?:ed|ing))\b[^,.;]{{0,80}}?\bfrom\s+"
        r"([^,.;]{2,60}?)\s+(?:to|over to)\s+[^,.;]{2,}",
        re.IGNORECASE,
    ),
    re.compile(r"\breplac(?:ed|ing|es)\s+([^,.;]{2,60}?)\s+(?:with|by)\s+", re.IGNORECASE),
    re.compile(r"\b(?:no longer|not anymore|stopped|don't|do not)\s+(?:use|using|need|want|run|"
               r"support)\w*\s+([^,.;]{2,60})", re.IGNORECASE),
    re.compile(r"\bforget (`[^`]{2,60}`|[\w./-]{2,40}),", re.IGNORECASE),
    re.compile(r"^(?:the |our |final )*decision: [\w./@-]{2,40} (?:instead of|rather than|not) "
               r"([\w./@-]{2,40})", re.IGNORECASE),
    re.compile(r"\b(?:use|uses|using|used|is|are|was|call|with)\s+[^,.;]{2,60}?,?\s+(?:instead of"
               r"|rather than|not)\s+([^,.;]{2,60})", re.IGNORECASE),
)  # fmt: skip
_CHANGED = re.compile(
    rf"\b(?:now|no longer|anymore|instead|replaced|actually|correction|(?:{VERBS})ed)\b",
    re.IGNORECASE,
)


def replaced(statement: str) -> str:
    """Return what a statement names as the former state; empty if it names none."""
    for form in _FORMS:
        found = form.search(statement)
        if found:
            return found[1].strip(" `\"'")
    return ""


def says_so(statement: str) -> bool:
    """Tell whether a statement says that something is different now."""
    return bool(_CHANGED.search(statement)) or bool(replaced(statement))
