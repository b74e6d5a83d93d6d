from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lore.curate import merging
from lore.curate.merging import THRESHOLDS, USUAL_THRESHOLD, Candidate
from lore.records import FragmentKind
from tests.curate.samples import candidate

PORT = "The api listens on port 8080 behind the proxy"


def is_same(content: str, known: Candidate, payload: dict[str, Any] | None = None) -> bool:
    return merging.is_same(known.fragment.kind, content, payload or {}, known)


@pytest.mark.parametrize("kind", ["fact", "preference", "decision", "pattern"])
def test_from_the_threshold_of_its_kind_on_a_draft_says_the_same(kind: FragmentKind):
    line = THRESHOLDS.get(kind, USUAL_THRESHOLD)
    other = "The api is listening on port 8080 behind the proxy"
    assert is_same(other, candidate(PORT, cosine=line, kind=kind))
    assert not is_same(other, candidate(PORT, cosine=line - 0.01, kind=kind))


def test_the_same_words_need_no_cosine():
    assert is_same(PORT, candidate(PORT, cosine=0.0))


@pytest.mark.parametrize(
    "other",
    [
        "The api listens on port 9090 behind the proxy",
        "The api listens not on port 8080 behind the proxy",
        "The api listens on port 8080 behind the `nginx` proxy of Ana, not of 8443",
    ],
)
def test_another_value_or_a_denial_is_another_thing_however_near(other: str):
    assert not is_same(other, candidate(PORT, cosine=0.999))


def test_a_fragment_of_another_kind_is_another_thing():
    assert not merging.is_same("decision", PORT, {}, candidate(PORT, cosine=1.0))


@pytest.mark.parametrize(
    ("kind", "field"),
    [("workflow", "command"), ("config", "setting"), ("config", "value"), ("config", "location")],
)
def test_what_names_its_kind_must_be_alike(kind: FragmentKind, field: str):
    known = candidate(PORT, cosine=1.0, kind=kind, payload={field: "one"})
    assert is_same(PORT, known, {field: "one"})
    assert not is_same(PORT, known, {field: "two"})


def test_of_several_the_nearest_is_taken_and_of_equals_the_oldest():
    near, nearer, equal = (
        candidate(PORT, n=n, cosine=cosine) for n, cosine in ((1, 0.95), (3, 0.99), (2, 0.99))
    )
    assert merging.find("fact", PORT, {}, [near, nearer, equal]) == equal
    assert merging.find("decision", PORT, {}, [near]) is None


@pytest.mark.parametrize(("trust", "outcome"), [(1, "known"), (2, "merge"), (3, "replace")])
def test_trust_decides_what_becomes_of_two(trust: int, outcome: str):
    known = replace(candidate(PORT).fragment, trust=2)
    assert merging.outcome(trust, known) == outcome


def test_a_newer_wording_must_have_every_value_of_the_older():
    assert merging.keeps_all("Port 8080 and host alpha_1", "On alpha_1: port 8080")
    assert not merging.keeps_all("Port 8080", "On alpha_1: port 8080")
