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
from lore.store import edges, fragments
from lore.store.db import Connection
from lore.text import words

SAID_BEFORE = 0.75
"""A fragment that is so near to the words that are corrected says what was so before."""

SAME_MATTER = 0.6
"""So near to the correction, and naming the former value: it speaks of the same matter. Both are
chosen by hand: statements of one matter with another value lie at 0.75 to 0.93 in the labelled
pairs of `benchmarks/dedup.py`, but no set of corrections has been labelled yet."""


def find(
    draft: Drafted, at: datetime, known: Sequence[Candidate], rows: dict[int, np.ndarray]
) -> Candidate | None:
    """Return the older fragment that a draft corrects, if it names one that is known."""
    if not draft.corrects:
        return None
    fitting = [
        (max(one.cosine, before), one)
        for one in known
        if one.fragment.kind not in NO_ROOTS and one.fragment.created_at < at
        for before in [_nearness(draft, rows.get(one.n))]
        if before >= SAID_BEFORE or (one.cosine >= SAME_MATTER and _names(draft, one))
    ]
    return max(fitting, key=lambda pair: (pair[0], -pair[1].n))[1] if fitting else None


def find_newer(draft: Drafted, at: datetime, known: Sequence[Candidate]) -> Candidate | None:
    """Return the newer fragment that corrects a draft which came in late, if there is one."""
    told = set(words.split(draft.content))
    fitting = [
        one
        for one in known
        if one.fragment.created_at > at
        and one.cosine >= SAME_MATTER
        and (former := _former(str(one.fragment.payload.get("replaces", ""))))
        and former <= told
    ]
    return max(fitting, key=lambda one: (one.cosine, -one.n), default=None)


def _nearness(draft: Drafted, row: np.ndarray | None) -> float:
    if draft.corrects_vector is None or row is None:
        return 0.0
    return float(row @ draft.corrects_vector)


def _names(draft: Drafted, known: Candidate) -> bool:
    """Tell whether a fragment has the former value in it, word for word."""
    former = _former(draft.corrects)
    return bool(former) and former <= set(words.split(known.fragment.content))


def _former(told: str) -> set[str]:
    return set(words.split(told)) - words.STOP_WORDS


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


def supersede(db: Connection, older: int, newer: int, *, now: datetime) -> None:
    """Let a newer fragment stand in the place of an older one; both are kept."""
    edges.put(db, newer, older, "supersedes", now=now)
    fragments.set_superseded(db, older, fragments.get(db, newer).id, now=now)
