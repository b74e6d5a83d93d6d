"""Fixes that an agent announces: what was reported, what it found, and what mends it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lore.text.statements import Statement

_ANNOUNCED = re.compile(r"^(?:the\s)?(?:fix|solution)(?:\s[\w\s]{2,24})?:\s*(?P<what>.*)$", re.I)
_COMPLAINT = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|errors?|crash(?:es|ed)?|broken?|wrong|bugs?|hangs?|panics?"
    r"|time[sd]? ?outs?|cannot|can't|doesn'?t|twice|unhealthy|missing|flaky|stuck|lost|duplicates?"
    r"|slow|seconds|garbled|too (?:late|early|long|slow)|[45]\d\ds?|exceeded|never|dead|blocked"
    r"|double booked|complain\w*|looks? funny)\b",
    re.IGNORECASE,
)
_GREETING = re.compile(r"^(?:hi|hey|morning|ok|thanks|yes|no)\b[^.!?]{0,20}[.!,]\s*", re.IGNORECASE)
_OPTION = re.compile(r"^(?:option|two|three|plan|or|alternatively)\b|\?$", re.IGNORECASE)

CAUSE_SENTENCES, STEPS = 2, 3
"""What an agent found stands in the last sentences before the fix; a fix has a few parts."""

_LONGEST_FIX = 320


class Fix(NamedTuple):
    """A fix with its cause, and the places of both among the statements."""

    cause: str
    solution: str
    places: frozenset[int]


def find(told: Sequence[Statement]) -> Fix | None:
    """Return the one fix that a message announces, with what was found before it."""
    places = [at for at, one in enumerate(told) if _ANNOUNCED.match(one.text)]
    if len(places) != 1 or places[0] == 0:
        return None
    at = places[0]
    solution, taken = _solution(told, at)
    first = max(0, at - CAUSE_SENTENCES)
    cause = [one.text for one in told[first:at] if not one.is_item]
    if not solution or not cause or any(_OPTION.search(one) for one in cause):
        return None
    return Fix(" ".join(cause), solution, frozenset(range(first, at + 1 + taken)))


def _solution(told: Sequence[Statement], at: int) -> tuple[str, int]:
    """Return what mends it: the sentence itself, or the items that it leads."""
    found = _ANNOUNCED.match(told[at].text)
    text = found["what"].rstrip(":").strip() if found else ""
    if text:
        return f"Fix: {text}", 0
    steps = [one.text for one in told[at + 1 : at + 1 + STEPS] if one.lead == told[at].text]
    while steps and sum(map(len, steps)) > _LONGEST_FIX:
        steps.pop()
    return (f"Fix: {' '.join(steps)}", len(steps)) if steps else ("", 0)


def complaint_in(asked: Sequence[Statement]) -> str:
    """Return the sentence in which a person said what goes wrong; empty if there is none."""
    for one in asked:
        text = _GREETING.sub("", one.text)
        if _COMPLAINT.search(text) and len(text.split()) > CAUSE_SENTENCES:
            return text
    return ""
