"""The quick way in for what agents start all the time: `lore mcp` and `lore hook`.

Standard library only, as long as the daemon of the home runs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as type checkers read it; `typing` would double the start of a hook

if TYPE_CHECKING:
    from lore.bridges.address import Address

_START_S = 30.0
"""A large database may have to be brought up to date first."""

_LISTEN_S = 5.0
"""The daemon listens a moment after it is up."""

_POLL_S = 0.02

WAKE = "Wake"
"""No event of an agent: what a hook starts that finds no daemon."""


def run(arguments: list[str]) -> bool:
    """Run a bridge if that is what the command line asks for, and tell whether it did."""
    home, rest = home_of(arguments)
    if rest == ["mcp"]:
        return serve_mcp(home)
    if rest[:1] == ["hook"] and len(rest) > 1 and not rest[1].startswith("-"):
        serve_hook(home, rest[1])
        return True
    return False


def home_of(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the home that a command line names, and what follows it."""
    if arguments[:1] == ["--home"]:
        return (arguments[1] if len(arguments) > 1 else ""), arguments[2:]
    if arguments and arguments[0].startswith("--home="):
        return arguments[0].removeprefix("--home="), arguments[1:]
    return "", arguments


def serve_mcp(given_home: str) -> bool:
    """Serve one agent by the daemon until it hangs up; False if no daemon can be reached."""
    from lore.bridges import address

    home = address.find_home(given_home, os.environ.get("LORE_HOME", ""))
    if address.find_address(home) is None and start(home) is None:
        return False
    from lore.bridges.mcp import Bridge

    def reach() -> Address | None:
        return address.find_address(home) or start(home)

    Bridge(reach, _folder(), sys.stdout.buffer).run(sys.stdin.buffer)
    return True


def serve_hook(given_home: str, event: str) -> None:
    """Tell Lore of a moment in an agent's session and print what it gives back, in no time."""
    from lore.bridges import address, hook

    home = address.find_home(given_home, os.environ.get("LORE_HOME", ""))
    if event == WAKE:
        start(home)
        return
    hook.run(event, home, _wake)


def _wake(home: str) -> None:
    """Start a process that starts the daemon, and do not wait for it."""
    nowhere = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)
    ]  # an agent would wait for the end of what has its pipes
    command = [sys.executable, "-m", "lore.cli", "--home", home, "hook", WAKE]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setpgroup=0)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def start(home: str) -> Address | None:
    """Start the daemon and wait until it listens; None where that is not wanted or fails."""
    import subprocess
    import time
    from contextlib import suppress
    from pathlib import Path

    from lore.bridges.address import find_address
    from lore.errors import LoreError
    from lore.settings import load

    with suppress(LoreError):
        if not load(home=Path(home)).settings.mcp_start:
            return None
    command = [sys.executable, "-m", "lore.cli", "--home", home, "up", "--detach"]
    try:
        subprocess.run(  # noqa: S603 - our own program
            command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, timeout=_START_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    until = time.monotonic() + _LISTEN_S
    while (found := find_address(home)) is None and time.monotonic() < until:
        time.sleep(_POLL_S)
    return found
