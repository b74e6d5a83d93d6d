"""Fast path for the commands that agents start all the time, and for those that the daemon runs.

It uses the standard library only, as long as the daemon of the home runs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = (
    False  # as type checkers read it; importing `typing` would double the start-up of a hook
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lore.proxy.address import Address
    from lore.proxy.cached_handshake import Handshake
    from lore.settings import Settings

_START_S = 30.0
"""How long a start may take; a large database may have to be migrated first."""

_LISTEN_S = 10.0
"""How long the daemon may take to listen after it is up."""

_WHOLE_S = _START_S + _LISTEN_S
"""The total timeout, including waiting for another process that starts the daemon."""

_POLL_S = 0.02

WAKE = "Wake"
"""Not an event of an agent: starts the daemon for a hook that found none."""


def run(arguments: list[str]) -> bool:
    """Run the MCP proxy or a hook if the arguments ask for it; return whether they did."""
    home, rest = home_of(arguments)
    if rest == ["mcp"]:
        return serve_mcp(home)
    if rest[:1] == ["hook"] and len(rest) > 1 and not rest[1].startswith("-"):
        serve_hook(home, rest[1])
        return True
    if rest == ["statusline"]:
        print_statusline(home)
        return True
    return _run_in_daemon(home, arguments, rest)


def print_statusline(given_home: str) -> None:
    """Print what the daemon of a home does, on one line."""
    from lore.proxy import status_line

    home = _find_home(given_home)
    sys.stdout.write(f"{status_line.describe(home)}\n")


def _run_in_daemon(given_home: str, arguments: list[str], rest: list[str]) -> bool:
    """Let the daemon run a command, and exit with its code; return False if it cannot."""
    from lore import __version__
    from lore.proxy import command_client

    home = _find_home(given_home)
    code = (
        command_client.run_command(home, __version__, arguments, rest, os.environ) if home else None
    )
    if code is not None:
        sys.exit(code)
    return False


def home_of(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the --home option of a command line, and the remaining arguments."""
    if arguments[:1] == ["--home"]:
        return (arguments[1] if len(arguments) > 1 else ""), arguments[2:]
    if arguments and arguments[0].startswith("--home="):
        return arguments[0].removeprefix("--home="), arguments[1:]
    return "", arguments


def serve_mcp(given_home: str) -> bool:
    """Serve one agent through the daemon until it disconnects; return False without a daemon.

    If the home has a cached handshake, the agent does not wait for the daemon's start.
    """
    from lore.proxy import address

    home = _find_home(given_home)
    if not home:
        return False
    is_cold = address.find_address(home) is None
    if is_cold and _load_handshake(home) is None and start_daemon(home) is None:
        return False
    from lore.proxy import cached_handshake
    from lore.proxy.stdio_proxy import StdioProxy

    def reach() -> Address | None:
        daemon = address.find_address(home) or start_daemon(home)
        if daemon is None:
            cached_handshake.delete_handshake(home)
        return daemon

    proxy = StdioProxy(reach, _folder(), sys.stdout.buffer, lambda: _load_handshake(home))
    proxy.run(sys.stdin.buffer)
    return True


def _find_home(option: str) -> str:
    """Return the home; '' if it would be in a home directory that has no name."""
    from lore.proxy.address import resolve_home

    usual = os.environ.get("LORE_HOME", "")
    below = (option or usual or "~").partition("/")[0]
    return "" if below == "~" and os.environ.get("HOME") == "" else resolve_home(option, usual)


def _load_handshake(home: str) -> Handshake | None:
    """Return the handshake of the daemon that runs, or of the one that may be started.

    A running daemon may have other settings than this process, and reports its own.
    """
    from lore import __version__
    from lore.proxy import address, cached_handshake

    running = address.find_address(home)
    if running is not None:
        return cached_handshake.load_handshake(home, running.handshake_mark)
    settings = _find_settings(home)
    if settings is None or not settings.mcp_start:
        return None
    return cached_handshake.load_handshake(
        home, cached_handshake.fingerprint(__version__, settings)
    )


def _find_settings(home: str) -> Settings | None:
    """Return the settings, or None if they are invalid; the error is raised where they are used."""
    from pathlib import Path

    from lore.errors import LoreError
    from lore.settings import load

    try:
        return load(home=Path(home)).settings
    except LoreError:
        return None


def serve_hook(given_home: str, event: str) -> None:
    """Report an event of an agent's session and print the memory for it, within the time limit."""
    from lore.proxy import hook_client

    home = _find_home(given_home)
    if not home:
        return
    if event == WAKE:
        start_daemon(home)
        return
    within_ms = os.environ.get("LORE_INJECT_WITHIN_MS", "")
    hook_client.run_hook(
        event,
        home,
        _wake,
        _answer_without_daemon,
        within_s=int(within_ms) / 1_000 if within_ms.isdecimal() else 0.0,
    )


def _wake(home: str) -> None:
    """Start a process that starts the daemon, without waiting for it."""
    nowhere = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)
    ]  # an agent would wait until its pipes are closed
    command = [sys.executable, "-m", "lore.cli", "--home", home, "hook", WAKE]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setpgroup=0)


def _answer_without_daemon(event: str, home: str, body: bytes) -> bytes:
    """Answer a hook in this process, from what can be read."""
    from pathlib import Path

    from lore.settings import load, resting_threads

    with resting_threads():
        from lore.http.hooks import answer_hook
        from lore.memory import Memory
    with Memory.open(config=load(home=Path(home)).settings, create=False) as memory:
        return answer_hook(memory, event, body, _folder())


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def start_daemon(
    home: str,
    starter: Callable[[str, float], Address | None] | None = None,
    pause: Callable[[float], None] | None = None,
) -> Address | None:
    """Start the daemon and wait until it listens; return None if that is not wanted or fails.

    If many processes find no daemon, one of them starts it and the others wait. `starter` gets the
    deadline.
    """
    import time

    from lore.proxy.address import find_address

    settings = _find_settings(home)
    if settings is None or not settings.mcp_start or not _can_exist(home):
        return None
    until = time.monotonic() + _WHOLE_S
    turn = _open_start_lock(home)
    try:
        while turn is not None and not _try_lock(turn):
            address = find_address(home)
            if address is not None or time.monotonic() > until:
                return address
            (pause or time.sleep)(_POLL_S)
        return find_address(home) or (starter or start_daemon_process)(home, until)
    finally:
        if turn is not None:
            os.close(turn)


def _open_start_lock(home: str) -> int | None:
    """Open the file that a starting process locks; None if nothing can be written."""
    from lore.proxy.hook_client import START_LOCK_FILE

    try:
        os.makedirs(home, 0o700, exist_ok=True)  # the daemon creates it in a moment
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(os.path.join(home, START_LOCK_FILE), flags, 0o600)
    except OSError:
        return None


def _try_lock(turn: int) -> bool:
    """Return whether this process got the lock, so that it starts the daemon."""
    import fcntl

    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return (
            True  # a file system without locks: each process starts a daemon, and one of them stays
        )
    return True


def start_daemon_process(home: str, until: float) -> Address | None:
    """Start the daemon and wait until it listens, at most until a deadline."""
    import subprocess
    import time

    from lore.proxy.address import find_address

    left_s = min(_START_S, until - time.monotonic())
    if left_s <= 0:
        return None
    command = [sys.executable, "-m", "lore.cli", "--home", home, "up", "--detach"]
    try:
        process = subprocess.run(  # noqa: S603 - our own program
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=left_s
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if process.returncode:  # the process that serves instead reports the error, once
        return None
    os.write(2, process.stdout + process.stderr)
    until = min(until, time.monotonic() + _LISTEN_S)
    while (address := find_address(home)) is None and time.monotonic() < until:
        time.sleep(_POLL_S)
    return address


def _can_exist(home: str) -> bool:
    """Return whether a home is a folder, or can be created."""
    standing = home
    while not os.path.lexists(standing):
        standing = os.path.dirname(standing)
    mode = os.R_OK | os.X_OK if standing == home else os.W_OK | os.X_OK
    return os.path.isdir(standing) and os.access(standing, mode)
