"""Reversals: what an agent claims and takes back later in the same session."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lore.records import Said
from lore.text import specifics, words

SHARED = 0.5
"""Share of a claim's names that a message must have to be about it."""

SHARED_WORDS = 2
"""Words of a claim that a person's doubt must have to be about it."""

_TAKEN_BACK = re.compile(
    r"\b(?:uh[ -]?oh|you're (?:absolutely |completely |totally )?right|you are right"
    r"|i was (?:wrong|mistaken)|my mistake|i stand corrected|turns out|contrary to"
    r"|that's (?:not (?:right|true|correct)|wrong|incorrect)|actually,? (?:both|no|it|they|the)"
    r"|correction|not what i (?:said|thought|expected)|i (?:said|assumed|claimed) earlier)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:double[ -]?check|are you sure|is (?:that|this|it) (?:really|actually|true|right|correct)"
    r"|can (?:you|we) (?:verify|confirm|check|test)|really\?|i doubt|i don't (?:think|believe)"
    r"|that's not (?:right|true)|isn't it)\b",
    re.IGNORECASE,
)


def is_taken_back(claim: str, after: Sequence[Said]) -> bool:
    """Tell whether a person doubts a claim next, or the agent says later that it was wrong."""
    names = {name.strip("`()") for name in specifics.identifiers(claim)}
    asked = next((one for one in after if _is_person(one)), None)
    if asked is not None and _DOUBTED.search(asked.text) and _is_about(claim, asked.text):
        return True
    for one in after:
        if one.voice == "assistant" and _TAKEN_BACK.search(one.text):
            found = sum(name in one.text for name in names)
            if names and found >= SHARED * len(names):
                return True
    return False


def _is_person(one: Said) -> bool:
    return one.voice not in ("assistant", "tool", "system")


def _is_about(claim: str, doubt: str) -> bool:
    told = {_stem(word) for word in words.split(claim) if word not in words.STOP_WORDS}
    asked = {_stem(word) for word in words.split(doubt) if word not in words.STOP_WORDS}
    return len(told & asked) >= SHARED_WORDS


def _stem(word: str) -> str:
    return word[:6].rstrip("s")
