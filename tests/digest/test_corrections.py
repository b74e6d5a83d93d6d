from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from lore.digest import draft_writer
from lore.digest.draft_writer import SAME_AS_FORMER, SAME_NAMED_SUBJECT, SAME_SUBJECT
from lore.digest.drafts import DraftFragment
from lore.records import FragmentKind
from tests.digest.samples import candidate
from tests.fakes import NOON

LATER = NOON + timedelta(days=1)
NPM = "We install the packages with npm"
PNPM = "We install the packages with pnpm now"


def draft(
    content: str = PNPM, corrects: str = "npm", vector: list[float] | None = None
) -> DraftFragment:
    found = None if vector is None else np.array(vector, np.float32)
    return DraftFragment(content, content, "fact", 0.5, {}, ("m",), None, corrects, (), None, found)


def test_what_has_the_former_value_and_is_near_is_corrected():
    known = candidate(NPM, cosine=SAME_SUBJECT)
    assert draft_writer.find_corrected(draft(), LATER, [known], {}) == known
    assert (
        draft_writer.find_corrected(
            draft(), LATER, [candidate(NPM, cosine=SAME_SUBJECT - 0.01)], {}
        )
        is None
    )


def test_what_lacks_the_former_value_is_not_corrected():
    assert (
        draft_writer.find_corrected(draft(), LATER, [candidate("We use yarn", cosine=0.9)], {})
        is None
    )


def test_a_name_that_both_have_makes_up_for_words_that_differ():
    draft_ = draft("In `web_app` we install with pnpm")
    named = candidate("We install `web_app` with npm", cosine=SAME_NAMED_SUBJECT)
    unnamed = candidate("We install with npm", cosine=SAME_NAMED_SUBJECT)
    assert draft_writer.find_corrected(draft_, LATER, [named], {}) == named
    assert draft_writer.find_corrected(draft_, LATER, [unnamed], {}) is None


@pytest.mark.parametrize(("cosine", "is_corrected"), [(SAME_AS_FORMER + 0.01, True), (0.5, False)])
def test_what_is_near_the_corrected_words_said_it_before(cosine: float, *, is_corrected: bool):
    row = np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)
    known = candidate("Another wording of it", cosine=0.1)
    found = draft_writer.find_corrected(draft(vector=[1.0, 0.0]), LATER, [known], {known.n: row})
    assert (found == known) == is_corrected


def test_nothing_newer_is_corrected():
    known = candidate(NPM, cosine=0.9)
    assert draft_writer.find_corrected(draft(), NOON, [known], {}) is None


@pytest.mark.parametrize("kind", ["episode", "insight"])
def test_episodes_and_insights_are_not_corrected(kind: FragmentKind):
    assert (
        draft_writer.find_corrected(draft(), LATER, [candidate(NPM, cosine=0.9, kind=kind)], {})
        is None
    )


def test_a_draft_that_names_nothing_former_corrects_nothing():
    assert (
        draft_writer.find_corrected(draft(corrects=""), LATER, [candidate(NPM, cosine=0.9)], {})
        is None
    )


def test_what_comes_in_late_meets_the_one_that_corrected_it():
    newer = candidate(PNPM, cosine=0.9, payload={"replaces": "npm"}, at=LATER)
    assert draft_writer.find_correction(draft(NPM, ""), NOON, [newer]) == newer
    assert draft_writer.find_correction(draft(NPM, ""), LATER, [newer]) is None
    other = candidate(PNPM, cosine=0.9, payload={"replaces": "yarn"}, at=LATER)
    assert draft_writer.find_correction(draft(NPM, ""), NOON, [other]) is None


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
    assert draft_writer.is_same_setting((one, {}), (other, {})) == same


def test_a_setting_may_have_one_value_in_each_file():
    here, there = {"location": "a.env"}, {"location": "b.env"}
    assert not draft_writer.is_same_setting(("PORT is 80", here), ("PORT is 90", there))
    assert draft_writer.is_same_setting(("PORT is 80", here), ("PORT is 90", {}))
