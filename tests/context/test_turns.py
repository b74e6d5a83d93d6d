"""Where turns start, and where a window may start."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from lore.context.layers import entry_name, find_entry, safe_turn_starts, turn_starts
from lore.records import Block
from tests.context.dialogues import call, entry, plain_talk, reminder, result, talks, text


def test_turn_starts_with_user_text():
    entries = plain_talk(3, steps=1)
    assert turn_starts(entries) == (0, 4, 8)


def test_results_and_reminders_continue_a_turn():
    assert not entry("user", result("a")).begins_turn
    assert not entry("user", reminder()).begins_turn
    assert not entry("user", result("a"), text("and hurry")).begins_turn
    assert not entry("assistant", text("yes")).begins_turn
    assert entry("user", reminder(), text("why?")).begins_turn


def test_image_alone_starts_a_turn():
    from lore.records.gateway import Block

    assert entry("user", Block("other", 1_000)).begins_turn


def test_consecutive_user_entries_start_one_turn():
    entries = [
        entry("user", text("one")),
        entry("system", text("the date")),
        entry("user", text("two")),
        entry("assistant", text("yes")),
    ]
    assert turn_starts(entries) == (0,)


def test_no_window_begins_between_a_call_and_its_result():
    entries = [
        entry("user", text("one")),
        entry("assistant", call("a"), call("b")),
        entry("user", result("b")),
        entry("user", text("wait")),
        entry("user", result("a")),
        entry("assistant", text("done")),
        entry("user", text("two")),
    ]
    assert turn_starts(entries) == (0, 3, 6)
    assert safe_turn_starts(entries) == (0, 6)


def test_unanswered_call_does_not_block_a_window_start():
    entries = [
        entry("user", text("one")),
        entry("assistant", call("a")),
        entry("user", text("stop")),
        entry("assistant", text("yes")),
    ]
    assert safe_turn_starts(entries) == (0, 2)


@given(talks())
def test_entry_is_found_by_its_name(entries):
    names = [entry_name(entries, number) for number in range(len(entries))]
    assert len(set(names)) == len(names)
    assert [find_entry(entries, name) for name in names] == list(range(len(entries)))
    assert find_entry(entries[:-1], names[-1]) is None


def test_invalid_name_is_not_found():
    assert find_entry(plain_talk(1), "") is None
    assert find_entry(plain_talk(1), "abc#x") is None


def test_gemini_cli_context_is_not_user_text():
    context = Block("text", 60, "<session_context>\nThis is the Gemini CLI.\n</session_context>")
    assert entry("user", context, text("why?")).texts == ("why?",)
    assert not entry("user", context).begins_turn
    assert entry("user", replace(context, text=f"{context.text} why?")).begins_turn
