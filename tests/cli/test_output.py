"""What a command shows while it works."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import pytest

from lore.cli.output import called, importing, print_columns, progress_of_parts, tallied


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


@pytest.mark.parametrize(
    ("uv", "command"),
    [
        (".uv/bin/uv", ".uv/bin/uv run lore"),
        ("/opt/my tools/uv", "'/opt/my tools/uv' run lore"),
        ("", "uv run lore"),
    ],
)
def test_a_program_outside_of_the_path_is_named_by_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uv: str, command: str
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV", str(tmp_path / uv) if uv else "")
    assert called() == command


def test_a_program_on_the_path_is_named_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("uv", "lore"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV_RUN_RECURSION_DEPTH", raising=False)
    assert called("/opt/lore/bin/lore") == "lore"
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    monkeypatch.setenv("UV", "/opt/uv/bin/uv")
    assert called() == "uv run lore"


def test_an_installation_outside_of_the_path_is_named_by_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV_RUN_RECURSION_DEPTH", raising=False)
    assert called("/opt/lore/bin/lore") == "/opt/lore/bin/lore"


def test_modules_are_imported_without_garbage_collection():
    with importing():
        assert not gc.isenabled()
    assert gc.isenabled()
