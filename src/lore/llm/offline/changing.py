"""What a statement says is no longer so: the words that it takes the place of."""

from __future__ import annotations

import re

_FORMS = (
    re.compile(
        r"\b(?:switch(?:ed|ing)?|mov(?:ed|ing)|migrat(?:ed|ing)|chang(?:ed|ing)|upgrad(?:ed|ing)"
        r"|went|rais(?:ed|ing)|lower(?:ed|ing)|extend(?:ed|ing)|postpon(?:ed|ing)|reschedul"
        r"(?:ed|ing)|increas(?:ed|ing)|decreas(?:ed|ing)|reduc(?:ed|ing)|renam(?:ed|ing)|bump"
        r"(?:ed|ing)|updat(?:ed|ing)|transition(?:ed|ing))\b[^,.;]{0,80}?\bfrom\s+"
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
    r"\b(?:now|no longer|anymore|instead|switched|changed|moved|replaced|updated|rescheduled"
    r"|postponed|actually|correction|migrated|renamed|extended|increased|decreased|reduced|raised"
    r"|upgraded|revised)\b",
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
