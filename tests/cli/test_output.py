"""What a command shows while it works."""

from __future__ import annotations

import io

import pytest

from lore.cli.output import progress_of_parts, tallied


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_part_has_a_bar_of_its_own_and_what_is_followed_is_done(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    shown = Terminal()
    with progress_of_parts(to=shown) as report:
        report("digest", 0, 4)
        report("merge", 1, 7)
    assert "digest" in shown.getvalue()
    assert "4/4" in shown.getvalue()
    assert "merge" in shown.getvalue()
    assert "1/7" in shown.getvalue()


def test_nothing_is_shown_to_a_program_or_where_it_is_not_wanted():
    for shown, quiet in ((Terminal(), True), (io.StringIO(), False)):
        with progress_of_parts(quiet=quiet, to=shown) as report:
            report("digest", 1, 2)
        assert shown.getvalue() == ""


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ({}, ""),
        ({"cycles": 1}, "1 cycle"),
        ({"cycles": 2, "embedded": 1}, "2 cycles, 1 embedded"),
        ({"episodes queued": 1, "messages": 1_204}, "1 episode queued, 1,204 messages"),
    ],
)
def test_what_was_counted_once_is_told_in_the_singular(counts: dict[str, int], told: str):
    assert tallied(counts) == told
