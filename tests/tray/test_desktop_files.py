"""The files by which desktops start the tray icon."""

from __future__ import annotations

import os
import plistlib
import shlex
import stat
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

from lore.errors import InvalidInput, NotFound
from lore.tray.desktop_files import autostart_entry, icns_of, write_bundle

ODD = '/code/my "home" 100%/$HOME `x` \\ é'
COMMAND = ["/usr/bin/lore", "--home", ODD, "tray"]


def exec_words(text: str) -> list[str]:
    """Return the words of Exec as a desktop reads them: first the file's escapes, then quotes."""
    parser = RawConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as its manual says
    parser.read_string(text)
    value = parser["Desktop Entry"]["Exec"].replace("\\\\", "\\")
    words = shlex.split(value.replace("\\`", "`").replace("\\$", "$"), posix=True)
    return [word.replace("%%", "%") for word in words]


def test_an_entry_starts_the_command_unchanged(tmp_path: Path):
    assert exec_words(autostart_entry(COMMAND, {}, tmp_path).text) == COMMAND


def test_an_entry_follows_xdg_config_home(tmp_path: Path):
    usual = autostart_entry(COMMAND, {}, tmp_path)
    assert usual.path == tmp_path / ".config" / "autostart" / "lore-tray.desktop"
    other = autostart_entry(COMMAND, {"XDG_CONFIG_HOME": "/else"}, tmp_path)
    assert other.path == Path("/else/autostart/lore-tray.desktop")
    relative = autostart_entry(COMMAND, {"XDG_CONFIG_HOME": "here"}, tmp_path)
    assert relative.path == usual.path


def test_an_entry_is_written_and_removed(tmp_path: Path):
    entry = autostart_entry(COMMAND, {}, tmp_path)
    assert not entry.is_written()
    entry.write()
    entry.write()
    assert entry.path.read_text("utf-8") == entry.text
    assert stat.S_IMODE(entry.path.stat().st_mode) == 0o644
    entry.remove()
    assert list(entry.path.parent.iterdir()) == []
    with pytest.raises(NotFound):
        entry.remove()


def test_a_file_of_somebody_else_stays(tmp_path: Path):
    entry = autostart_entry(COMMAND, {}, tmp_path)
    entry.path.parent.mkdir(parents=True)
    entry.path.write_text("[Desktop Entry]\nName=Mine\n")
    with pytest.raises(InvalidInput):
        entry.write()
    with pytest.raises(NotFound):
        entry.remove()
    assert "Mine" in entry.path.read_text("utf-8")


def test_a_line_break_cannot_enter_a_file(tmp_path: Path):
    with pytest.raises(InvalidInput):
        autostart_entry(["lore", "a\nExec=b"], {}, tmp_path)
    with pytest.raises(InvalidInput):
        write_bundle(tmp_path, ["lore", "a\nb"], "1", {})


def test_a_bundle_has_the_structure_of_an_app(tmp_path: Path):
    bundle = write_bundle(tmp_path, COMMAND, "1.2.3", {128: b"png"})
    contents = bundle / "Contents"
    info = plistlib.loads((contents / "Info.plist").read_bytes())
    assert info["CFBundlePackageType"] == "APPL"
    assert info["CFBundleShortVersionString"] == "1.2.3"
    assert info["LSUIElement"] is True
    assert (contents / "Resources" / info["CFBundleIconFile"]).is_file()
    program = contents / "MacOS" / info["CFBundleExecutable"]
    assert os.access(program, os.X_OK)
    assert (contents / "PkgInfo").read_bytes() == b"APPL????"


def test_the_program_of_a_bundle_runs_the_command_unchanged(tmp_path: Path):
    bundle = write_bundle(tmp_path, ["printf", "%s", ODD], "1", {})
    done = subprocess.run(
        [bundle / "Contents" / "MacOS" / "lore-tray"], capture_output=True, check=True
    )
    assert done.stdout.decode() == ODD


def test_a_bundle_replaces_itself_only(tmp_path: Path):
    write_bundle(tmp_path, COMMAND, "1", {})
    bundle = write_bundle(tmp_path, COMMAND, "2", {})
    assert b"<string>2</string>" in (bundle / "Contents" / "Info.plist").read_bytes()
    other = tmp_path / "other"
    (other / "Lore.app").mkdir(parents=True)
    with pytest.raises(InvalidInput):
        write_bundle(other, COMMAND, "1", {})
    assert list((other / "Lore.app").iterdir()) == []


def test_an_icon_file_has_the_length_of_each_picture():
    data = icns_of({256: b"second", 128: b"first"})
    assert data[:4] == b"icns"
    assert int.from_bytes(data[4:8]) == len(data)
    assert data[8:12] == b"ic07"
    assert int.from_bytes(data[12:16]) == 8 + len(b"first")
    assert data.endswith(b"ic08" + (8 + len(b"second")).to_bytes(4) + b"second")
