"""Detect vague sentences: announcements without content, and sentences without a clear object."""

from __future__ import annotations

import re

from lore.llm.offline.sentence_rules import has_statement_length
from lore.text import entities
from lore.text.statements import assertion_part

_ANNOUNCED = re.compile(
    r"\bsomething (?:\w+ )?happened\b(?! ?[-–—:,] ?\w)"
    r"|\b(?:had|have|got|hit|reached|made|achieved) (?:a|an|some|my) (?:[a-z]+ ){0,3}?(?:milestone"
    r"|accomplishment|achievement|surprise|news|breakthrough|setback)(?: moment)?"
    r"(?=[.!]|$| (?:this|last|yesterday|today|recently|at|on)\b)",
    re.IGNORECASE,
)
_NO_OBJECT = re.compile(
    r"\bmade the (?:update|change|switch|decision|call)(?= on\b|[.,]|$)|\bboth (?:errors|cases"
    r"|ones)\b|\blearned (?:a lot|so much|a ton|many things)\b|\bmade me think\b|\bhad (?:a blast"
    r"|so much fun)\b|^I(?:'ve| have) been (?:playing|doing|using|reading|watching|practi[cs]ing"
    r"|working|training) (?:for|since|lately|recently)\b",
    re.IGNORECASE,
)
_ALSO = re.compile(
    r"^(?:I|we)(?:'ve|'m|’ve| have| am)? also\b|\btoo[.!]?$|\bas well(?=[.,;!]|$)", re.IGNORECASE
)
_THIS = re.compile(
    r"\b(?:this|these|those) (?!week|weekend|month|year|morning|afternoon|evening|summer|winter"
    r"|spring|fall|autumn|season|time|way|\w+day\b)[a-z]+"
    r"(?=[.,;!]|$| (?:with|for|and|but|in|on|at|from|since|when)\b)",
    re.IGNORECASE,
)
_SHOWN = re.compile(
    r"\b(?:this|that) (?:pic|picture|photo|shot|jam|song|thing|stuff|trip|one)\b"
    r"|(?:^|[-–—] )check out\b|\b(?:painted|drew|made|took|wrote|baked|built) (?:this|that|it)\b",
    re.IGNORECASE,
)
"""References to something shown or named before."""

_IT = re.compile(
    r"^(?:I|we|I've|we've|I'm|I'll|we'll|a \w+|the \w+|my \w+)\s(?:\w+\s){0,3}?(?<!that )"
    r"(?:it|one|them)\b(?! (?:was|is|takes|feels|of|hard|difficult|easy|helpful|clear))",
    re.IGNORECASE,
)
_UNNAMED = re.compile(
    r"\b(?:a|an) (?:[a-z]+ )?(?:project|festival|meeting|event|deadline|workshop|interview"
    r"|presentation|session|trip|party)"
    r"(?: coming up\b| that was\b| (?:coming up )?on [A-Z][a-z]+ \d{1,2}$)"
)
_BARE_SHARE = re.compile(
    r"\b(?:I'm|we're|it's)(?: currently| now)? at \d+%(?=[.,;!]|$| and\b| but\b)", re.IGNORECASE
)
_PROGRESS = re.compile(
    r"\bma(?:de|king) (?:\w+ ){0,2}progress\b(?! (?:on|in|with|toward))", re.IGNORECASE
)
_WANTED = re.compile(
    r"^(?:[\w ]{3,20} ago,? |yesterday,? |last \w+,? )?I (?:wanted|needed|hoped) to\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\bnever\b", re.IGNORECASE)
_DENIES_IT = re.compile(r"\bnever (?:\w+ )?\w+ (?:one|it|that|them)\b(?! \w+ly)", re.IGNORECASE)
_SEEN = re.compile(
    r"\bI'm (?:getting|seeing) (?:an?|this|the) (?:[\w-]+ ){0,2}(?:errors?|message|warning)\b",
    re.IGNORECASE,
)
_NEW = re.compile(
    r"\bthe (?:new|same|other|next|final|revised|original|updated) (?:[A-Z][a-z]+ \d{1,2} )?"
    r"(?:deadline|version|plan|one|schedule|date|goal|target)s?(?=[.,;!]|$| and\b| but\b)"
)


def is_announcement(sentence: str) -> bool:
    """Return whether a sentence announces something without saying what."""
    return bool(_ANNOUNCED.search(sentence))


def join_outcome(sentence: str, following: str) -> str:
    """Return an announcement joined with the sentence that says what; empty without one."""
    outcome = assertion_part(following)
    if (
        not has_statement_length(outcome)
        or not _FIRST_PERSON.search(outcome)
        or following.rstrip().endswith("?")
    ):
        return ""
    ended = sentence if sentence[-1:] in ".!" else f"{sentence}."
    return f"{ended} {outcome}"


_FIRST_PERSON = re.compile(r"\b(?:I|we|my|our)\b", re.IGNORECASE)


def refers_back(sentence: str) -> bool:
    """Return whether a sentence refers to something shown or named before it."""
    return bool(_SHOWN.search(sentence))


def is_unclear(sentence: str) -> bool:
    """Return whether a sentence depends on earlier words, or lacks an object."""
    specifics = entities.count_specifics(sentence)
    if _DENIED.search(sentence):
        return bool(_DENIES_IT.search(sentence)) and not specifics.names
    is_named = bool(specifics.names or specifics.quoted or specifics.dates > 1)
    also = _ALSO.search(sentence) and not (specifics.numbers or specifics.dates or specifics.quoted)
    return bool(
        any(form.search(sentence) for form in (_BARE_SHARE, _PROGRESS, _WANTED, _SHOWN, _SEEN))
        or (_NO_OBJECT.search(sentence) and not specifics.quoted)
        or (also and specifics.names < 2)
        or (_IT.match(sentence) and not (specifics.quoted or specifics.code))
        or (_NEW.search(sentence) and not specifics.names)
        or ((_THIS.search(sentence) or _UNNAMED.search(sentence)) and not is_named)
    )
