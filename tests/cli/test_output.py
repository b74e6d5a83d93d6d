"""What a command shows while it works."""

from __future__ import annotations

import gc
import io

import pytest

from lore.cli.output import importing, print_columns, progress_of_parts, tallied


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_part_has_its_own_progress_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    shown = Terminal()
    with progress_of_parts(to=shown) as report:
        report("digest", 0, 4)
        report("merge", 1, 7)
    assert "digest" in shown.getvalue()
    assert "4/4" in shown.getvalue()
    assert "merge" in shown.getvalue()
    assert "1/7" in shown.getvalue()


def test_no_progress_is_shown_without_a_terminal_or_if_quiet():
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
def test_a_count_of_one_is_singular(counts: dict[str, int], told: str):
    assert tallied(counts) == told


def test_rows_of_different_sizes_are_aligned_and_show_each_cell_once(
    capsys: pytest.CaptureFixture[str],
):
    print_columns([("jobs", "runs"), ("capture", "every 30 s", "ran"), ("a", "b", "c", "d")])
    assert capsys.readouterr().out.splitlines() == [
        "jobs     runs",
        "capture  every 30 s  ran",
        "a        b           c  d",
    ]


def test_modules_are_imported_without_garbage_collection():
    with importing():
        assert not gc.isenabled()
    assert gc.isenabled()
