"""The command `lore tray`, as far as it needs no screen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Lore, run_process


def test_autostart_shows_the_file_writes_it_and_takes_it_back(lore: Lore):
    path = lore.home.parent / ".config" / "autostart" / "lore-tray.desktop"
    env = {"XDG_CONFIG_HOME": ""}
    shown = lore("tray", "--autostart", "on", "--dry-run", env=env).works()
    assert "[Desktop Entry]" in shown.out
    assert str(path) in shown.err
    assert not path.exists()
    written = lore("tray", "--autostart", "on", env=env).works()
    assert path.read_text("utf-8") in written.out
    assert "tray" in path.read_text("utf-8")
    lore("tray", "--autostart", "off", "--dry-run", env=env).works()
    assert path.exists()
    lore("tray", "--autostart", "off", env=env).works()
    assert not path.exists()
    assert "nothing to remove" in lore("tray", "--autostart", "off", env=env).works().out


def test_a_dry_run_alone_is_refused(lore: Lore):
    lore("tray", "--dry-run").fails_with(2)


@pytest.mark.parametrize("option", ["yes", ""])
def test_autostart_is_on_or_off(lore: Lore, option: str):
    lore("tray", "--autostart", option).fails_with(2)


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path):
    (tmp_path / "PySide6").mkdir()  # an empty package in front of the real one
    (tmp_path / "PySide6" / "__init__.py").write_text("")
    path = ":".join([str(tmp_path), *sys.path])
    outcome = run_process("tray", home=tmp_path / "home", env={"PYTHONPATH": path})
    outcome.fails_with(16)
    assert "agent-lore[tray]" in outcome.err


def test_without_a_screen_it_says_so(tmp_path: Path):
    pytest.importorskip("PySide6.QtWidgets", reason="needs the extra 'tray'", exc_type=ImportError)
    env = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "QT_QPA_PLATFORM": "offscreen"}
    outcome = run_process("tray", home=tmp_path / "home", env=env)
    assert outcome.code == 16, outcome
    assert "no screen" in outcome.err
