"""The text of a statement as it is kept: without marks of a report, and able to stand alone."""

from __future__ import annotations

from functools import cache

from lore.text.regex import PatternFile

_re = PatternFile("statement_text")

MAX_LABELS = 3
"""Labels that may follow one another: 'What I found: Root cause: …'."""

MAX_LEAD_CHARS = 240
"""A longer sentence before a list or a reference is not repeated with it."""


def as_list(text: str) -> str:
    """Return a text in which lines that begin with a check mark are items of a list."""
    return _re.check_line.sub("- ", text)


def strip_marks(text: str) -> str:
    """Return a text without the bullets, check marks and list numbers before its first word."""
    return _re.mark.sub("", text) or text


def is_report_heading(heading: str) -> bool:
    """Return whether a heading names no subject ('Summary of changes', 'What I fixed')."""
    named = {word.strip(".,!*'\"()") for word in _bare_heading(heading).lower().split()}
    if named & _words("weighty_words"):
        return False
    return all(word.isdigit() for word in named - _words("report_words") - {""})


@cache
def _words(name: str) -> frozenset[str]:
    return _re.words(name)


def subject_of(heading: str) -> str:
    """Return a heading without marks and report labels; empty if it names no subject."""
    heading = _bare_heading(heading)
    for part in (heading, strip_labels(heading)):
        if is_report_heading(part):
            return ""
        heading = part
    return heading


def _bare_heading(heading: str) -> str:
    return _re.last_mark.sub("", strip_marks(heading).rstrip(": ")).rstrip(": ")


def label_of(text: str) -> str:
    """Return the label before a statement ('Fix' of 'Fix: added a lock'), empty if none."""
    label = _re.label.match(strip_marks(text))
    return _bare_heading(label["label"]) if label else ""


def strip_labels(text: str) -> str:
    """Return a statement without the marks and the labels before it that name no subject."""
    for _ in range(MAX_LABELS):
        text = strip_marks(text)
        label = _re.label.match(text)
        if not label or not is_report_heading(label["label"]):
            break
        text = text[label.end() :]
    return text


def capitalize(text: str) -> str:
    """Return a text that begins with a capital, unless a name or code stands there."""
    return text[:1].upper() + text[1:] if _re.opens_clause.match(text) else text
