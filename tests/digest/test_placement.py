"""Placement of drafts, and detection of duplicates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.digest import placement
from lore.digest.placement import (
    ASSOCIATE_FROM,
    ATTACH_ABOVE,
    DEFAULT_THRESHOLD,
    MIN_KNOWN,
    THRESHOLDS,
    Candidate,
    Placement,
    choose_place,
    raise_importance,
)
from lore.records import FragmentKind
from tests.digest.samples import candidate

cosines = st.floats(-1, 1, allow_nan=False)
roots = st.lists(
    st.builds(candidate, st.just("a root"), n=st.integers(1, 99), cosine=cosines), max_size=8
)


@pytest.mark.parametrize(
    ("cosine", "placed"),
    [
        (0.7, Placement(parent=7, nearest=0.7)),
        (0.65, Placement(linked=7, nearest=0.65)),
        (0.3, Placement(linked=7, nearest=0.3)),
        (0.25, Placement(nearest=0.25)),
        (-0.2, Placement(nearest=0.0)),
    ],
)
def test_the_nearest_root_decides_where_a_draft_goes(cosine, placed):
    roots = [candidate("other", n=3, cosine=cosine - 0.1), candidate("near", n=7, cosine=cosine)]
    assert choose_place(roots) == placed


def test_draft_without_candidates_is_a_root():
    assert choose_place([]) == Placement()


@pytest.mark.parametrize(
    ("importance", "nearest", "raised"),
    [(0.5, 1, 0.5), (0.5, 0, 0.6), (0.9, 0, 0.95), (0.2, 0.5, 0.22)],
)
def test_novelty_raises_importance(importance, nearest, raised):
    assert raise_importance(importance, nearest, known=MIN_KNOWN) == pytest.approx(raised)


def test_in_a_young_memory_nothing_is_a_surprise():
    assert raise_importance(0.5, 0, known=MIN_KNOWN - 1) == 0.5


@given(roots)
def test_a_draft_is_attached_or_linked_or_alone_and_never_two_of_these(known):
    placed = choose_place(known)
    best = max((root.cosine for root in known), default=0.0)
    assert (placed.parent is not None) == (best > ATTACH_ABOVE)
    assert (placed.linked is not None) == (ASSOCIATE_FROM <= best <= ATTACH_ABOVE)
    assert 0 <= placed.nearest <= 1


@given(st.floats(0, 1), cosines)
def test_surprise_never_lowers_importance_nor_lifts_it_over_the_limit(importance, nearest):
    raised = raise_importance(importance, nearest, known=MIN_KNOWN)
    assert min(importance, 0.95) <= raised <= 0.95


PORT = "The api listens on port 8080 behind the proxy"


def is_same(content: str, known: Candidate, payload: dict[str, Any] | None = None) -> bool:
    return placement.is_duplicate(known.fragment.kind, content, payload or {}, known)


@pytest.mark.parametrize("kind", ["fact", "preference", "decision", "pattern"])
def test_draft_above_the_threshold_of_its_kind_is_a_duplicate(kind: FragmentKind):
    line = THRESHOLDS.get(kind, DEFAULT_THRESHOLD)
    other = "The api is listening on port 8080 behind the proxy"
    assert is_same(other, candidate(PORT, cosine=line, kind=kind))
    assert not is_same(other, candidate(PORT, cosine=line - 0.01, kind=kind))


def test_identical_text_is_a_duplicate_at_any_cosine():
    assert is_same(PORT, candidate(PORT, cosine=0.0))


@pytest.mark.parametrize(
    "other",
    [
        "The api listens on port 9090 behind the proxy",
        "The api listens not on port 8080 behind the proxy",
        "The api listens on port 8080 behind the `nginx` proxy of Ana, not of 8443",
    ],
)
def test_another_value_or_a_negation_is_no_duplicate(other: str):
    assert not is_same(other, candidate(PORT, cosine=0.999))


def test_fragment_of_another_kind_is_no_duplicate():
    assert not placement.is_duplicate("decision", PORT, {}, candidate(PORT, cosine=1.0))


ROUTE = "The nginx port mismatch: the proxy was changed from 3335 to 3334"


def is_restated(content: str, known: str, *, cosine: float = 0.84) -> bool:
    one = candidate(known, cosine=cosine, kind="architecture")
    return placement.is_restated("bug_fix", content, one)


def test_a_session_restates_a_fix_in_other_words_and_as_another_kind():
    other = "Fixed the nginx port mismatch: changed the `/assistant/` proxy from 3335 to 3334"
    assert is_restated(other, ROUTE)
    assert not is_restated(other, ROUTE, cosine=0.79)


@pytest.mark.parametrize(
    "other",
    [
        "The nginx port mismatch: the proxy was changed from 3335 to 3336",
        "The nginx port mismatch: the proxy was not changed from 3335 to 3334",
        "The nginx port mismatch: the gateway was changed from 3335 to 3334",
        "The nginx restarts after a change of its port",
    ],
)
def test_another_value_negation_or_aspect_is_no_restatement(other: str):
    assert not is_restated(other, ROUTE, cosine=0.95)


def test_a_rule_of_a_person_is_never_restated_by_a_fact():
    known = candidate(ROUTE, cosine=1.0, kind="preference")
    assert not placement.is_restated("fact", ROUTE, known)


def test_only_what_the_same_session_said_is_restated():
    other = "Fixed the nginx port mismatch: changed the `/assistant/` proxy from 3335 to 3334"
    known = candidate(ROUTE, cosine=0.84, kind="bug_fix")
    here = replace(known, fragment=replace(known.fragment, session_id="s"))
    assert placement.find_duplicate("bug_fix", other, {}, [here], session="s") == here
    assert placement.find_duplicate("bug_fix", other, {}, [here], session="t") is None
    assert placement.find_duplicate("bug_fix", other, {}, [known]) is None


@pytest.mark.parametrize(
    ("kind", "field"),
    [("workflow", "command"), ("config", "setting"), ("config", "value"), ("config", "location")],
)
def test_key_fields_of_duplicates_must_agree(kind: FragmentKind, field: str):
    known = candidate(PORT, cosine=1.0, kind=kind, payload={field: "one"})
    assert is_same(PORT, known, {field: "one"})
    assert not is_same(PORT, known, {field: "two"})


def test_nearest_duplicate_wins_and_ties_go_to_the_oldest():
    near, nearer, equal = (
        candidate(PORT, n=n, cosine=cosine) for n, cosine in ((1, 0.95), (3, 0.99), (2, 0.99))
    )
    assert placement.find_duplicate("fact", PORT, {}, [near, nearer, equal]) == equal
    assert placement.find_duplicate("decision", PORT, {}, [near]) is None


@pytest.mark.parametrize(("trust", "outcome"), [(1, "known"), (2, "merge"), (3, "replace")])
def test_trust_decides_the_outcome_of_a_duplicate(trust: int, outcome: str):
    known = replace(candidate(PORT).fragment, trust=2)
    assert placement.duplicate_outcome(trust, known) == outcome
