"""Service files that let systemd or launchd run the daemon."""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lore.errors import DaemonError, InvalidInput, NotFound

System = Literal["systemd", "launchd"]

MARK = "Written by 'lore service install'."
"""Only a file with this line is changed or removed."""

_PATIENCE_S = 20
_ALREADY_RUNNING = DaemonError.exit_code

_UNIT = """\
# {mark}
[Unit]
Description=Lore, memory of AI agents ({home})

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus={already_running}
TimeoutStopSec=10
UMask=0077
Nice=5

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class Unit:
    """A service of this user: its name, the path of its file and the content."""

    system: System
    name: str
    path: Path
    text: str
    turn_on: tuple[tuple[str, ...], ...]
    turn_off: tuple[tuple[str, ...], ...]

    def is_installed(self) -> bool:
        """Return whether the file exists and was written by Lore."""
        try:
            return MARK in self.path.read_text("utf-8")
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            raise DaemonError(f"{self.path} cannot be read.") from error


def unit_of(
    home: Path,
    command: Sequence[str],
    *,
    user_home: Path,
    usual: bool,
    system: System | None = None,
) -> Unit:
    """Describe the service of a home; other homes than the `usual` one get their own name."""
    system = system or ("launchd" if sys.platform == "darwin" else "systemd")
    if re.search(r"[\x00-\x1f\x7f]", " ".join(command)):
        msg = "A service cannot be made for a path with control characters."
        raise InvalidInput(msg)
    name = "lore" if usual else f"lore-{hashlib.sha256(str(home).encode()).hexdigest()[:8]}"
    if system == "launchd":
        return _launchd(name, command, user_home)
    return _systemd(name, home, command, user_home)


def _systemd(name: str, home: Path, command: Sequence[str], user_home: Path) -> Unit:
    control = ("systemctl", "--user")
    return Unit(
        "systemd",
        name,
        user_home / ".config" / "systemd" / "user" / f"{name}.service",
        _UNIT.format(
            mark=MARK,
            home=str(home).replace("%", "%%"),
            command=" ".join(_quoted(word) for word in command),
            already_running=_ALREADY_RUNNING,
        ),
        turn_on=((*control, "daemon-reload"), (*control, "enable", "--now", f"{name}.service")),
        turn_off=((*control, "disable", "--now", f"{name}.service"),),
    )


def _quoted(word: str) -> str:
    """Return a word quoted for systemd, with nothing that it would expand."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"'


def _launchd(name: str, command: Sequence[str], user_home: Path) -> Unit:
    label = f"dev.{name}" if name == "lore" else f"dev.lore.{name.removeprefix('lore-')}"
    path = user_home / "Library" / "LaunchAgents" / f"{label}.plist"
    table = {
        "Label": label,
        "ProgramArguments": list(command),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ProcessType": "Background",
        "Umask": 0o077,
    }
    first, rest = plistlib.dumps(table).decode().split("\n", 1)
    domain = f"gui/{os.getuid()}"
    return Unit(
        "launchd",
        label,
        path,
        f"{first}\n<!-- {MARK} -->\n{rest}",
        turn_on=(("launchctl", "bootstrap", domain, str(path)),),
        turn_off=(("launchctl", "bootout", f"{domain}/{label}"),),
    )


def install(unit: Unit) -> list[str]:
    """Write the file and enable the service; return the commands that the user has to run."""
    if unit.path.exists() and not unit.is_installed():
        msg = f"{unit.path} exists and was not written by Lore."
        raise InvalidInput(msg, hint="Move it away first.")
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    part = unit.path.with_name(f".{unit.path.name}.part")
    part.write_text(unit.text, "utf-8")
    part.chmod(0o644)
    part.replace(unit.path)
    return _run(unit.turn_on)


def uninstall(unit: Unit) -> list[str]:
    """Disable the service and remove its file; return the commands that the user has to run."""
    if not unit.is_installed():
        raise NotFound(f"There is no service of Lore's at {unit.path}.")
    remaining = _run(unit.turn_off)
    unit.path.unlink()
    return remaining


def _run(commands: Sequence[Sequence[str]]) -> list[str]:
    """Run commands in order; return the first that failed and all after it."""
    for place, command in enumerate(commands):
        program = shutil.which(command[0])
        if program is None or not _works([program, *command[1:]]):
            return [" ".join(words) for words in commands[place:]]
    return []


def _works(command: Sequence[str]) -> bool:
    try:
        process = subprocess.run(  # noqa: S603 - systemctl or launchctl, as found in the path
            command, capture_output=True, check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0
