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
_GREETING = re.compile(
    r"^now\s+|^(?:hi|hey|morning|ok|thanks|yes|no)\b[^.!?]{0,20}[.!,]\s*", re.IGNORECASE
)
_OPTION = re.compile(r"^(?:option|two|three|plan|or|alternatively)\b|\?$", re.IGNORECASE)

_PRINTED = re.compile(
    r"\d\d:\d\d:\d\d|\||\w=\w|^(?:can|could|however|and|okay|missing)\b", re.IGNORECASE
)
_SUMMED_UP = re.compile(r"^(?:done|here's|here is|in summary|to summarize|you)\b", re.IGNORECASE)

CAUSE_SENTENCES = 2
"""What an agent found stands in the last sentences before the fix."""


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
    if any(_SUMMED_UP.match(one) for one in cause):
        return None
    return Fix(" ".join(cause), solution, frozenset(range(first, at + 1 + taken)))


def _solution(told: Sequence[Statement], at: int) -> tuple[str, int]:
    """Return what mends it: the sentence itself, or the first of the items that it leads.

    The first is the mending; what else is proposed may be turned down.
    """
    found = _ANNOUNCED.match(told[at].text)
    text = found["what"].rstrip(":").strip() if found else ""
    if text:
        return f"Fix: {text}", 0
    first = told[at + 1] if at + 1 < len(told) else None
    if first is None or first.lead != told[at].text:
        return "", 0
    led = sum(one.lead == told[at].text for one in told[at + 1 :])
    return f"Fix: {first.text}", led


def complaint_in(asked: Sequence[Statement]) -> str:
    """Return the sentence in which a person said what goes wrong; empty if there is none."""
    for one in asked:
        text = _GREETING.sub("", one.text)
        if _PRINTED.search(text):
            continue
        if _COMPLAINT.search(text) and len(text.split()) > CAUSE_SENTENCES:
            return text
    return ""
