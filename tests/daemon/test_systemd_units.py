"""The files for systemd and launchd, and taking them back."""

from __future__ import annotations

import plistlib
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from lore.daemon.systemd_units import MARK, Unit, install, uninstall, unit_of
from lore.errors import InvalidInput, NotFound

ODD = '/code/my "home" 100%/$HOME \\ é'


def unit(tmp_path: Path, system="systemd", home: str = ODD, *, usual: bool = False) -> Unit:
    """Return a unit whose commands always work, and change nothing."""
    command = ["/usr/bin/python3", "-m", "lore.cli", "--home", home, "up"]
    made = unit_of(Path(home), command, user_home=tmp_path, usual=usual, system=system)
    return replace(made, turn_on=(("true",),), turn_off=(("true",),))


def test_a_unit_quotes_systemd_specifiers(tmp_path: Path):
    (line,) = [x for x in unit(tmp_path).text.splitlines() if x.startswith("ExecStart=")]
    assert "100%%" in line
    assert "$$HOME" in line
    words = shlex.split(line.removeprefix("ExecStart="))
    assert [word.replace("%%", "%").replace("$$", "$") for word in words][-2:] == [ODD, "up"]
    assert line.count("\n") == 0


def test_a_unit_restarts_on_failure_but_not_against_another_daemon(tmp_path: Path):
    text = unit(tmp_path).text
    assert "Restart=on-failure" in text
    assert "RestartPreventExitStatus=12" in text


def test_a_launchd_agent_has_the_command_unchanged(tmp_path: Path):
    made = unit(tmp_path, "launchd")
    table = plistlib.loads(made.text.encode())
    assert table["ProgramArguments"][-2:] == [ODD, "up"]
    assert table["Label"] == made.name
    assert table["KeepAlive"] == {"SuccessfulExit": False}
    assert made.path.parent == tmp_path / "Library" / "LaunchAgents"


@pytest.mark.parametrize("system", ["systemd", "launchd"])
def test_every_home_has_its_own_unit(tmp_path: Path, system):
    paths = {
        unit(tmp_path, system, home="/code/a").path,
        unit(tmp_path, system, home="/code/b").path,
        unit(tmp_path, system, home="/code/c", usual=True).path,
    }
    assert len(paths) == 3


@pytest.mark.parametrize("system", ["systemd", "launchd"])
def test_uninstall_removes_only_what_was_installed(tmp_path: Path, system):
    made = unit(tmp_path, system)
    made.path.parent.mkdir(parents=True)
    (made.path.parent / "other").write_text("kept")
    assert install(made) == []
    assert install(made) == []
    assert MARK in made.path.read_text()
    assert uninstall(made) == []
    assert [path.name for path in made.path.parent.iterdir()] == ["other"]
    with pytest.raises(NotFound):
        uninstall(made)


def test_a_foreign_unit_file_is_kept(tmp_path: Path):
    made = unit(tmp_path)
    made.path.parent.mkdir(parents=True)
    made.path.write_text("[Service]\n")
    with pytest.raises(InvalidInput):
        install(made)
    with pytest.raises(NotFound):
        uninstall(made)
    assert made.path.read_text() == "[Service]\n"


def test_failed_commands_are_left_to_the_user(tmp_path: Path):
    made = replace(unit(tmp_path), turn_on=(("true",), ("false", "x"), ("true", "y")))
    assert install(made) == ["false x", "true y"]
    made = replace(made, turn_off=(("no-such-program-here", "z"),))
    assert uninstall(made) == ["no-such-program-here z"]
    assert not made.path.exists()


def test_a_path_that_would_break_the_file_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput):
        unit(tmp_path, home="/code/a\nExecStartPre=rm")
