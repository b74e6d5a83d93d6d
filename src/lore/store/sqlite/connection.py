"""Connections to a SQLite file: opening it, its settings, running statements."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import apsw

from lore.errors import InvalidInput, LoreError, StoreError, StoreReadOnly
from lore.store.files import has_space, make_private, shared_file_system
from lore.store.sqlite.failures import damaged, symbolic_link, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

Row = tuple[Any, ...]

OLDEST_LIBRARY = (3, 51, 3)
"""Older SQLite can corrupt a WAL file that several connections write and checkpoint."""

WRITER_KIB, READER_KIB = 16_384, 4_096
"""Caches of pages. There are several readers, and the system has the pages too: with 16 MB a recall
among 100,000 messages took no less time than with 4."""

_MMAP_BYTES = 0
_STEP_S = 0.001
_STATEMENTS = 500
"""Prepared statements are kept for so many uses. Each row of `run_many` is one: with apsw's own
100, the messages of a short file drove out all others, and each had to be compiled anew."""

PATIENT_RETRY_S = 0.02
"""So long between two tries where SQLite does not wait by itself."""

_LOG_BYTES = 1 << 26
"""The log is cut back to so much after a transaction that made it longer."""

_UNFIT = (UnicodeError, OverflowError)
"""What apsw raises for half a surrogate pair, a number beyond 64 bits, or stored garbage."""


class Connection:
    """One connection; every method translates SQLite's errors into Lore's."""

    __slots__ = ("path", "raw", "read_only")

    def __init__(self, raw: apsw.Connection, path: Path, *, read_only: bool) -> None:
        self.raw = raw
        self.path = path
        self.read_only = read_only

    def rows(self, sql: str, /, **params: Any) -> list[Row]:
        """Run a statement and return all its rows."""
        try:
            return self.raw.execute(sql, params).fetchall()
        except (apsw.Error, *_UNFIT) as error:
            raise self._translated(error) from error

    def find(self, sql: str, /, **params: Any) -> Row | None:
        """Run a statement and return its first row, or None."""
        rows = self.rows(sql, **params)
        return rows[0] if rows else None

    def value(self, sql: str, /, **params: Any) -> Any:
        """Run a statement and return the first value of its first row, or None."""
        row = self.find(sql, **params)
        return row[0] if row else None

    def run(self, sql: str, /, **params: Any) -> int:
        """Run a statement and return how many rows it changed."""
        self.rows(sql, **params)
        return self.raw.changes()

    def run_many(self, sql: str, values: Iterable[Mapping[str, Any] | Row]) -> None:
        """Run a statement once for each set of values, by name or in the order of the names."""
        try:
            self.raw.executemany(sql, values)
        except (apsw.Error, *_UNFIT) as error:
            raise self._translated(error) from error

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction is open; SQLite ends it itself when the disk fails."""
        return self.raw.in_transaction

    def begin_write(self) -> None:
        """Begin a transaction that writes: it waits for its turn now, not at its first write."""
        self.rows("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the connection."""
        try:
            self.raw.close(force=True)
        except apsw.Error as error:
            raise translated(error, self.path) from error

    def _translated(self, error: Exception) -> LoreError:
        if isinstance(error, UnicodeDecodeError):
            return damaged(error, self.path, 0)
        if not isinstance(error, apsw.Error):
            return InvalidInput(f"A value cannot be stored: {error}")
        closed = isinstance(error, apsw.ConnectionClosedError)
        return translated(error, self.path, 0 if closed else self.raw.system_errno)


def check_library(version: str = apsw.sqlite_lib_version()) -> None:
    """Refuse a SQLite library that is known to corrupt files in Lore's way of use."""
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_LIBRARY:
        oldest = ".".join(map(str, OLDEST_LIBRARY))
        msg = f"SQLite {version} can corrupt a database that several processes write."
        raise StoreError(msg, hint=f"Install an apsw that carries SQLite {oldest} or newer.")


def describe_library() -> str:
    """Return the versions of the library and what it carries."""
    return f"apsw {apsw.apsw_version()}, SQLite {apsw.sqlite_lib_version()}"


def open_connection(
    path: Path,
    *,
    busy_timeout_s: float,
    read_only: bool,
    vfs: str = "",
    cache_kib: int = READER_KIB,
) -> Connection:
    """Open a database file with the settings that Lore relies on.

    A VFS that is named has no shared memory, so its connection has the file to itself.
    """
    check_library()
    raw: apsw.Connection | None = None
    try:
        wait = _waiting(busy_timeout_s)
        raw = _open_read_only(path, wait) if read_only else _open_writable(path, vfs)
        raw.set_busy_handler(wait)
        # Else a statement on a table with a partial index is compiled anew for every value bound
        # to it, which took most of its time; none here needs its values to choose its index.
        raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        own = (f"cache_size = -{cache_kib}", *(("locking_mode = EXCLUSIVE",) if vfs else ()))
        for pragma in (*own, *_PRAGMAS):
            raw.execute(f"PRAGMA {pragma}").fetchall()
        if not read_only:
            _set_journal(raw, path, busy_timeout_s)
    except apsw.Error as error:
        number = 0
        if raw is not None:
            number = raw.system_errno
            raw.close(force=True)
        raise translated(error, path, number) from error
    return Connection(raw, path, read_only=read_only)


_PRAGMAS = (
    "foreign_keys = ON",
    "secure_delete = ON",
    f"mmap_size = {_MMAP_BYTES}",
    f"journal_size_limit = {_LOG_BYTES}",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
)


def _open_writable(path: Path, vfs: str) -> apsw.Connection:
    """Open for writing; a file that is new belongs to its owner alone from the first moment."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW
    make_private(path)
    return apsw.Connection(
        str(path.parent.resolve() / path.name),
        flags=flags,
        vfs=vfs or None,
        statementcachesize=_STATEMENTS,
    )


def _waiting(patience_s: float) -> Callable[[int], bool]:
    """Return a busy handler that tries again in short, uneven steps until patience ends.

    SQLite's own waits grow to 0.1 s, and who came late overtakes: with eight writers these
    halve the longest wait (p99 231 to 111 ms on a shared machine) at the same throughput.
    """
    until = 0.0

    def wait(tries: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if tries == 0:
            until = now + patience_s
        if now >= until:
            return False
        time.sleep(_STEP_S * (2 + (os.getpid() + 3 * tries) % 7))
        return True

    return wait


def _open_read_only(path: Path, wait: Callable[[int], bool]) -> apsw.Connection:
    """Open for reading; in a folder that cannot be written, without shared memory."""
    if path.is_symlink():
        raise symbolic_link(path)
    if not path.exists():
        msg = f"There is no database at {path}."
        raise StoreReadOnly(msg)
    raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    raw.set_busy_handler(wait)
    try:
        raw.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError, apsw.ReadOnlyError) as error:
        raw.close()
        if os.access(path.parent, os.W_OK) and has_space(path):
            raise
        log_file = path.with_name(f"{path.name}-wal")
        if log_file.exists() and log_file.stat().st_size:
            msg = f"{path} has a log that cannot be read where nothing can be written."
            hint = "Copy the folder to a place that you may write, and open it there."
            raise StoreReadOnly(msg, hint=hint) from error
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        raw = apsw.Connection(f"{path.resolve().as_uri()}?immutable=1", flags=flags)
    return raw


def _set_journal(raw: apsw.Connection, path: Path, busy_timeout_s: float) -> None:
    """Set WAL, or a rollback journal where WAL is not safe; the switch has no busy handler."""
    mode = "delete" if shared_file_system(path) else "wal"
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            raw.execute(f"PRAGMA journal_mode = {mode}").fetchall()
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PATIENT_RETRY_S)
    raw.execute("PRAGMA synchronous = FULL").fetchall()
