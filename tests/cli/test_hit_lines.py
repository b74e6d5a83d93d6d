"""The lines of a hit that a terminal shows."""

from __future__ import annotations

import pytest

from lore.cli.search_commands import cut_lines

REPORT = """Done!

I have updated the page.

**Added:**
- pictures
- a table of contents
- links to the guide
- the one-liner: `claude mcp add --transport http harbor https://harbor.example/mcp`

Next I would test it."""


def test_the_lines_with_the_words_of_the_question_are_shown():
    shown = cut_lines(REPORT, 3, "what is the one-liner to add our MCP server?")
    assert "claude mcp add --transport http harbor https://harbor.example/mcp" in shown
    assert shown.startswith("…")
    assert len(shown.split("\n")) <= 3


@pytest.mark.parametrize("most", [None, 40])
def test_a_text_that_has_room_is_shown_whole(most: int | None):
    assert cut_lines(REPORT, most, "the one-liner?") == REPORT


def test_without_a_word_of_the_question_it_begins_at_the_beginning():
    shown = cut_lines(REPORT, 2, "zebra")
    assert shown == "Done!\nI have updated the page.…"


def test_a_line_without_end_is_cut():
    assert len(cut_lines("harbor " * 5_000, 6, "harbor?")) < 1_000


def test_a_long_line_after_a_date_is_shown_in_part():
    shown = cut_lines(f"2026-02-12\nassistant: {'harbor ' * 500}", 6, "zebra")
    assert shown.startswith("2026-02-12\nassistant: harbor harbor")
    assert 400 < len(shown) < 600
