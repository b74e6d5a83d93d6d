from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from lore.curate import correcting
from lore.curate.correcting import SAID_BEFORE, SAME_MATTER, SAME_NAMED
from lore.curate.drafting import Drafted
from lore.records import FragmentKind
from tests.curate.samples import candidate
from tests.fakes import NOON

LATER = NOON + timedelta(days=1)
NPM = "We install the packages with npm"
PNPM = "We install the packages with pnpm now"


def draft(content: str = PNPM, corrects: str = "npm", vector: list[float] | None = None) -> Drafted:
    found = None if vector is None else np.array(vector, np.float32)
    return Drafted(content, content, "fact", 0.5, {}, ("m",), None, corrects, (), None, found)


def test_what_has_the_former_value_and_is_near_is_corrected():
    known = candidate(NPM, cosine=SAME_MATTER)
    assert correcting.find(draft(), LATER, [known], {}) == known
    assert correcting.find(draft(), LATER, [candidate(NPM, cosine=SAME_MATTER - 0.01)], {}) is None


def test_what_lacks_the_former_value_is_not_corrected():
    assert correcting.find(draft(), LATER, [candidate("We use yarn", cosine=0.9)], {}) is None


def test_a_name_that_both_have_makes_up_for_words_that_differ():
    draft_ = draft("In `web_app` we install with pnpm")
    named = candidate("We install `web_app` with npm", cosine=SAME_NAMED)
    unnamed = candidate("We install with npm", cosine=SAME_NAMED)
    assert correcting.find(draft_, LATER, [named], {}) == named
    assert correcting.find(draft_, LATER, [unnamed], {}) is None


@pytest.mark.parametrize(("cosine", "is_corrected"), [(SAID_BEFORE + 0.01, True), (0.5, False)])
def test_what_is_near_the_corrected_words_said_it_before(cosine: float, *, is_corrected: bool):
    row = np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)
    known = candidate("Another wording of it", cosine=0.1)
    found = correcting.find(draft(vector=[1.0, 0.0]), LATER, [known], {known.n: row})
    assert (found == known) == is_corrected


def test_nothing_newer_is_corrected():
    known = candidate(NPM, cosine=0.9)
    assert correcting.find(draft(), NOON, [known], {}) is None


@pytest.mark.parametrize("kind", ["episode", "insight"])
def test_what_is_told_or_derived_is_not_corrected(kind: FragmentKind):
    assert correcting.find(draft(), LATER, [candidate(NPM, cosine=0.9, kind=kind)], {}) is None


def test_a_draft_that_names_nothing_former_corrects_nothing():
    assert correcting.find(draft(corrects=""), LATER, [candidate(NPM, cosine=0.9)], {}) is None


def test_what_comes_in_late_meets_the_one_that_corrected_it():
    newer = candidate(PNPM, cosine=0.9, payload={"replaces": "npm"}, at=LATER)
    assert correcting.find_newer(draft(NPM, ""), NOON, [newer]) == newer
    assert correcting.find_newer(draft(NPM, ""), LATER, [newer]) is None
    other = candidate(PNPM, cosine=0.9, payload={"replaces": "yarn"}, at=LATER)
    assert correcting.find_newer(draft(NPM, ""), NOON, [other]) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("PORT is 80", "PORT is 90", True),
        ("PORT is 80 in production", "PORT is 90 in prod", True),
        ("PORT is 80 in production", "PORT is 90", True),
        ("PORT is 80 in production", "PORT is 90 on staging", False),
    ],
)
def test_a_setting_may_have_one_value_for_each_surrounding(one: str, other: str, *, same: bool):
    assert correcting.is_same_setting((one, {}), (other, {})) == same


def test_a_setting_may_have_one_value_in_each_file():
    here, there = {"location": "a.env"}, {"location": "b.env"}
    assert not correcting.is_same_setting(("PORT is 80", here), ("PORT is 90", there))
    assert correcting.is_same_setting(("PORT is 80", here), ("PORT is 90", {}))
