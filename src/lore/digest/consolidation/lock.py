"""The lock: one cycle at a time works on a database, whichever process runs it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lore.errors import CycleRunning

_SUFFIX = "-cycle.lock"


@contextmanager
def hold(database: Path) -> Iterator[None]:
    """Hold the lock of a database's cycles; the system releases it when the process ends.

    The file stays, for to remove it would be a race; in it stands who holds it.
    """
    path = database.with_name(database.name + _SUFFIX)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _running(os.pread(file, 20, 0)) from None
        with suppress(OSError):  # on a full disk nobody learns who holds it
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def _running(holder: bytes) -> CycleRunning:
    pid = holder.decode(errors="replace").strip()
    who = f" (pid {pid})" if pid.isdecimal() else ""
    msg = f"Another process runs a cycle on this memory{who}."
    return CycleRunning(msg, hint="Try again when it has ended; the daemon runs one by itself.")
