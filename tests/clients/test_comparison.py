"""The comparison of said and kept finds what is wrong, and only that."""

from __future__ import annotations

from tests.clients.comparison import differences, order_differences
from tests.clients.conversation import Conversation, Event

SAID = [
    Event("prompt", "look up"),
    Event("text", "Looking at all the st", complete=False),
    Event("call", call_id="c1", name="look", input={"at": "the sky"}),
    Event("result", "stars", call_id="c1", failed=False),
    Event("text", "I saw stars."),
]


def found(kept: list[Event], *, copied: bool = False) -> list[str]:
    return differences(
        Conversation("s", events=SAID), Conversation("s", events=kept), copied=copied
    )


def test_the_same_is_no_difference():
    assert found(SAID) == []


def test_what_was_broken_off_may_be_kept_in_part_or_not_at_all():
    assert found([event for event in SAID if event.complete]) == []
    assert found([SAID[0], Event("text", "Looking"), *SAID[2:]]) == []


def test_a_lost_text_is_found():
    assert len(found(SAID[:-1])) == 1


def test_one_text_too_many_is_one_difference():
    (only,) = found([*SAID[:4], Event("text", "A summary"), SAID[4]])
    assert "A summary" in only


def test_what_nobody_said_is_found_except_in_a_copy():
    kept = [Event("prompt", "boot file"), *SAID]
    assert len(found(kept)) == 1
    assert found(kept, copied=True) == []


def test_defaults_written_out_are_no_difference_but_another_input_is():
    full = Event("call", call_id="c1", name="look", input={"at": "the sky", "far": False})
    other = Event("call", call_id="c1", name="look", input={"at": "the sea"})
    assert found([*SAID[:2], full, *SAID[3:]]) == []
    assert len(found([*SAID[:2], other, *SAID[3:]])) == 1


def test_a_result_kept_as_failed_is_found():
    failed = Event("result", "stars", call_id="c1", failed=True)
    assert len(found([*SAID[:3], failed, SAID[4]])) == 1


def test_a_lost_result_is_found():
    assert len(found([*SAID[:3], SAID[4]])) == 1


def test_another_order_is_found_but_for_results_within_a_turn():
    call = Event("call", call_id="c2", name="look", input={})
    said = [*SAID[:3], call, SAID[3], Event("result", "moon", call_id="c2"), SAID[4]]
    swapped = [*SAID[:4], call, Event("result", "moon", call_id="c2"), SAID[4]]
    before = [SAID[0], SAID[3], SAID[2], SAID[4]]
    later = [*SAID, Event("prompt", "and now?")]
    moved = [*SAID[:3], SAID[4], Event("prompt", "and now?"), SAID[3]]

    def found_in(one: list[Event], other: list[Event]) -> int:
        return len(
            order_differences(Conversation("s", events=one), Conversation("s", events=other))
        )

    assert found_in(said, swapped) == 0
    assert found_in(SAID, before) == 1
    assert found_in(later, moved) == 1
    assert found_in(SAID, [SAID[4], *SAID[:4]]) == 1
