"""The daemon's lock: one daemon per home, and how to find the process that holds it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lore.errors import AlreadyRunning
from lore.proxy.address import LOCK_FILE

_RETRY_S, _PAUSE_S = 0.5, 0.05
"""A process that only asks who holds the lock locks it for an instant, so locking is retried."""

_PS_S = 5.0

_LOCKS = Path("/proc/locks")
"""The file in which Linux lists locks and their owners."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The daemon that serves a home."""

    pid: int
    since: datetime
    version: str
    holds_folder_lock: bool = False
    """Whether the daemon could not write its lock file; the system then names the owner."""


@dataclass(frozen=True, slots=True)
class DaemonLock:
    """The lock of a home, held by this process until it ends."""

    path: Path
    file: int

    @property
    def holds_folder_lock(self) -> bool:
        """Return whether the folder is locked instead of the lock file."""
        return self.path.name != LOCK_FILE

    def is_in_place(self) -> bool:
        """Return whether the locked file is still the one in the home."""
        try:
            there, ours = self.path.lstat(), os.fstat(self.file)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        """Release the lock; the file stays, because removing it would be a race."""
        with suppress(OSError):
            os.ftruncate(self.file, 0)
        os.close(self.file)


def take_lock(home: Path, *, now: datetime, version: str) -> DaemonLock:
    """Lock a home; the lock of a killed process does not count."""
    path = home / LOCK_FILE
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if not _locks(file, fcntl.LOCK_EX, patience_s=_RETRY_S):
        holder = _parsed(os.pread(file, 200, 0))
        os.close(file)
        raise already_running_error(home, holder)
    lock = DaemonLock(path, file)
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n{now.isoformat()}\n{version}\n".encode(), 0)
    except OSError:
        lock.release()
        raise
    return lock


def lock_folder(home: Path) -> DaemonLock:
    """Lock the folder of a home in which no file can be written."""
    _LOCKS.stat()  # without the system's list, nobody could find the owner of such a lock
    file = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if not _locks(file, fcntl.LOCK_EX, patience_s=_RETRY_S):
        os.close(file)
        raise already_running_error(home, _find_folder_holder(home))
    return DaemonLock(home, file)


def already_running_error(home: Path, holder: Holder | None) -> AlreadyRunning:
    """Return the error that says which daemon already serves a home."""
    who = f" (pid {holder.pid})" if holder else ""
    msg = f"Lore is running already for {home}{who}."
    return AlreadyRunning(msg, hint="'lore status' shows what it does.")


def find_holder(home: Path) -> Holder | None:
    """Return the daemon that holds the lock of a home, or None."""
    return _find_told(home) or _find_folder_holder(home)


def _find_told(home: Path) -> Holder | None:
    try:
        file = os.open(home / LOCK_FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _locks(file, fcntl.LOCK_SH):
            return None
        until = time.monotonic() + _RETRY_S
        while (holder := _parsed(os.pread(file, 200, 0))) is None and time.monotonic() < until:
            time.sleep(_PAUSE_S)
        return holder
    finally:
        os.close(file)


def _find_folder_holder(home: Path) -> Holder | None:
    try:
        file = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _locks(file, fcntl.LOCK_SH):
            return None
        number = os.fstat(file).st_ino
        with suppress(OSError):
            for pid in _pids_with_lock(number, _LOCKS.read_text()):
                if is_held_by(home, pid):
                    begun = datetime.fromtimestamp(Path(f"/proc/{pid}").stat().st_mtime, UTC)
                    return Holder(pid, begun, "", holds_folder_lock=True)
        return None
    finally:
        os.close(file)


def _pids_with_lock(file_number: int, table: str) -> list[int]:
    """Return the processes that hold an exclusive lock on an inode."""
    pids = []
    for line in table.splitlines():
        match line.split():
            case [_, "FLOCK", _, "WRITE", pid, place, *_] if place.endswith(f":{file_number}"):
                pids.append(int(pid))
    return pids


def is_held_by(home: Path, pid: int, processes: Path = Path("/proc")) -> bool:
    """Return whether a process has the lock of a home open.

    The content of the file can be forged, so open files decide. A system that does not list the
    open files of a process at least shows its command line.
    """
    try:
        ours = [path.lstat() for path in (home / LOCK_FILE, home) if path.exists()]
        if not processes.is_dir():
            return "lore" in _command(pid)
        for file in (processes / str(pid) / "fd").iterdir():
            with suppress(FileNotFoundError):
                if any(os.path.samestat(file.stat(), one) for one in ours):
                    return True
    except (OSError, subprocess.SubprocessError):
        return False  # it ended, or belongs to another user
    return False


def _command(pid: int) -> str:
    words = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    process = subprocess.run(  # noqa: S603 - a number is all that is given
        words, capture_output=True, text=True, errors="replace", check=False, timeout=_PS_S
    )
    return process.stdout


def _locks(file: int, kind: int, *, patience_s: float = 0.0) -> bool:
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE_S)
        else:
            return True


def _parsed(content: bytes) -> Holder | None:
    try:
        pid, since, version = content.decode().split("\n")[:3]
        holder = Holder(int(pid), datetime.fromisoformat(since), version)
    except ValueError:
        return None
    return holder if holder.pid > 0 else None
