"""The quick way in for what agents start all the time: `lore mcp` and `lore hook`.

Standard library only, as long as the daemon of the home runs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as type checkers read it; `typing` would double the start of a hook

if TYPE_CHECKING:
    from collections.abc import Callable

    from lore.proxy.address import Address
    from lore.proxy.greeting import Greeting
    from lore.settings import Settings

_START_S = 30.0
"""A large database may have to be brought up to date first."""

_LISTEN_S = 10.0
"""The daemon listens a moment after it is up, also one that another agent has just started."""

_WHOLE_S = _START_S + _LISTEN_S
"""How long all of it may take, waiting for another that starts one included."""

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
    """Serve one agent by the daemon until it hangs up; False if no daemon can be reached.

    Where the home keeps the greeting of the daemon that is to be started, the agent is not made to
    wait for that.
    """
    from lore.proxy import address

    home = _find_home(given_home)
    if not home:
        return False
    is_cold = address.find_address(home) is None
    if is_cold and _find_greeting(home) is None and start(home) is None:
        return False
    from lore.proxy import greeting
    from lore.proxy.mcp import Bridge

    def reach() -> Address | None:
        found = address.find_address(home) or start(home)
        if found is None:
            greeting.forget(home)
        return found

    bridge = Bridge(reach, _folder(), sys.stdout.buffer, lambda: _find_greeting(home))
    bridge.run(sys.stdin.buffer)
    return True


def _find_home(given: str) -> str:
    """Return the home that is meant; nothing where it would be below a home folder without name."""
    from lore.proxy.address import find_home

    usual = os.environ.get("LORE_HOME", "")
    below = (given or usual or "~").partition("/")[0]
    return "" if below == "~" and os.environ.get("HOME") == "" else find_home(given, usual)


def _find_greeting(home: str) -> Greeting | None:
    """Return what the daemon of a home says of itself: the one that runs, or that may be started.

    One that runs may have other settings than this process, and says itself which those are.
    """
    from lore import __version__
    from lore.proxy import address, greeting

    running = address.find_address(home)
    if running is not None:
        return greeting.find(home, running.greeting)
    settings = _find_settings(home)
    if settings is None or not settings.mcp_start:
        return None
    return greeting.find(home, greeting.mark_of(__version__, settings))


def _find_settings(home: str) -> Settings | None:
    """Return the settings in force; None if they are wrong, which is said where they are used."""
    from pathlib import Path

    from lore.errors import LoreError
    from lore.settings import load

    try:
        return load(home=Path(home)).settings
    except LoreError:
        return None


def serve_hook(given_home: str, event: str) -> None:
    """Tell Lore of a moment in an agent's session and print what it gives back, in no time."""
    from lore.proxy import hook

    home = _find_home(given_home)
    if not home:
        return
    if event == WAKE:
        start(home)
        return
    hook.run(event, home, _wake, _answer_alone)


def _wake(home: str) -> None:
    """Start a process that starts the daemon, and do not wait for it."""
    nowhere = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)
    ]  # an agent would wait for the end of what has its pipes
    command = [sys.executable, "-m", "lore.cli", "--home", home, "hook", WAKE]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setpgroup=0)


def _answer_alone(event: str, home: str, told: bytes) -> bytes:
    """Answer a hook by this process, of what can be read."""
    from pathlib import Path

    from lore.settings import load, resting_threads

    with resting_threads():
        from lore.http.hooking import answer
        from lore.memory import Memory
    with Memory.open(config=load(home=Path(home)).settings, create=False) as memory:
        return answer(memory, event, told, _folder())


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def start(
    home: str,
    starter: Callable[[str, float], Address | None] | None = None,
    pause: Callable[[float], None] | None = None,
) -> Address | None:
    """Start the daemon and wait until it listens; None where that is not wanted or fails.

    Of many that find none at the same time one starts it, and the others wait for that one. A
    `starter` is told by when it is to be done.
    """
    import time

    from lore.proxy.address import find_address

    settings = _find_settings(home)
    if settings is None or not settings.mcp_start or not _can_be(home):
        return None
    until = time.monotonic() + _WHOLE_S
    turn = _open_turn(home)
    try:
        while turn is not None and not _takes(turn):
            found = find_address(home)
            if found is not None or time.monotonic() > until:
                return found
            (pause or time.sleep)(_POLL_S)
        return find_address(home) or (starter or start_by)(home, until)
    finally:
        if turn is not None:
            os.close(turn)


def _open_turn(home: str) -> int | None:
    """Open what is locked by whoever starts a daemon; None where nothing can be written."""
    from lore.proxy.hook import WAKING_FILE

    try:
        os.makedirs(home, 0o700, exist_ok=True)  # the daemon makes it in a moment
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(os.path.join(home, WAKING_FILE), flags, 0o600)
    except OSError:
        return None


def _takes(turn: int) -> bool:
    """Tell whether nobody else is starting a daemon; from then on this process is."""
    import fcntl

    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: each starts one, and one of these stays
    return True


def start_by(home: str, until: float) -> Address | None:
    """Start the daemon and wait until it listens, but not beyond a moment of the clock."""
    import subprocess
    import time

    from lore.proxy.address import find_address

    left_s = min(_START_S, until - time.monotonic())
    if left_s <= 0:
        return None
    command = [sys.executable, "-m", "lore.cli", "--home", home, "up", "--detach"]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=left_s
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:  # what is wrong is told by who serves instead, once
        return None
    os.write(2, done.stdout + done.stderr)
    until = min(until, time.monotonic() + _LISTEN_S)
    while (found := find_address(home)) is None and time.monotonic() < until:
        time.sleep(_POLL_S)
    return found


def _can_be(home: str) -> bool:
    """Tell whether a home is a folder, or can be made one."""
    standing = home
    while not os.path.lexists(standing):
        standing = os.path.dirname(standing)
    mode = os.R_OK | os.X_OK if standing == home else os.W_OK | os.X_OK
    return os.path.isdir(standing) and os.access(standing, mode)
