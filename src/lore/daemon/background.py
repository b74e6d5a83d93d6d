"""The background: starting a daemon in a session of its own, and asking one to stop."""

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

from lore.daemon import lock
from lore.errors import DaemonError
from lore.proxy.address import LOCK_FILE

START_S = 60.0
"""A large database may have to be brought up to date first."""

STOP_S = 4.0
"""A daemon leaves within this time."""

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Started:
    """How a start went: the exit code is None if it runs, and `said` is what it had to say."""

    pid: int
    code: int | None
    said: str


def command(home: Path, *options: str) -> list[str]:
    """Return the command that runs the daemon of a home in the foreground."""
    return [sys.executable, "-m", "lore.cli", "--home", str(home), "up", *options]


def start(home: Path) -> Started:
    """Start a daemon in the background and return once it is up, or has failed.

    It says on stderr what is wrong, and lets go of it (see `let_go`) once it is up.
    """
    process = subprocess.Popen(  # noqa: S603 - our own program
        command(home, "--in-background"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    stream, said = process.stderr, list[bytes]()
    assert stream
    reader = threading.Thread(target=lambda: said.append(stream.read()), daemon=True)
    reader.start()
    reader.join(START_S)
    if reader.is_alive():
        msg = f"The daemon (pid {process.pid}) was started, but is not up after {START_S:.0f} s."
        raise DaemonError(msg, hint="'lore status' and 'lore logs' show more.")
    stream.close()
    holder = lock.find_holder(home)
    if holder is not None and holder.pid == process.pid:
        process.returncode = 0  # it outlives this process, which is not to wait for it
        return Started(process.pid, None, said[0].decode("utf-8", "replace"))
    return Started(process.pid, process.wait(START_S), said[0].decode("utf-8", "replace"))


def let_go(home: Path) -> None:
    """Leave the terminal and the folder that the daemon was started from.

    What a library prints goes nowhere: the log is renewed under its own file, and a line in it is
    an event without contents.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.chdir(home)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def stop(home: Path, *, force: bool = False) -> int | None:
    """Ask the daemon to stop and wait until it has; return its pid, or None if there is none."""
    holder = lock.find_holder(home)
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
        msg = f"The daemon (pid {holder.pid}) cannot be killed."
        raise DaemonError(msg)
    return holder.pid


def _signal(home: Path, pid: int, number: signal.Signals) -> None:
    """Send a signal to the daemon of a home, and to nobody else that its lock file may name."""
    if lock.is_held_by(home, pid):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    elif (holder := lock.find_holder(home)) is not None and holder.pid == pid:
        msg = f"{home / LOCK_FILE} was changed: pid {pid} is not the daemon of this home."
        raise DaemonError(
            msg, hint="Find it with 'ps' and end it yourself; nothing stored is lost."
        )


def _is_gone(home: Path, pid: int) -> bool:
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        holder = lock.find_holder(home)
        if holder is None or holder.pid != pid:
            return True
        time.sleep(_POLL_S)
    return False
