"""Exercises and advertisements: figures that say nothing of the person who repeats them."""

from __future__ import annotations

import re

from lore.text import specifics

_FORMULA = re.compile(
    r"\\[a-zA-Z(\[]|[√²³×÷≈∑∫π]|\bP\([\w|, ]+\)|\b[a-z]_[a-z]\b|\b\d+!|\d\)?\s?[+*^]\s?\(?\d"
    r"|\b[A-Za-z]\s?=\s?[\d(]"
)
_SCHOOL = re.compile(
    r"\b(?:triangles?|hypotenuse|altitudes?|angles?|scalene|isosceles|equilateral|theorem|dice|die"
    r"|coins?|marbles?|deck of|permutations?|combinations?|factorials?|probabilit(?:y|ies)"
    r"|equations?|perimeter|circumference|radius|median length|heron's)\b",
    re.IGNORECASE,
)
_SET = re.compile(
    r"^(?:I'm|I am|I've been|I've got|I have|I've|I)\s(?:\w+\s){0,3}?(?:working with|given|trying"
    r"|an?|the|two|three|\d+|using|verify\w*|calculat\w*|check\w*|apply\w*|comput\w*|determin\w*|find"
    r"|draw\w*|need|want|won't|can|know|understand|got)\b",
    re.IGNORECASE,
)
_LEARNING = re.compile(
    r"\b(?:problems?|quiz|score|accuracy|goal|course|class|lessons?|prefer|solved|completed|practi[cs]"
    r"\w*|studied|studying|month|week|tutor|exams?)\b",
    re.IGNORECASE,
)
"""How someone learns is about them, whatever they learn."""

_NEVER = re.compile(r"\bnever\b", re.IGNORECASE)
_CLAIM = re.compile(
    r"\b(?:which|that|it|they|unit|technology|material|insole|pad|panels?|upper|sole|cushioning"
    r"|fabric|its [\w -]{3,40}?)\s(?:can\s|is\s|are\s|has\s|was\s)?(?:been\s)?(?:improves?|improved"
    r"|reduces?|reduced|increases?|absorbs?|provides?|offers?|boosts?|enhances?|rated|lasts?|extends?"
    r"|speeds?|tested|claims?)\b[^.;]{0,80}\d+(?:\.\d+)?\s?%",
    re.IGNORECASE,
)
_HEARD = re.compile(
    r"^I(?:'m|'ve| have| am)?\s?(?:been\s|also\s|just\s|kinda\s)*(?:research\w*|heard|read|learn\w*"
    r"|consider\w*|think\w*|look\w*|interested|compar\w*|know|noticed|saw)\b",
    re.IGNORECASE,
)
_TAKEN = re.compile(
    r"\bI(?:'ve| have)?\s(?:just\s|also\s|already\s|recently\s)*(?:got|bought|own|ordered|chose"
    r"|paid|purchased|wore|returned|picked|met|spent|decided)\b|[$€£]\d",
    re.IGNORECASE,
)


def is_one(sentence: str) -> bool:
    """Tell whether a sentence sets an exercise, or repeats what is claimed of a product."""
    said = specifics.of(sentence)
    if _NEVER.search(sentence):
        return False
    if _CLAIM.search(sentence) and _HEARD.match(sentence) and not said.dates:
        return not _TAKEN.search(sentence)
    if _FORMULA.search(sentence) and "`" not in sentence and "://" not in sentence:
        return not _LEARNING.search(sentence)
    if not _SCHOOL.search(sentence) or said.dates or _LEARNING.search(sentence):
        return False
    return bool(_SET.match(sentence))
