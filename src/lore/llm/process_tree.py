"""Process tree: kill a process with all it started, also what has left its session.

A process group ends where a child starts a session of its own, and parents of orphans are unknown.
So each tree has a mark in its environment, which every process inherits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "LORE_PROCESS_TREE"
"""The variable that marks the processes of a tree."""

_MAX_ROUNDS = 10
"""A process may start another one while the tree is read: it is read again until it is empty."""

_PROC = Path("/proc")
_PS = ("/bin/ps", "-axEww", "-o", "pid=,ppid=,command=")
_PS_TIMEOUT_S = 5


def new_mark() -> str:
    """Return a mark for the processes of one command."""
    return uuid.uuid4().hex


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group, unless it was waited for."""
    # After the wait, the pid may belong to another process.
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def kill_tree(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill a process, its group, its descendants, and all processes with its mark."""
    remaining = _descendants(process.pid) if process.returncode is None else set()
    kill_group(process)
    for _ in range(_MAX_ROUNDS):
        remaining |= {pid for pid, is_marked in _list_processes(mark) if is_marked}
        remaining -= {os.getpid(), process.pid}
        if not remaining:
            return
        for pid in remaining:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        remaining = set()


def _descendants(pid: int) -> set[int]:
    """Return the descendants of a process; those whose parent has ended are not among them."""
    children: dict[int, list[int]] = {}
    for child, parent in _list_parents():
        children.setdefault(parent, []).append(child)
    descendants: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in descendants:
                descendants.add(child)
                waiting.append(child)
    return descendants


def _list_processes(mark: str) -> Iterator[tuple[int, bool]]:
    """Yield the processes of this user, and whether each has a mark."""
    if not _PROC.is_dir():
        for pid, _, command in _ps():
            yield pid, f"{MARK}={mark}" in command
        return
    wanted = f"{MARK}={mark}".encode()
    for pid in _pids():
        with suppress(OSError):
            environ = (_PROC / str(pid) / "environ").read_bytes()
            yield pid, wanted in environ.split(b"\0") and not _is_zombie(pid)


def _list_parents() -> Iterator[tuple[int, int]]:
    """Yield processes with their parents."""
    if not _PROC.is_dir():
        yield from ((pid, parent) for pid, parent, _ in _ps())
        return
    for pid in _pids():
        with suppress(OSError, ValueError, IndexError):
            yield pid, int(_stat(pid)[1])


def _is_zombie(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return _stat(pid)[0] == "Z"
    return True


def _stat(pid: int) -> list[str]:
    """Return the state of a process, its parent, and more; its name may contain anything."""
    return (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _ps() -> Iterator[tuple[int, int, str]]:
    """Yield processes with their parents, and their commands with the environment (macOS)."""
    try:
        printed = subprocess.run(  # noqa: S603 - a fixed command, without a shell
            _PS, capture_output=True, timeout=_PS_TIMEOUT_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in printed.decode("utf-8", "replace").splitlines():
        pid, _, rest = line.strip().partition(" ")
        parent, _, command = rest.strip().partition(" ")
        if pid.isdigit() and parent.isdigit():
            yield int(pid), int(parent), command
