from __future__ import annotations

import sys
from types import FrameType

from lore.store import items, project_rows, standing_instructions
from lore.store.sql_connection import Connection
from lore.text import instructions
from tests.store.samples import NOON, add_fragment, add_messages, new_session


def test_a_repeated_instruction_is_shown_once_as_last_said(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    standing_instructions.add(db, a, None, "Always use tabs", 1)
    standing_instructions.add(db, b, None, "always  use TABS!", 2)
    assert [(s.item_n, s.text) for s in standing_instructions.current_instructions(db, None)] == [
        (b, "always  use TABS!")
    ]


def test_an_instruction_holds_in_its_project_and_without_one_everywhere(db: Connection) -> None:
    here, there = (project_rows.ensure_project(db, path, now=NOON) for path in ("/a", "/b"))
    item = add_fragment(db, 1)
    for i, (project_n, text) in enumerate([(here, "one"), (there, "two"), (None, "three")]):
        standing_instructions.add(db, item, project_n, text, i)
    assert [s.text for s in standing_instructions.current_instructions(db, here)] == [
        "three",
        "one",
    ]
    assert [s.text for s in standing_instructions.current_instructions(db, None)] == ["three"]
    assert len(standing_instructions.current_instructions(db, None, everywhere=True)) == 3
    assert len(standing_instructions.current_instructions(db, None, everywhere=True, limit=1)) == 1


LINT, NO_LINT = "Always run the linter before commits.", "You no longer need to run the linter."


def test_a_withdrawn_instruction_is_not_shown(db: Connection) -> None:
    item = add_fragment(db, 1)
    standing_instructions.add(db, item, None, LINT, 1)
    standing_instructions.add(db, item, None, "Never push to main.", 2)
    standing_instructions.add(db, item, None, NO_LINT, 3)
    assert [s.text for s in standing_instructions.current_instructions(db, None)] == [
        "Never push to main."
    ]
    standing_instructions.add(db, item, None, LINT, 4)
    assert [s.text for s in standing_instructions.current_instructions(db, None)] == [
        LINT,
        "Never push to main.",
    ]


def test_a_less_trusted_origin_withdraws_nothing(db: Connection) -> None:
    by_user, by_agent = add_fragment(db, 1), add_fragment(db, 2, origin="assistant")
    standing_instructions.add(db, by_user, None, LINT, 1)
    standing_instructions.add(db, by_agent, None, NO_LINT, 2)
    assert [s.text for s in standing_instructions.current_instructions(db, None)] == [LINT]


def test_a_withdrawal_in_one_project_leaves_the_others(db: Connection) -> None:
    here, there = (project_rows.ensure_project(db, path, now=NOON) for path in ("/a", "/b"))
    item = add_fragment(db, 1)
    standing_instructions.add(db, item, there, LINT, 1)
    standing_instructions.add(db, item, None, "Always run the linter twice.", 2)
    standing_instructions.add(db, item, here, NO_LINT, 3)
    assert standing_instructions.current_instructions(db, here) == []
    assert len(standing_instructions.current_instructions(db, there)) == 2
    assert len(standing_instructions.current_instructions(db, None, everywhere=True)) == 2


def test_one_rule_of_two_projects_is_listed_for_each_of_them(db: Connection) -> None:
    here, there = (project_rows.ensure_project(db, path, now=NOON) for path in ("/a", "/b"))
    item = add_fragment(db, 1)
    standing_instructions.add(db, item, here, LINT, 1)
    standing_instructions.add(db, item, there, LINT, 2)
    assert len(standing_instructions.current_instructions(db, None, everywhere=True)) == 2
    standing_instructions.add(db, item, None, LINT, 3)
    assert [
        s.project_id for s in standing_instructions.current_instructions(db, None, everywhere=True)
    ] == [None]


def test_items_with_only_withdrawn_instructions_are_found(db: Connection) -> None:
    said, again, both, back = (add_fragment(db, n) for n in range(1, 5))
    standing_instructions.add(db, said, None, LINT, 1)
    standing_instructions.add(db, both, None, LINT, 2)
    standing_instructions.add(db, both, None, "Never push to main.", 3)
    standing_instructions.add(db, again, None, LINT, 4)
    assert standing_instructions.withdrawn_items(db, [said, again, both]) == set()
    standing_instructions.add(db, back, None, NO_LINT, 5)
    assert standing_instructions.withdrawn_items(db, [said, again, both, back]) == {said, again}
    assert standing_instructions.withdrawn_items(db, []) == set()


def test_withdrawals_are_parsed_when_they_are_stored_and_not_at_each_reading(
    db: Connection,
) -> None:
    standing_instructions._computed.clear()  # a full one is emptied in the middle
    item = add_fragment(db, 1)
    for i in range(50):
        standing_instructions.add(db, item, None, f"Always check rule number {i}.", i)
    standing_instructions.add(db, item, None, NO_LINT, 50)
    standing_instructions.current_instructions(db, None)
    standing_instructions.withdrawn_items(db, [item])
    parsed = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal parsed
        parsed += event == "call" and frame.f_code is instructions.find_withdrawal.__code__

    sys.setprofile(count)
    try:
        shown = standing_instructions.current_instructions(db, None)
        standing_instructions.withdrawn_items(db, [item])
    finally:
        sys.setprofile(None)
    assert len(shown) == 50
    assert parsed <= 1


def test_the_words_of_each_rule_are_read_once_to_find_duplicates(db: Connection) -> None:
    item = add_fragment(db, 1)
    for i in range(50):
        standing_instructions.add(db, item, None, f"Always check the topic{i:02} first.", i)
    standing_instructions.add(db, item, None, "Always check first the topic07!", 50)
    standing_instructions.add(db, item, None, "Never check the topic08 first.", 51)
    read = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal read
        read += event == "call" and frame.f_code is instructions.content_words.__code__

    sys.setprofile(count)
    try:
        shown = standing_instructions.current_instructions(db, None)
    finally:
        sys.setprofile(None)
    assert len(shown) == 51
    assert read <= 52


def test_what_applies_changes_with_every_instruction(db: Connection) -> None:
    here = project_rows.ensure_project(db, "/a", now=NOON)
    items = [add_fragment(db, i) for i in (1, 2)]

    def texts() -> list[str]:
        return [s.text for s in standing_instructions.current_instructions(db, None)]

    standing_instructions.add(db, items[0], None, LINT, 1)
    assert texts() == [LINT]
    standing_instructions.add(db, items[1], None, NO_LINT, 2)
    assert texts() == []
    assert standing_instructions.withdrawn_items(db, items) == {items[0]}
    standing_instructions.remove(db, [items[1]])
    assert texts() == [LINT]
    assert standing_instructions.withdrawn_items(db, items) == set()
    db.run("UPDATE standing SET project_n = :n", n=here)
    assert texts() == []


def test_sizes_are_those_of_the_instructions_in_their_order(db: Connection) -> None:
    item = add_fragment(db, 1)
    for i, text in enumerate([
        "Always use tabs.",
        "Never push on Fridays.",
        "Prefer größere Tests.",
    ]):
        standing_instructions.add(db, item, None, text, i)
    sizes = standing_instructions.current_sizes(db, None)
    loaded = standing_instructions.load(db, [one.n for one in sizes])
    assert loaded == standing_instructions.current_instructions(db, None)
    assert [(one.item_n, one.chars) for one in sizes] == [(item, len(s.text)) for s in loaded]


def test_a_withdrawal_that_is_edited_no_longer_withdraws(db: Connection) -> None:
    rule, newest = add_fragment(db, 1), add_fragment(db, 2)
    standing_instructions.add(db, rule, None, "Always use tabs for indentation.", 1)
    standing_instructions.add(db, newest, None, "Stop using tabs for indentation.", 2)
    shown = [one.text for one in standing_instructions.current_instructions(db, None)]
    assert "Always use tabs for indentation." not in shown
    standing_instructions.remove(db, [newest])
    standing_instructions.add(db, newest, None, "Always sign commits.", 2)
    shown = [one.text for one in standing_instructions.current_instructions(db, None)]
    assert shown == ["Always sign commits.", "Always use tabs for indentation."]


def add_message(db: Connection, i: int, *, session: int) -> int:
    """Store a message of a session, and return its number."""
    ids = add_messages(db, new_session(db, f"talk {session}"), f"message {i}")
    return items.numbers_of(db, ids)[ids[0]]


def test_a_rule_said_again_in_another_session_is_confirmed(db: Connection) -> None:
    first, again = add_message(db, 1, session=1), add_message(db, 2, session=2)
    standing_instructions.add(db, first, None, LINT, 1, "suggested")
    assert standing_instructions.current_instructions(db, None) == []
    assert [s.text for s in standing_instructions.current_suggestions(db, None)] == [LINT]
    standing_instructions.add(db, again, None, LINT, 2, "suggested")
    assert [s.state for s in standing_instructions.current_instructions(db, None)] == ["confirmed"]
    assert standing_instructions.current_suggestions(db, None) == []


def test_a_rule_said_twice_in_one_session_is_not_confirmed(db: Connection) -> None:
    for n in (1, 2):
        item = add_message(db, n, session=1)
        standing_instructions.add(db, item, None, LINT, n, "suggested")
    assert standing_instructions.current_instructions(db, None) == []


def test_a_rejected_rule_stays_rejected_when_it_is_said_again(db: Connection) -> None:
    first, again = add_message(db, 1, session=1), add_message(db, 2, session=2)
    standing_instructions.add(db, first, None, LINT, 1)
    (n,) = standing_instructions.numbers_of_item(db, first)
    standing_instructions.decide(db, n, "rejected")
    standing_instructions.add(db, again, None, LINT, 2)
    assert standing_instructions.current_instructions(db, None) == []
    assert [s.text for s in standing_instructions.rejected(db, None)] == [LINT]


def test_a_message_and_the_fragment_made_of_it_count_once(db: Connection) -> None:
    said, made = add_message(db, 1, session=1), add_fragment(db, 2, LINT)
    standing_instructions.add(db, said, None, "Please, " + LINT, 1)
    standing_instructions.replace(db, made, None, LINT, 2, "stands")
    assert [s.text for s in standing_instructions.current_instructions(db, None)] == [LINT]


def test_a_sentence_that_forbids_does_not_confirm_one_that_asks(db: Connection) -> None:
    first, other = add_message(db, 1, session=1), add_message(db, 2, session=2)
    standing_instructions.add(db, first, None, "Use tabs in every file.", 1, "suggested")
    standing_instructions.add(db, other, None, "Never use tabs in every file.", 2, "suggested")
    assert standing_instructions.current_instructions(db, None) == []


def test_a_decision_outlives_a_change_of_other_properties(db: Connection) -> None:
    item = add_fragment(db, 1, LINT)
    standing_instructions.add(db, item, None, LINT, 1)
    (n,) = standing_instructions.numbers_of_item(db, item)
    standing_instructions.decide(db, n, "rejected")
    standing_instructions.replace(db, item, None, LINT, 2, "stands")
    assert standing_instructions.current_instructions(db, None) == []
