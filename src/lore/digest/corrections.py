"""Match corrections: find the older fragment that a draft corrects, and the reverse."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from lore.digest.drafts import DraftFragment
from lore.digest.placement import NEVER_PARENTS, Candidate
from lore.text import entities, instructions, words
from lore.text.instructions import Withdrawal

SAME_AS_FORMER = 0.75
"""A fragment this similar to the corrected words states the former value."""

SAME_SUBJECT = 0.6
"""Similar enough to the correction, if it names the former value.

Both are chosen by hand: statements of one subject with another value lie at 0.75 to 0.93 in the
labelled pairs of `benchmarks/dedup.py`, but no set of corrections has been labelled yet.
"""

SAME_NAMED_SUBJECT = 0.45
"""Enough where both name the same version, person or thing as well; chosen by hand too."""


def find_corrected(
    draft: DraftFragment, at: datetime, candidates: Sequence[Candidate], rows: dict[int, np.ndarray]
) -> Candidate | None:
    """Return the older fragment that a draft corrects, if there is one."""
    if not draft.corrects:
        return None
    withdrawal = instructions.find_withdrawal(draft.content) if draft.kind == "preference" else None
    if withdrawal:
        return _find_withdrawn_rule(
            withdrawal, [one for one in candidates if one.fragment.created_at < at]
        )
    fitting = [
        (max(one.cosine, before), one)
        for one in candidates
        if one.fragment.kind not in NEVER_PARENTS and one.fragment.created_at < at
        for before in [_former_similarity(draft, rows.get(one.n))]
        if before >= SAME_AS_FORMER
        or _is_corrected(one.fragment.content, draft.content, draft.corrects, one.cosine)
    ]
    return max(fitting, key=lambda pair: (pair[0], -pair[1].n))[1] if fitting else None


def _find_withdrawn_rule(
    withdrawal: Withdrawal, candidates: Sequence[Candidate]
) -> Candidate | None:
    """Return the rule that a user withdraws, matched by its words: similar rules lie close."""
    rules = [one for one in candidates if one.fragment.kind == "preference"]
    places = instructions.match_rules(withdrawal, [one.fragment.content for one in rules])
    return max((rules[i] for i in places), key=lambda one: (one.cosine, -one.n), default=None)


def find_correction(
    draft: DraftFragment, at: datetime, candidates: Sequence[Candidate]
) -> Candidate | None:
    """Return the newer fragment that corrects a late draft, if there is one."""
    fitting = [
        one
        for one in candidates
        if one.fragment.created_at > at
        and _is_corrected(draft.content, one.fragment.content, _replaced_text(one), one.cosine)
    ]
    return max(fitting, key=lambda one: (one.cosine, -one.n), default=None)


def _former_similarity(draft: DraftFragment, row: np.ndarray | None) -> float:
    if draft.corrects_vector is None or row is None:
        return 0.0
    return float(row @ draft.corrects_vector)


def _replaced_text(candidate: Candidate) -> str:
    return str(candidate.fragment.payload.get("replaces", ""))


def _is_corrected(older: str, newer: str, former: str, cosine: float) -> bool:
    """Return whether the older text contains the former value, word for word, on the same subject.

    A shared version or name lowers the required similarity.
    """
    former_words = _singular_words(former) - words.STOP_WORDS
    if not former_words or not former_words <= _singular_words(older):
        return False
    shared = (
        entities.extract_values(older) & entities.extract_values(newer)
    ) - entities.extract_values(former)
    return cosine >= (SAME_NAMED_SUBJECT if shared else SAME_SUBJECT)


def _singular_words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in words.split(text)}


_ENVIRONMENT = re.compile(
    r"\b(dev|prod|staging|test|ci|local)(?:elopment|uction|s|host)?\b", re.IGNORECASE
)


def is_same_setting(
    one: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]]
) -> bool:
    """Return whether two settings of one name are the same, given as text and payload.

    They are different if they name two locations or two environments.
    """
    (text, payload), (other_text, other_payload) = one, other
    places = {payload.get("location"), other_payload.get("location")} - {None, ""}
    here, there = (_environments(content) for content in (text, other_text))
    return len(places) < 2 and (not here or not there or bool(here & there))


def _environments(text: str) -> set[str]:
    return {match.lower() for match in _ENVIRONMENT.findall(text)}
