"""The database: readers on connections of their own, one writer thread with group commit."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from lore import clock
from lore.errors import StoreDamaged, StoreError, StoreFull, StoreReadOnly
from lore.store import files, migrations, sqlite, writing
from lore.store.sqlite import Connection
from lore.store.writing import Write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

__all__ = ["Connection", "Database", "open_database"]

T = TypeVar("T")

_GROUP = 256
"""Writes that share one commit at most."""

_PATIENCE_S = 1.0
"""A patient write waits so long for company: a commit costs more than what it says."""

_CLOSE_S = 30.0

_IDLE_READERS = 8
"""Connections kept open for the next reader."""

logging.getLogger("lore").addHandler(logging.NullHandler())
log = logging.getLogger("lore.store")


class Database:
    """One open database file; safe to use from many threads, beside other processes."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_s: float,
        read_only: bool = False,
        full: bool = False,
        now: clock.Clock = clock.now,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.full = full
        self.now = now
        self._busy_timeout_s = busy_timeout_s
        self._local = threading.local()
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection of this thread's own; what is read inside belongs to one moment."""
        inner: Connection | None = getattr(self._local, "connection", None)
        if inner is not None:
            yield inner
            return
        connection = self._take_reader()
        try:
            connection.rows("BEGIN")
            self._local.connection = connection
            yield connection
        finally:
            self._local.connection = None
            self._give_back(connection)

    def _take_reader(self) -> Connection:
        with self._lock:
            self._require_open()
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: Connection) -> None:
        """Keep a connection for the next reader, unless there are enough or it failed."""
        with suppress(StoreError):
            if connection.in_transaction:
                connection.rows("COMMIT")
            with self._lock:
                if not self._closed and len(self._idle) < _IDLE_READERS:
                    self._idle.append(connection)
                    return
        _drop(connection)

    def _require_open(self) -> None:
        if self._process != os.getpid():
            msg = "This memory was opened before the process was forked."
            raise StoreError(msg, hint="Open a memory of its own in each process.")
        if self._closed:
            msg = "The memory is closed."
            raise StoreError(msg)

    def write(self, work: Callable[[Connection], T], *, key: str = "") -> T:
        """Run `work` in a write transaction and return its result once it is durable.

        A write with a key that was seen before returns the former result (which must then
        be JSON) and does nothing.
        """
        result: T = self.submit(work, key=key).result()
        return result

    def submit(
        self, work: Callable[[Connection], T], *, key: str = "", patient: bool = False
    ) -> Future[T]:
        """Queue a write and return at once; the future is done when it is durable.

        A patient write waits a moment for others to share its commit with.
        """
        if self.full:
            raise files.full(self.path)
        if self.read_only:
            msg = f"{self.path} is open for reading only."
            raise StoreReadOnly(msg, hint="'lore doctor' says why.")
        write = Write(work, key, patient)
        with self._lock:
            self._require_open()
            if self._writer is threading.current_thread():
                msg = "A write cannot wait for another write."
                raise StoreError(msg)
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._write_loop, name="lore-writer", daemon=True
                )
                self._writer.start()
            self._queue.put(write)
        return write.future

    def checkpoint(self) -> None:
        """Fold the log into the database file."""
        with self._own_connection() as connection:
            sqlite.empty_log(connection)

    def erase_traces(self) -> None:
        """Leave no trace of deleted rows in the file and its log; writes the file anew."""
        with self._own_connection() as connection:
            sqlite.erase_traces(connection)

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy to a file while others go on reading and writing."""
        with self._own_connection() as connection:
            sqlite.copy_database(connection, target)

    def close(self) -> None:
        """Finish what is queued and close every connection; those in use close after it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            writer = self._writer
        if writer is not None:
            self._queue.put(None)
            writer.join(_CLOSE_S)
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            _drop(connection)

    def _connect(self, cache_kib: int = sqlite.READER_KIB) -> Connection:
        return sqlite.open_connection(
            self.path,
            busy_timeout_s=self._busy_timeout_s,
            read_only=self.read_only,
            cache_kib=cache_kib,
        )

    @contextmanager
    def _own_connection(self) -> Iterator[Connection]:
        connection = self._connect()
        try:
            yield connection
        finally:
            connection.close()

    def _write_loop(self) -> None:
        connection: Connection | None = None
        while True:
            group, last = self._next_group()
            if group:
                try:
                    connection = connection or self._connect(sqlite.WRITER_KIB)
                    writing.run_group(connection, group, self.now)
                except BaseException as error:  # noqa: BLE001 - callers wait for each of these
                    writing.fail_group(group, error)
                    _drop(connection)
                    connection = None
                for write in group:
                    write.deliver()
            if last:
                _drop(connection)
                return

    def _next_group(self) -> tuple[list[Write], bool]:
        """Wait for a write and take those that queued up behind it; True at the end."""
        group: list[Write] = []
        following = self._queue.get()
        until = time.monotonic() + _PATIENCE_S
        while following is not None:
            if following.future.set_running_or_notify_cancel():
                group.append(following)
            if len(group) >= _GROUP:
                return group, False
            wait_s = until - time.monotonic() if all(write.patient for write in group) else 0
            try:
                following = self._queue.get(block=wait_s > 0, timeout=max(wait_s, 0))
            except queue.Empty:
                return group, False
        return group, True


def open_database(
    path: Path,
    *,
    busy_timeout_s: float,
    backups: Path | None,
    read_only: bool = False,
    full: bool = False,
    now: clock.Clock = clock.now,
) -> Database:
    """Open (or make) a database and bring its schema up to date, after a copy to `backups`.

    A damaged file, or one on a full disk, is opened for reading only: what is there can be read
    and saved. A file that is not Lore's, or of a newer Lore, is not touched.
    """
    if not read_only:
        files.make_folder(path.parent)
        read_only = _cannot_write(path)
    database = Database(
        path, busy_timeout_s=busy_timeout_s, read_only=read_only, full=full, now=now
    )
    try:
        if read_only or _has_content(path):
            _check_schema(path, busy_timeout_s)
        if not read_only:
            migrations.migrate(database, backups)
            _warn_if_shared(path)
    except (StoreDamaged, StoreFull) as error:
        database.close()
        if read_only or not _has_content(path):
            raise
        full = isinstance(error, StoreFull)
        reason = "no space left" if full else "database damaged"
        log.warning("opened for reading only", extra={"reason": reason})
        return open_database(
            path, busy_timeout_s=busy_timeout_s, backups=backups, read_only=True, full=full, now=now
        )
    except BaseException:
        database.close()
        raise
    return database


def _has_content(path: Path) -> bool:
    """Tell whether there is a file with something in it; one of no bytes is like none."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _check_schema(path: Path, busy_timeout_s: float) -> None:
    """Refuse a file that this Lore must not touch, before anything is changed in it."""
    connection = sqlite.open_connection(path, busy_timeout_s=busy_timeout_s, read_only=True)
    try:
        migrations.check(connection)
    finally:
        _drop(connection)


def _warn_if_shared(path: Path) -> None:
    shared = files.shared_file_system(path)
    if shared:
        log.warning("shared file system, slower journal", extra={"file_system": shared})


def _cannot_write(path: Path) -> bool:
    """Tell whether an existing database lies where this user may only read."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _drop(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(StoreError):
            connection.close()
