"""The text of a statement as it is kept: without marks of a report, and able to stand alone."""

from __future__ import annotations

from functools import cache

from lore.llm.offline.statement_classifier import straighten
from lore.text import statements
from lore.text.regex import PatternFile
from lore.text.statements import Statement

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


def is_problem(text: str) -> bool:
    """Return whether a label calls a statement a problem ('Issue: the port is open')."""
    return bool(_re.problem_label.match(_label_of(text)))


def is_former(text: str) -> bool:
    """Return whether a label says that a statement held before ('Before: one process')."""
    return bool(_re.former_label.match(_label_of(text)))


def _label_of(text: str) -> str:
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


def is_contrast(text: str) -> bool:
    """Return whether a statement is set against the one before it ('However, …')."""
    return bool(_re.contrast.match(text))


def strip_connective(text: str) -> str:
    """Return a statement without the word that joins it to the one before ('Additionally, …')."""
    rest = text
    for pattern in (_re.contrast, _re.connective, _re.connective):
        rest = pattern.sub("", rest, count=1)
    return text if rest == text else capitalize(rest)


def stands_alone(text: str) -> bool:
    """Return whether a statement can be understood without the one before it."""
    return not _re.refers.match(text) and statements.stands_alone(text)


MAX_CODE_CHARS = 200
"""A longer command is not repeated with the line that introduces it."""


def introduced_code(one: Statement) -> str:
    """Return the one line of code that a statement with a colon introduces, empty if none."""
    if not one.text.endswith(":") or "\n" in one.code.strip() or "`" in one.code:
        return ""
    code = one.code.strip()
    return f" `{code}`" if code and len(code) <= MAX_CODE_CHARS else ""


SHORT_WORDS = 8
"""A longer sentence without a word that the list of verbs has is taken for a sentence."""


def is_sentence(text: str) -> bool:
    """Return whether a short text says something or is a command, rather than only a name."""
    return len(text.split()) > SHORT_WORDS or bool(_re.verb.search(straighten(text)))
