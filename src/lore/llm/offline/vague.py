"""Vague sentences: those that announce what only the next one says, and those that lack a noun."""

from __future__ import annotations

import re

from lore.llm.offline.finding import fits
from lore.text import specifics
from lore.text.told import told

_ANNOUNCED = re.compile(
    r"\bsomething (?:\w+ )?happened\b(?! ?[-–—:,] ?\w)"
    r"|\b(?:had|have|got|hit|reached|made|achieved) (?:a|an|some|my) (?:[a-z]+ ){0,3}?(?:milestone"
    r"|accomplishment|achievement|surprise|news|breakthrough|setback)(?: moment)?"
    r"(?=[.!]|$| (?:this|last|yesterday|today|recently|at|on)\b)",
    re.IGNORECASE,
)
_NO_OBJECT = re.compile(
    r"\blearned (?:a lot|so much|a ton|many things)\b|\bmade me think\b"
    r"|\bhad (?:a blast|so much fun)\b"
    r"|^I(?:'ve| have) been (?:playing|doing|using|reading|watching|practi[cs]ing|working|training)"
    r" (?:for|since|lately|recently)\b",
    re.IGNORECASE,
)
_ALSO = re.compile(
    r"^(?:I|we)(?:'ve|'m|’ve| have| am)? also\b|\b(?:too|as well)[.!]?$|^(?:except|no)\b",
    re.IGNORECASE,
)
_THIS = re.compile(
    r"\b(?:this|these|those) (?!week|weekend|month|year|morning|afternoon|evening|summer|winter"
    r"|spring|fall|autumn|season|time|way|\w+day\b)[a-z]+"
    r"(?=[.,;!]|$| (?:with|for|and|but|in|on|at|from|since|when)\b)",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\bnever\b", re.IGNORECASE)
_NEW = re.compile(
    r"\bthe (?:new|same|other|next|final|revised|original|updated) (?:[A-Z][a-z]+ \d{1,2} )?"
    r"(?:deadline|version|plan|one|schedule|date|goal|target)s?(?=[.,;!]|$| and\b| but\b)"
)


def announces(sentence: str) -> bool:
    """Tell whether a sentence says that there is something, and not what."""
    return bool(_ANNOUNCED.search(sentence))


def with_outcome(sentence: str, following: str) -> str:
    """Return a sentence that announces something with the one that says what; empty without it."""
    outcome = told(following)
    if not fits(outcome) or not _TELLS.search(outcome) or following.rstrip().endswith("?"):
        return ""
    ended = sentence if sentence[-1:] in ".!" else f"{sentence}."
    return f"{ended} {outcome}"


_TELLS = re.compile(r"\b(?:I|we|my|our)\b", re.IGNORECASE)


def is_unclear(sentence: str) -> bool:
    """Tell whether a sentence leans on words that were said before it, or has no object."""
    said = specifics.of(sentence)
    if _DENIED.search(sentence):
        return False
    named = said.dates + said.names + said.quoted + said.code
    if _NO_OBJECT.search(sentence) and not said.quoted:
        return True
    if _ALSO.search(sentence) and not (said.numbers or said.dates or said.quoted or said.names > 1):
        return True
    if _THIS.search(sentence) and not named:
        return True
    return bool(_NEW.search(sentence)) and not said.names
