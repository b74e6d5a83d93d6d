"""Merging: when a draft says what is known already, and what becomes of the two.

Of equal trust, they become one: sources united, a little more sure, the newer wording shown and
the former kept as a version. A voice of less trust changes nothing of what a higher one said, nor
makes it surer. A voice of more trust says it itself, and what the lower one said steps back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lore.curate.trust import needed_for
from lore.records import Fragment, FragmentKind
from lore.text import values, withdrawals

THRESHOLDS: Mapping[FragmentKind, float] = {
    "preference": 0.8,
    "decision": 0.85,
    "pattern": 0.9,
    "workflow": 0.85,
    "config": 0.85,
}
USUAL_THRESHOLD = 0.92
"""From which cosine on two fragments of a kind say the same, where no value differs: the lowest
at which `benchmarks/dedup.py` merges nothing wrongly with the shipped embedder (330 pairs judged
by hand; preferences and decisions with room above the highest wrong pair). By cosine alone every
fourth merge of facts at 0.875 would be wrong: another amount, another date. Patterns as in the
specification, workflows and settings by their command and name: too few pairs of them."""

SURER_BY = 0.05
"""A confirmation makes a fragment so much surer, at most 1."""

Outcome = Literal["merge", "known", "replace"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A known fragment, and the cosine between it and a draft."""

    n: int
    cosine: float
    fragment: Fragment


def is_same(kind: FragmentKind, content: str, payload: Mapping[str, Any], known: Candidate) -> bool:
    """Tell whether a draft says what a known fragment says, with no other value in it."""
    fragment = known.fragment
    if fragment.kind != kind or not _same_key(kind, payload, fragment.payload):
        return False
    if content == fragment.content:
        return True
    if known.cosine < THRESHOLDS.get(kind, USUAL_THRESHOLD):
        return False
    takes_back = [withdrawals.find(said) is not None for said in (content, fragment.content)]
    return values.agree(content, fragment.content) and takes_back[0] == takes_back[1]


_KEYS: Mapping[FragmentKind, tuple[str, ...]] = {
    "workflow": ("command",),
    "config": ("setting", "value", "location"),
}
"""What two fragments of a kind must have alike: near each other are also other commands."""


def _same_key(kind: FragmentKind, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(name, "") == other.get(name, "") for name in _KEYS.get(kind, ()))


def find(
    kind: FragmentKind, content: str, payload: Mapping[str, Any], known: Sequence[Candidate]
) -> Candidate | None:
    """Return the nearest of the known fragments that says the same."""
    same = [one for one in known if is_same(kind, content, payload, one)]
    return max(same, key=lambda one: (one.cosine, -one.n), default=None)


def outcome(trust: int, fragment: Fragment) -> Outcome:
    """Say what becomes of a draft of some trust and the fragment that says the same."""
    if trust < needed_for(fragment):
        return "known"
    return "merge" if trust == fragment.trust else "replace"


def keeps_all(newer: str, older: str) -> bool:
    """Tell whether a newer wording has every value of the older: else the older is shown on."""
    return values.keeps(newer, older)
