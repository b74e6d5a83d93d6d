from __future__ import annotations

from typing import Any

import pytest

from lore.text.outcomes import Ending, judge


def worked(**rest: Any) -> Ending:
    return Ending(changed=True, worked_since=True, answered=True, **rest)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (Ending(), "unknown"),
        (worked(interrupted=True), "partial"),
        (Ending(person="it is still broken", assistant="Hm.", changed=True), "failure"),
        (worked(person="same error", assistant="Fixed, all tests pass."), "success"),
        (worked(checked=False, check="test", assistant="Hm"), "failure"),
        (worked(checked=False, check="test", assistant="Done."), "partial"),
        (worked(checked=False, check="lint", assistant="Done.", landed=True), "success"),
        (worked(checked=True, check="test", assistant="There."), "success"),
        (worked(person="Run the broken build", assistant="It fails."), "failure"),
        (worked(assistant="The build failed with two errors."), "failure"),
        (worked(assistant="It failed before; fixed now, all tests pass."), "success"),
        (
            Ending(person="Why is it red?", assistant="It fails on Mondays.", answered=True),
            "success",
        ),
        (worked(assistant="I was unable to fix the parser."), "failure"),
        (worked(person="thanks, works great", assistant="Fine."), "success"),
        (worked(assistant="Done. Added the flag."), "success"),
        (worked(assistant="Let me look at the parser next."), "partial"),
        (Ending(person="why?", assistant="Because of the cache.", answered=True), "success"),
        (
            Ending(person="do it", assistant="Which approach do you prefer?", answered=True),
            "partial",
        ),
        (Ending(assistant="x", changed=True, open_end="go test"), "partial"),
        (Ending(assistant="x", changed=True), "partial"),
        (worked(checked=True, check="test", assistant="Done. ❌ CI. Go on?"), "partial"),
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
