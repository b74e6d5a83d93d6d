"""The daemon as a background process: start it, detach it, stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lore.daemon import daemon_lock
from lore.errors import DaemonError
from lore.proxy.address import LOCK_FILE

START_S = 60.0
"""How long a start may take; a large database may have to be migrated first."""

STOP_S = 4.0
"""How long a daemon may take to stop."""

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class StartResult:
    """Result of a start: `code` is its exit code, or None if the daemon runs."""

    pid: int
    code: int | None
    output: str


def command(home: Path, *options: str) -> list[str]:
    """Return the command that runs the daemon of a home in the foreground."""
    return [sys.executable, "-m", "lore.cli", "--home", str(home), "up", *options]


def start(home: Path) -> StartResult:
    """Start a daemon in the background and return once it is up or has failed.

    The daemon writes errors to stderr, and closes it once it is up (see `detach_from_terminal`).
    """
    process = subprocess.Popen(  # noqa: S603 - our own program
        command(home, "--in-background"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    stream, output = process.stderr, list[bytes]()
    assert stream
    reader = threading.Thread(target=lambda: output.append(stream.read()), daemon=True)
    reader.start()
    reader.join(START_S)
    if reader.is_alive():
        msg = f"The daemon (pid {process.pid}) was started, but is not up after {START_S:.0f} s."
        raise DaemonError(msg, hint="'lore status' and 'lore logs' show more.")
    stream.close()
    holder = daemon_lock.find_holder(home)
    if holder is not None and holder.pid == process.pid:
        process.returncode = 0  # it outlives this process, which must not wait for it
        return StartResult(process.pid, None, output[0].decode("utf-8", "replace"))
    return StartResult(process.pid, process.wait(START_S), output[0].decode("utf-8", "replace"))


def detach_from_terminal(home: Path) -> None:
    """Leave the terminal and the working directory of the parent.

    Output of libraries is discarded: the log is rotated, and its lines are events without contents.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.chdir(home)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def stop(home: Path, *, force: bool = False) -> int | None:
    """Stop the daemon and wait until it has ended; return its pid, or None if none runs."""
    holder = daemon_lock.find_holder(home)
    if holder is None:
        return None
    _signal(home, holder.pid, signal.SIGTERM)
    if _is_gone(home, holder.pid):
        return holder.pid
    if not force:
        msg = f"The daemon (pid {holder.pid}) has not stopped within {STOP_S:.0f} s."
        raise DaemonError(msg, hint="'lore down --force' kills it; nothing stored is lost.")
    _signal(home, holder.pid, signal.SIGKILL)
    if not _is_gone(home, holder.pid):
        raise DaemonError(f"The daemon (pid {holder.pid}) cannot be killed.")
    return holder.pid


def _signal(home: Path, pid: int, number: signal.Signals) -> None:
    """Send a signal to the daemon of a home; the lock file may name another process."""
    if daemon_lock.is_held_by(home, pid):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    elif (holder := daemon_lock.find_holder(home)) is not None and holder.pid == pid:
        msg = f"{home / LOCK_FILE} was changed: pid {pid} is not the daemon of this home."
        raise DaemonError(
            msg, hint="Find it with 'ps' and end it yourself; nothing stored is lost."
        )


def _is_gone(home: Path, pid: int) -> bool:
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        holder = daemon_lock.find_holder(home)
        if holder is None or holder.pid != pid:
            return True
        time.sleep(_POLL_S)
    return False
