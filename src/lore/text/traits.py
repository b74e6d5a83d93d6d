"""Traits: cheap signs of a message that ranking uses, found once at capture."""

from __future__ import annotations

import re

EMPTY = 1
ASKS = 2
"""The message ends in a question."""
LEAVES_QUESTION = 4
"""There is a question near its end: what follows may answer it."""
HAS_TIME = 8
HAS_NUMBER = 16
FIRST_PERSON = 32
STANDING = 64
FROM_USER = 128
FROM_ASSISTANT = 256

_HEAD = 1_000
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_TIME = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week|weekend|month|year|morning"
    rf"|{_MONTHS}|monday|tuesday|wednesday|thursday|friday|saturday|sunday|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|twice|once)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|my|i'm|i've|we|our|me)\b", re.IGNORECASE)


def traits_of(text: str, role: str, *, standing: bool = False) -> int:
    """Return the traits of a text as a sum of the constants of this module."""
    stripped = text.strip()
    head = text[:_HEAD]
    found = (
        (EMPTY, not stripped),
        (ASKS, stripped.endswith("?")),
        (LEAVES_QUESTION, "?" in stripped[-200:]),
        (HAS_TIME, _TIME.search(head)),
        (HAS_NUMBER, _NUMBER.search(head)),
        (FIRST_PERSON, _FIRST_PERSON.search(text[:400])),
        (STANDING, standing),
        (FROM_USER, role == "user"),
        (FROM_ASSISTANT, role == "assistant"),
    )
    return sum(trait for trait, has in found if has)
