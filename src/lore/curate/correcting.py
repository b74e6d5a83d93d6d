"""Correcting: a draft that says what is different now, and the fragment that said it before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from lore.curate.drafting import Drafted
from lore.curate.merging import Candidate
from lore.curate.placing import NO_ROOTS
from lore.text import values, withdrawals, words
from lore.text.withdrawals import Withdrawal

SAID_BEFORE = 0.75
"""A fragment that is so near to the words that are corrected says what was so before."""

SAME_MATTER = 0.6
"""So near to the correction, and naming the former value: it speaks of the same matter. Both are
chosen by hand: statements of one matter with another value lie at 0.75 to 0.93 in the labelled
pairs of `benchmarks/dedup.py`, but no set of corrections has been labelled yet."""

SAME_NAMED = 0.45
"""Enough where both name the same version, person or thing besides; chosen by hand as well."""


def find(
    draft: Drafted, at: datetime, known: Sequence[Candidate], rows: dict[int, np.ndarray]
) -> Candidate | None:
    """Return the older fragment that a draft corrects, if it names one that is known."""
    if not draft.corrects:
        return None
    withdrawal = withdrawals.find(draft.content) if draft.kind == "preference" else None
    if withdrawal:
        return _taken_back(withdrawal, [one for one in known if one.fragment.created_at < at])
    fitting = [
        (max(one.cosine, before), one)
        for one in known
        if one.fragment.kind not in NO_ROOTS and one.fragment.created_at < at
        for before in [_nearness(draft, rows.get(one.n))]
        if before >= SAID_BEFORE
        or _is_corrected(one.fragment.content, draft.content, draft.corrects, one.cosine)
    ]
    return max(fitting, key=lambda pair: (pair[0], -pair[1].n))[1] if fitting else None


def _taken_back(withdrawal: Withdrawal, known: Sequence[Candidate]) -> Candidate | None:
    """Return the rule that a person takes back: by its words, for near it are other rules."""
    rules = [one for one in known if one.fragment.kind == "preference"]
    places = withdrawals.meant(withdrawal, [one.fragment.content for one in rules])
    return max((rules[i] for i in places), key=lambda one: (one.cosine, -one.n), default=None)


def find_newer(draft: Drafted, at: datetime, known: Sequence[Candidate]) -> Candidate | None:
    """Return the newer fragment that corrects a draft which came in late, if there is one."""
    fitting = [
        one
        for one in known
        if one.fragment.created_at > at
        and _is_corrected(draft.content, one.fragment.content, _replaced(one), one.cosine)
    ]
    return max(fitting, key=lambda one: (one.cosine, -one.n), default=None)


def _nearness(draft: Drafted, row: np.ndarray | None) -> float:
    if draft.corrects_vector is None or row is None:
        return 0.0
    return float(row @ draft.corrects_vector)


def _replaced(known: Candidate) -> str:
    return str(known.fragment.payload.get("replaces", ""))


def _is_corrected(older: str, newer: str, former: str, cosine: float) -> bool:
    """Tell whether the older text has the former value in it, word for word, on one matter.

    A version or a name that both have besides says so too, where the words are further apart.
    """
    gone = _words(former) - words.STOP_WORDS
    if not gone or not gone <= _words(older):
        return False
    shared = (values.of(older) & values.of(newer)) - values.of(former)
    return cosine >= (SAME_NAMED if shared else SAME_MATTER)


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in words.split(text)}


_SURROUNDINGS = re.compile(
    r"\b(dev|prod|staging|test|ci|local)(?:elopment|uction|s|host)?\b", re.IGNORECASE
)


def is_same_setting(
    one: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]]
) -> bool:
    """Tell whether two settings of one name, text and payload, are one: no two places are named."""
    (text, told), (other_text, other_told) = one, other
    places = {told.get("location"), other_told.get("location")} - {None, ""}
    here, there = (_surroundings(said) for said in (text, other_text))
    return len(places) < 2 and (not here or not there or bool(here & there))


def _surroundings(text: str) -> set[str]:
    return {found.lower() for found in _SURROUNDINGS.findall(text)}
