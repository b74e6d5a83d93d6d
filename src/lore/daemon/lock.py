"""The lock: one daemon for each home, and who that is."""

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

_PATIENCE_S, _PAUSE_S = 0.5, 0.05
"""Whoever asks who runs holds the lock for an instant; it is tried again for so long."""

_PS_S = 5.0

_LOCKS = Path("/proc/locks")
"""Where Linux tells who holds which lock."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The daemon that serves a home."""

    pid: int
    since: datetime
    version: str
    is_mute: bool = False
    """Whether it could not write down that it is the one: the system says so."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a home, held by this process until it ends."""

    path: Path
    file: int

    @property
    def is_mute(self) -> bool:
        """Tell whether it is the folder that is held, where nothing says by whom."""
        return self.path.name != LOCK_FILE

    def is_in_place(self) -> bool:
        """Tell whether the file that is locked still is the one in the home."""
        try:
            there, ours = self.path.lstat(), os.fstat(self.file)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        """Give the home free; the file stays, for to remove it would be a race."""
        with suppress(OSError):
            os.ftruncate(self.file, 0)
        os.close(self.file)


def take(home: Path, *, now: datetime, version: str) -> Lock:
    """Lock a home; what a killed daemon left behind is no obstacle."""
    path = home / LOCK_FILE
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if not _locks(file, fcntl.LOCK_EX, patience_s=_PATIENCE_S):
        holder = _parsed(os.pread(file, 200, 0))
        os.close(file)
        raise already_running(home, holder)
    held = Lock(path, file)
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n{now.isoformat()}\n{version}\n".encode(), 0)
    except OSError:
        held.release()
        raise
    return held


def take_mutely(home: Path) -> Lock:
    """Lock a home in which nothing can be written: its folder, where the system tells who did."""
    _LOCKS.stat()  # a lock of which nobody could tell whose it is would be of no use
    file = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if not _locks(file, fcntl.LOCK_EX, patience_s=_PATIENCE_S):
        os.close(file)
        raise already_running(home, _find_mute(home))
    return Lock(home, file)


def already_running(home: Path, holder: Holder | None) -> AlreadyRunning:
    """Return the error that says who serves a home."""
    who = f" (pid {holder.pid})" if holder else ""
    msg = f"Lore is running already for {home}{who}."
    return AlreadyRunning(msg, hint="'lore status' shows what it does.")


def find_holder(home: Path) -> Holder | None:
    """Return the daemon that holds the lock of a home."""
    return _find_told(home) or _find_mute(home)


def _find_told(home: Path) -> Holder | None:
    try:
        file = os.open(home / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _locks(file, fcntl.LOCK_SH):
            return None
        until = time.monotonic() + _PATIENCE_S
        while (holder := _parsed(os.pread(file, 200, 0))) is None and time.monotonic() < until:
            time.sleep(_PAUSE_S)
        return holder
    finally:
        os.close(file)


def _find_mute(home: Path) -> Holder | None:
    """Return the daemon that holds the folder itself."""
    try:
        file = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _locks(file, fcntl.LOCK_SH):
            return None
        number = os.fstat(file).st_ino
        with suppress(OSError):
            for pid in _holding(number, _LOCKS.read_text()):
                if is_held_by(home, pid):
                    begun = datetime.fromtimestamp(Path(f"/proc/{pid}").stat().st_mtime, UTC)
                    return Holder(pid, begun, "", is_mute=True)
        return None
    finally:
        os.close(file)


def _holding(file_number: int, told: str) -> list[int]:
    """Return who alone holds a file of this number, as the list of the system tells it."""
    held = []
    for line in told.splitlines():
        match line.split():
            case [_, "FLOCK", _, "WRITE", pid, place, *_] if place.endswith(f":{file_number}"):
                held.append(int(pid))
    return held


def is_held_by(home: Path, pid: int, processes: Path = Path("/proc")) -> bool:
    """Tell whether a process has the lock of a home open: the file itself can be forged.

    A system that does not show the files of a process shows at least whether it is of Lore.
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
        return False  # it is gone, or another person's
    return False


def _command(pid: int) -> str:
    asked = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    done = subprocess.run(  # noqa: S603 - a number is all that is given
        asked, capture_output=True, text=True, errors="replace", check=False, timeout=_PS_S
    )
    return done.stdout


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
