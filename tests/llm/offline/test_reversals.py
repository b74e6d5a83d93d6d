"""A claim that is doubted or taken back later in the session is not kept."""

from __future__ import annotations

import pytest

from tests.llm.offline.telling import WORK, contents

CLAIM = "`app.local.json` always overrides `app.json` because it is read last."


def test_a_claim_that_stands_is_kept():
    later = [("user", "thanks"), ("assistant", "You're right to ask, `other.json` is gone.")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == [CLAIM]


@pytest.mark.parametrize(
    "answer",
    [
        "Uh oh, both were read: `app.local.json` and `app.json` are merged.",
        "I was wrong: `app.json` and `app.local.json` are merged.",
        "Turns out `app.local.json` does not replace `app.json`.",
    ],
)
def test_a_claim_that_is_taken_back_later_is_not_kept(answer):
    later = [("user", "please try it"), ("assistant", answer)]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == []


def test_a_claim_that_a_person_wants_checked_is_not_kept():
    later = [("user", "can we double check that app.local.json overrides it?")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == []


def test_a_reversal_of_something_else_takes_nothing_back():
    later = [("assistant", "You're right, `mailer.py` is never called.")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == [CLAIM]
