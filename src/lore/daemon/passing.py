"""Passing: where the memory cannot be opened, agents still reach their models.

The server listens where it always does and passes on what is meant for a model; every other door
says what is wrong. The memory is tried again until it opens.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lore import __version__, clock
from lore.daemon import status
from lore.daemon.attempts import attempt, log
from lore.daemon.doors import Doors, Place, take_place
from lore.daemon.status import Status
from lore.errors import (
    DaemonError,
    LoreError,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    told,
)
from lore.memory import Memory
from lore.memory.closed import closed_memory
from lore.settings import Settings

AGAIN_S = 60.0
"""How often a memory is tried that has not changed."""

BEAT_S = 1.0
"""How often the daemon looks whether its memory has changed."""

_GOES_ON = (
    "Lore has no memory at present: what agents ask their models passes on as it is."
    " It is tried again every minute."
)

_KINDS: Mapping[int, type[StoreError]] = {
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EACCES: StoreReadOnly,
    errno.EPERM: StoreReadOnly,
    errno.EROFS: StoreReadOnly,
}

Wait = Callable[[float], bool]
Mark = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A memory that could be opened after all, and the socket that was listened on meanwhile."""

    memory: Memory
    place: Place


def open_writable(settings: Settings) -> Memory:
    """Open a memory to work with it, or raise why that cannot be."""
    memory = Memory.open(config=settings)
    try:
        memory.require_writable()
    except BaseException as error:
        memory.close()
        path = settings.database
        may_write = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        if isinstance(error, StoreReadOnly) and may_write:
            msg = f"{path} is damaged."
            hint = "'lore doctor' says what can be saved; 'lore restore' takes a backup."
            raise StoreDamaged(msg, hint=hint) from error
        raise
    return memory


def find_trouble(error: LoreError | OSError, path: Path) -> LoreError:
    """Return what keeps a memory from being opened as one of Lore's own errors."""
    if isinstance(error, LoreError):
        return error
    msg = f"{path} cannot be opened: {error.strerror or type(error).__name__}."
    kind = _KINDS.get(error.errno or 0, StoreError)
    return kind(msg, hint="'lore doctor' says more.")


class Passing:
    """The daemon of a home whose memory cannot be opened."""

    def __init__(self, settings: Settings, why: LoreError) -> None:
        self._settings = settings
        self._why = why
        self._since = clock.now()
        self._server = ("", "")
        self._written: Status | None = None
        self._trying: threading.Thread | None = None
        self._opened: Memory | None = None
        self._tried = self._seen = mark_of(settings.database)
        self._tried_s = time.monotonic()

    def run(
        self,
        wait: Wait,
        is_in_place: Callable[[], bool],
        on_ready: Callable[[str], None],
    ) -> Recovered | None:
        """Pass on requests until the memory opens; None if it is time to stop."""
        try:
            place = take_place(self._settings)
        except DaemonError as error:
            raise self._why from error
        memory = closed_memory(replace(self._settings, gateway_memory=False))
        if self._settings.daily_budget is not None:
            memory.load_prices()
        doors = Doors(memory, self._tell_server, place=place, shut=lambda: self._why)
        doors.open()
        log.warning("passing without memory", extra={"error": type(self._why).__name__})
        self._tell()
        on_ready(f"{told(self._why)} {_GOES_ON}")
        try:
            while not wait(BEAT_S) and is_in_place():
                if self._opened is not None:
                    log.info("memory is back")
                    return Recovered(self._opened, place)
                self._try_again()
                self._tell()
        finally:
            doors.close()
        place.socket.close()
        self._write(replace(self._present(), running=False, state="stopped", server=""))
        return None

    def _try_again(self) -> None:
        """Begin to open the memory if it has changed and is at rest, or once in a while.

        In a thread, since a store that is locked keeps one waiting, and a signal must not.
        """
        if self._trying is not None and self._trying.is_alive():
            return
        if self._trying is not None:
            self._trying, self._tried = None, mark_of(self._settings.database)
        before, self._seen = self._seen, mark_of(self._settings.database)
        is_changed = self._tried != self._seen == before
        if is_changed or time.monotonic() - self._tried_s >= AGAIN_S:
            self._tried_s = time.monotonic()
            self._trying = threading.Thread(
                target=lambda: attempt(self._open), name="lore-opening", daemon=True
            )
            self._trying.start()

    def _open(self) -> None:
        try:
            self._opened = open_writable(self._settings)
        except (LoreError, OSError) as error:
            self._why = find_trouble(error, self._settings.database)

    def _tell_server(self, url: str, notice: str) -> None:
        self._server = (url, notice)

    def _present(self) -> Status:
        url, notice = self._server
        return Status(
            running=True,
            state=status.PASSING,
            pid=os.getpid(),
            since=self._since,
            version=__version__,
            last_error=told(self._why),
            last_error_at=self._since,
            notice=_GOES_ON,
            server=url,
            server_notice=notice,
        )

    def _tell(self) -> None:
        present = self._present()
        if present != self._written and self._write(present):
            self._written = present

    def _write(self, present: Status) -> bool:
        """Write the status; on a full disk the former one makes room for it."""
        home = self._settings.home
        present = replace(present, memory_mb=round(status.resident_mb(), 1))
        if status.write(home, present):
            return True
        status.remove(home)
        return status.write(home, present)


def mark_of(path: Path) -> Mark:
    """Return what changes when a database is put right: the file, or the room beside it."""
    try:
        found = path.stat()
        disk = os.statvfs(path.parent)
    except OSError as error:
        return (error.errno,)
    # Room is told roughly, by powers of two: on a disk in use it changes all the time.
    room = (disk.f_bavail * disk.f_frsize).bit_length()
    is_read_only = bool(disk.f_flag & os.ST_RDONLY)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, room, is_read_only)
