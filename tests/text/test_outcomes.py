from __future__ import annotations

import pytest

from lore.text.outcomes import Ending, judge

WORKED = {"changed": True, "worked_since": True, "answered": True}


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (Ending(), "unknown"),
        (Ending(interrupted=True, **WORKED), "partial"),
        (Ending(person="it is still broken", assistant="Hm.", changed=True), "failure"),
        (Ending(person="same error", assistant="Fixed, all tests pass.", **WORKED), "success"),
        (Ending(checked=False, check="test", assistant="Hm", **WORKED), "failure"),
        (Ending(checked=False, check="test", assistant="Done.", **WORKED), "partial"),
        (Ending(checked=False, check="lint", assistant="Done.", landed=True, **WORKED), "success"),
        (Ending(checked=True, check="test", assistant="There.", **WORKED), "success"),
        (Ending(assistant="I was unable to fix the parser.", **WORKED), "failure"),
        (Ending(person="thanks, works great", assistant="Fine.", **WORKED), "success"),
        (Ending(assistant="Done. Added the flag.", **WORKED), "success"),
        (Ending(assistant="Let me look at the parser next.", **WORKED), "partial"),
        (Ending(person="why?", assistant="Because of the cache.", answered=True), "success"),
        (
            Ending(person="do it", assistant="Which approach do you prefer?", answered=True),
            "partial",
        ),
        (Ending(assistant="x", changed=True, open_end="go test"), "partial"),
        (Ending(assistant="x", changed=True), "partial"),
    ],
)
def test_an_ending_is_judged_by_its_signs(end, outcome):
    found, reason = judge(end)
    assert found == outcome, reason
    assert reason


def test_an_offer_after_an_answer_leaves_nothing_open():
    said = "Here are my findings. Would you like me to go deeper?"
    assert (
        judge(Ending(person="can you review this?", assistant=said, answered=True))[0] == "success"
    )
    assert judge(Ending(person="rename it", assistant="Want me to proceed?", answered=True))[0] == (
        "partial"
    )
