"""Degraded mode: if the memory cannot be opened, agents still reach their models.

The server forwards requests to models and answers every other route with the error. The daemon
retries opening the memory until that works.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from lore import __version__, clock
from lore.daemon import status_file
from lore.daemon.http_server import BoundSocket, HttpServer, bind_socket
from lore.daemon.periodic_tasks import attempt, log
from lore.daemon.status_file import Status
from lore.errors import (
    DaemonError,
    LoreError,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    describe_error,
)
from lore.memory import Memory
from lore.memory.facade import closed_memory
from lore.settings import Settings

RETRY_S = 60.0
"""How often opening an unchanged database is retried."""

POLL_S = 1.0
"""How often the daemon checks whether the database changed."""

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
FileState = tuple[object, ...]


def open_writable(settings: Settings) -> Memory:
    """Open the memory for writing, or raise the reason why that is impossible."""
    memory = Memory.open(config=settings)
    try:
        memory.maintenance.require_writable()
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


def open_error(error: LoreError | OSError, path: Path) -> LoreError:
    """Return the error that keeps a memory from being opened."""
    if isinstance(error, LoreError):
        return error
    msg = f"{path} cannot be opened: {error.strerror or type(error).__name__}."
    kind = _KINDS.get(error.errno or 0, StoreError)
    return kind(msg, hint="'lore doctor' says more.")


class DegradedServer:
    """The daemon of a home whose memory cannot be opened."""

    def __init__(self, settings: Settings, why: LoreError) -> None:
        self._settings = settings
        self._why = why
        self._since = clock.now()
        self._server = ("", "")
        self._written: Status | None = None
        self._trying: threading.Thread | None = None
        self._opened: Memory | None = None
        self._tried = self._seen = file_state(settings.database)
        self._tried_s = time.monotonic()

    def run(
        self,
        wait: Wait,
        is_in_place: Callable[[], bool],
        on_ready: Callable[[str], None],
    ) -> tuple[Memory, BoundSocket] | None:
        """Forward requests until the memory opens; return None when asked to stop.

        The result is the memory, and the socket that this server used.
        """
        try:
            place = bind_socket(self._settings)
        except DaemonError as error:
            raise self._why from error
        memory = closed_memory(replace(self._settings, gateway_memory=False))
        if self._settings.daily_budget is not None:
            memory.budget.load_prices()
        server = HttpServer(memory, self._tell_server, place=place, shut=lambda: self._why)
        server.open()
        log.warning("passing without memory", extra={"error": type(self._why).__name__})
        self._tell()
        on_ready(f"{describe_error(self._why)} {_GOES_ON}")
        try:
            while not wait(POLL_S) and is_in_place():
                if self._opened is not None:
                    log.info("memory is back")
                    return self._opened, place
                self._try_again()
                self._tell()
        finally:
            server.close()
        place.socket.close()
        self._write(replace(self._present(), running=False, state="stopped", server=""))
        return None

    def _try_again(self) -> None:
        """Start opening the memory if the database changed and is at rest, or now and then.

        This runs in a thread: a locked database blocks, and signals must still be handled.
        """
        if self._trying is not None and self._trying.is_alive():
            return
        if self._trying is not None:
            self._trying, self._tried = None, file_state(self._settings.database)
        before, self._seen = self._seen, file_state(self._settings.database)
        is_changed = self._tried != self._seen == before
        if is_changed or time.monotonic() - self._tried_s >= RETRY_S:
            self._tried_s = time.monotonic()
            self._trying = threading.Thread(
                target=lambda: attempt(self._open), name="lore-opening", daemon=True
            )
            self._trying.start()

    def _open(self) -> None:
        try:
            self._opened = open_writable(self._settings)
        except (LoreError, OSError) as error:
            self._why = open_error(error, self._settings.database)

    def _tell_server(self, url: str, notice: str) -> None:
        self._server = (url, notice)

    def _present(self) -> Status:
        url, notice = self._server
        return Status(
            running=True,
            state=status_file.PASSING,
            pid=os.getpid(),
            since=self._since,
            version=__version__,
            last_error=describe_error(self._why),
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
        """Write the status file; on a full disk, delete the former one first."""
        home = self._settings.home
        present = replace(present, memory_mb=round(status_file.resident_mb(), 1))
        if status_file.write(home, present):
            return True
        status_file.remove(home)
        return status_file.write(home, present)


def file_state(path: Path) -> FileState:
    """Return the values that change when a database is repaired: file and disk properties."""
    try:
        file = path.stat()
        disk = os.statvfs(path.parent)
    except OSError as error:
        return (error.errno,)
    # Free space counts by powers of two, because it changes all the time on a disk in use.
    room = (disk.f_bavail * disk.f_frsize).bit_length()
    is_read_only = bool(disk.f_flag & os.ST_RDONLY)
    return (file.st_ino, file.st_size, file.st_mtime_ns, file.st_mode, room, is_read_only)
