"""The database: readers on connections of their own, one writer thread with group commit."""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lore import clock
from lore.errors import StoreDamaged, StoreError, StoreReadOnly
from lore.store import migrations, sqlite
from lore.store.sqlite import Connection

__all__ = ["Connection", "Database", "open_database"]

T = TypeVar("T")

_GROUP = 256
"""Writes that share one commit at most."""

_CLOSE_S = 30.0

log = logging.getLogger("lore.store")


@dataclass(slots=True)
class _Write:
    work: Callable[[Connection], Any]
    key: str
    future: Future[Any] = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None


class Database:
    """One open database file; safe to use from many threads, beside other processes."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_s: float,
        read_only: bool = False,
        now: clock.Clock = clock.now,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.now = now
        self._busy_timeout_s = busy_timeout_s
        self._local = threading.local()
        self._readers: list[Connection] = []
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give this thread's connection; what is read inside belongs to one moment."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            self._local.connection = connection
            with self._lock:
                self._readers.append(connection)
        if connection.raw.in_transaction:
            yield connection
            return
        connection.rows("BEGIN")
        try:
            yield connection
        finally:
            with suppress(StoreError):
                connection.rows("COMMIT")

    def write(self, work: Callable[[Connection], T], *, key: str = "") -> T:
        """Run `work` in a write transaction and return its result once it is durable.

        A write with a key that was seen before returns the former result (which must then
        be JSON) and does nothing.
        """
        result: T = self.submit(work, key=key).result()
        return result

    def submit(self, work: Callable[[Connection], T], *, key: str = "") -> Future[T]:
        """Queue a write and return at once; the future is done when it is durable."""
        if self.read_only:
            msg = f"{self.path} is open for reading only."
            raise StoreReadOnly(msg, hint="'lore doctor' says why.")
        write = _Write(work, key)
        with self._lock:
            if self._closed:
                msg = "The memory is closed."
                raise StoreError(msg)
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._write_loop, name="lore-writer", daemon=True
                )
                self._writer.start()
            self._queue.put(write)
        return write.future

    def checkpoint(self) -> None:
        """Fold the log into the database and leave no trace of deleted rows in either."""
        with self._own_connection() as connection:
            sqlite.erase_traces(connection)

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy to a file while others go on reading and writing."""
        with self._own_connection() as connection:
            sqlite.copy_database(connection, target)

    def close(self) -> None:
        """Finish what is queued and close every connection."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            writer = self._writer
        if writer is not None:
            self._queue.put(None)
            writer.join(_CLOSE_S)
        with self._lock:
            for connection in self._readers:
                connection.close()
            self._readers.clear()

    def _connect(self) -> Connection:
        return sqlite.open_connection(
            self.path, busy_timeout_s=self._busy_timeout_s, read_only=self.read_only
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
                    connection = connection or self._connect()
                    self._run_group(connection, group)
                except StoreError as error:
                    for write in group:
                        write.error = write.error or error
                    connection = _drop(connection)
                self._deliver(group)
            if last:
                _drop(connection)
                return

    def _next_group(self) -> tuple[list[_Write], bool]:
        """Wait for a write and take those that queued up behind it; True at the end."""
        group: list[_Write] = []
        first = self._queue.get()
        if first is None:
            return group, True
        group.append(first)
        while len(group) < _GROUP:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return group, True
            group.append(following)
        return group, False

    def _run_group(self, connection: Connection, group: list[_Write]) -> None:
        connection.rows("BEGIN IMMEDIATE")
        try:
            for write in group:
                self._run_one(connection, write)
            connection.rows("COMMIT")
        finally:
            if connection.raw.in_transaction:
                with suppress(StoreError):
                    connection.rows("ROLLBACK")

    def _run_one(self, connection: Connection, write: _Write) -> None:
        """Run one write in its own savepoint, so that its failure is its own."""
        if write.key:
            seen = connection.find("SELECT result FROM receipts WHERE key = :key", key=write.key)
            if seen:
                write.result = json.loads(seen[0])
                return
        connection.rows("SAVEPOINT one")
        try:
            write.result = write.work(connection)
            if write.key:
                connection.run(
                    "INSERT INTO receipts (key, result, at) VALUES (:key, :result, :at)",
                    key=write.key,
                    result=json.dumps(write.result),
                    at=clock.to_us(self.now()),
                )
            connection.rows("RELEASE one")
        except Exception as error:  # noqa: BLE001 - handed to the caller, who is waiting for it
            write.error = error
            if not connection.raw.in_transaction:
                raise StoreError(str(error)) from error
            connection.rows("ROLLBACK TO one")
            connection.rows("RELEASE one")

    def _deliver(self, group: list[_Write]) -> None:
        for write in group:
            if write.error is not None:
                write.future.set_exception(write.error)
            else:
                write.future.set_result(write.result)


def open_database(
    path: Path,
    *,
    busy_timeout_s: float,
    backups: Path,
    read_only: bool = False,
    now: clock.Clock = clock.now,
) -> Database:
    """Open (or make) a database and bring its schema up to date.

    A damaged file is opened for reading only, so that what is left can be saved.
    """
    if not read_only:
        _make_folder(path.parent)
        read_only = _cannot_write(path)
    database = Database(path, busy_timeout_s=busy_timeout_s, read_only=read_only, now=now)
    try:
        if read_only:
            with database.read() as connection:
                migrations.check(connection)
        else:
            migrations.migrate(database, backups)
    except StoreDamaged:
        database.close()
        if read_only:
            raise
        log.warning("database damaged, opened for reading only", extra={"file": path.name})
        return open_database(
            path, busy_timeout_s=busy_timeout_s, backups=backups, read_only=True, now=now
        )
    except BaseException:
        database.close()
        raise
    return database


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        msg = f"The folder {folder} cannot be made: {error.strerror}."
        raise StoreReadOnly(msg, hint="LORE_HOME names another place.") from error


def _cannot_write(path: Path) -> bool:
    """Tell whether an existing database lies where this user may only read."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _drop(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(StoreError):
            connection.close()
