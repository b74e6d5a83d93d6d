"""Connections to a SQLite file: opening, settings, statements, SQL dialect, and errors."""

from __future__ import annotations

import os
import time
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import numpy as np

from lore.errors import InvalidInput, LoreError, StoreBusy, StoreDamaged, StoreError, StoreReadOnly
from lore.store.files import FULL_DISK, disk_full_error, has_space, make_private, shared_file_system

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

T = TypeVar("T")


def translate_error(error: apsw.Error, path: Path, number: int = 0) -> StoreError:
    """Translate an error of SQLite into one of Lore; the only place that does so.

    `number` is the system's error number, where it is known.
    """
    for kind, make in _TRANSLATIONS:
        if isinstance(error, kind):
            return make(error, path, number)
    return StoreError(f"SQLite reported an error: {error}")


def _busy(_error: apsw.Error, path: Path, _number: int) -> StoreError:
    return StoreBusy(
        f"Timed out: another process has been writing to {path} for too long.",
        hint="Try again; the setting 'store.busy_timeout_s' is the timeout.",
    )


def _full(_error: apsw.Error, path: Path, _number: int) -> StoreError:
    return disk_full_error(path)


def _read_only(_error: apsw.Error, path: Path, _number: int) -> StoreError:
    return StoreReadOnly(
        f"{path} cannot be written.", hint="Check owner and permissions of the folder."
    )


def damaged_error(error: Exception, path: Path, _number: int) -> StoreError:
    """Return the error for a damaged file."""
    return StoreDamaged(
        f"{path} is damaged or not a database: {error}",
        hint="Run 'lore doctor' to see what can be saved, or 'lore restore' to use a backup.",
    )


def _cannot_open(error: apsw.Error, path: Path, number: int) -> StoreError:
    if path.is_symlink():
        return symlink_error(path)
    if path.is_dir():
        return StoreError(f"{path} is a folder, not a database.")
    return _read_only(error, path, number)


def symlink_error(path: Path) -> StoreError:
    """Return the error for a symbolic link."""
    return StoreError(f"{path} is a symbolic link; Lore does not follow it.")


def _io(error: apsw.Error, path: Path, number: int) -> StoreError:
    if number in FULL_DISK or not has_space(path):
        return _full(error, path, number)
    return StoreError(
        f"The disk failed while using {path}: {error}",
        hint="The last write may or may not be stored; repeating it is safe.",
    )


def _closed(_error: apsw.Error, _path: Path, _number: int) -> StoreError:
    return StoreError("The memory is closed.")


_TRANSLATIONS = (
    (apsw.BusyError, _busy),
    (apsw.LockedError, _busy),
    (apsw.ProtocolError, _busy),
    (apsw.FullError, _full),
    (apsw.ReadOnlyError, _read_only),
    (apsw.CantOpenError, _cannot_open),
    (apsw.PermissionsError, _read_only),
    (apsw.AuthError, _read_only),
    (apsw.CorruptError, damaged_error),
    (apsw.NotADBError, damaged_error),
    (apsw.ConnectionClosedError, _closed),
    (apsw.IOError, _io),
)


Row = tuple[Any, ...]

OLDEST_LIBRARY = (3, 51, 3)
"""Older SQLite can corrupt a WAL file that several connections write and checkpoint."""

WRITER_KIB, READER_KIB = 16_384, 4_096
"""Page caches.

16 MB for readers made recall over 100,000 messages no faster than 4 MB: the system caches the pages
as well.
"""

_MMAP_BYTES = 0
_BUSY_STEP_S = 0.001
_JOURNAL_TRIES = 20
"""A live writer would have to seem dead as often."""

_STATEMENT_CACHE = 500
"""Size of the cache of prepared statements.

Each row of `run_many` uses an entry; with apsw's default of 100 the messages of a short file
evicted all others.
"""

RETRY_DELAY_S = 0.02
"""Delay between two attempts where SQLite has no busy timeout."""

_MAX_WAL_BYTES = 1 << 26
"""The write-ahead log is truncated to this size after a larger transaction."""

_UNSTORABLE = (UnicodeError, OverflowError)
"""Errors of apsw for lone surrogates, integers beyond 64 bits, and undecodable text."""


class Connection:
    """One connection; every method translates SQLite's errors into Lore's."""

    __slots__ = ("_snapshot", "path", "raw", "read_only")

    def __init__(self, raw: apsw.Connection, path: Path, *, read_only: bool) -> None:
        self.raw = raw
        self.path = path
        self.read_only = read_only
        self._snapshot: dict[Hashable, Any] | None = None

    def begin_snapshot(self) -> None:
        """Begin a read transaction: until `end_snapshot`, everything read is of one moment."""
        self.rows("BEGIN")
        self._snapshot = {}

    def end_snapshot(self) -> None:
        """End a read transaction, unless SQLite ended it, and forget what `once` computed."""
        self._snapshot = None
        if self.in_transaction:
            self.rows("COMMIT")

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a value that is computed once in a snapshot, and at each call outside of one."""
        if self._snapshot is None:
            return compute()
        if key not in self._snapshot:
            self._snapshot[key] = compute()
        value: T = self._snapshot[key]
        return value

    def rows(self, sql: str, /, **params: Any) -> list[Row]:
        """Run a statement and return all its rows."""
        try:
            return _run(self.raw, sql, params)
        except (apsw.Error, *_UNSTORABLE) as error:
            raise self._translated(error) from error

    def find(self, sql: str, /, **params: Any) -> Row | None:
        """Run a statement and return its first row, or None."""
        rows = self.rows(sql, **params)
        return rows[0] if rows else None

    def value(self, sql: str, /, **params: Any) -> Any:
        """Run a statement and return the first value of its first row, or None."""
        row = self.find(sql, **params)
        return row[0] if row else None

    def number(self, sql: str, /, **params: Any) -> int | None:
        """Run a statement and return the first value of its first row as a number, or None."""
        value = self.value(sql, **params)
        return None if value is None else int(value)

    def column(self, sql: str, /, **params: Any) -> list[Any]:
        """Run a statement and return the first value of each of its rows."""
        return [row[0] for row in self.rows(sql, **params)]

    def run(self, sql: str, /, **params: Any) -> int:
        """Run a statement and return how many rows it changed."""
        self.rows(sql, **params)
        return self.raw.changes()

    def insert(self, table: str, /, **values: Any) -> None:
        """Insert a row."""
        self.rows(_insert_sql(table, tuple(values)), **values)

    def insert_unless_exists(self, table: str, /, **values: Any) -> bool:
        """Insert a row unless one with the same key exists; return whether it is new."""
        sql = _insert_sql(table, tuple(values))
        return bool(self.run(f"{sql} ON CONFLICT DO NOTHING", **values))

    def insert_numbered(self, table: str, /, **values: Any) -> int:
        """Insert a row and return its number `n`."""
        return int(self.value(f"{_insert_sql(table, tuple(values))} RETURNING n", **values))

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert rows of values, each in the order of the columns."""
        self.run_many(_insert_sql(table, tuple(columns)), rows)

    def upsert(self, table: str, key: Sequence[str], /, **values: Any) -> None:
        """Insert a row, or replace all values of the row with the same key."""
        self.run(_upsert_sql(table, tuple(key), tuple(values)), **values)

    def update(self, table: str, n: int, /, **values: Any) -> int:
        """Set values of the row with a number; return how many rows that were."""
        assignments = ", ".join(f"{name} = :{name}" for name in values)
        return self.run(f"UPDATE {table} SET {assignments} WHERE n = :n", n=n, **values)

    def run_many(self, sql: str, values: Iterable[Mapping[str, Any] | Row]) -> None:
        """Run a statement once for each set of values, given by name or in order of the names."""
        try:
            self.raw.executemany(sql, values)
        except (apsw.Error, *_UNSTORABLE) as error:
            raise self._translated(error) from error

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; SQLite rolls it back itself when the disk fails."""
        return self.raw.in_transaction

    def begin_write(self) -> None:
        """Begin a write transaction: wait for the lock now, not at the first write."""
        self.rows("BEGIN IMMEDIATE")

    def release_memory(self) -> None:
        """Free the page cache."""
        self.raw.release_memory()

    def close(self) -> None:
        """Close the connection."""
        try:
            self.raw.close(force=True)
        except apsw.Error as error:
            raise translate_error(error, self.path) from error

    def _translated(self, error: Exception) -> LoreError:
        if isinstance(error, UnicodeDecodeError):
            return damaged_error(error, self.path, 0)
        if not isinstance(error, apsw.Error):
            return InvalidInput(f"A value cannot be stored: {error}")
        closed = isinstance(error, apsw.ConnectionClosedError)
        return translate_error(error, self.path, 0 if closed else self.raw.system_errno)


@cache
def _insert_sql(table: str, names: tuple[str, ...]) -> str:
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"


@cache
def _upsert_sql(table: str, key: tuple[str, ...], names: tuple[str, ...]) -> str:
    renewed = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    conflict = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {renewed}"
    return f"{_insert_sql(table, names)} {conflict}"


def check_library(version: str = apsw.sqlite_lib_version()) -> None:
    """Refuse a SQLite library that can corrupt files with several writers."""
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_LIBRARY:
        oldest = ".".join(map(str, OLDEST_LIBRARY))
        msg = f"SQLite {version} can corrupt a database that several processes write."
        raise StoreError(msg, hint=f"Install an apsw that carries SQLite {oldest} or newer.")


def describe_library() -> str:
    """Return the versions of apsw and SQLite."""
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

    A named VFS has no shared memory, so its connection locks the file exclusively.
    """
    check_library()
    raw: apsw.Connection | None = None
    try:
        wait = _busy_handler(busy_timeout_s)
        raw = _open_read_only(path, wait) if read_only else _open_writable(path, vfs)
        raw.set_busy_handler(wait)
        # Otherwise a statement on a table with a partial index is compiled again for every bound
        # value, which took most of its time.
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
        raise translate_error(error, path, number) from error
    return Connection(raw, path, read_only=read_only)


_PRAGMAS = (
    "foreign_keys = ON",
    "secure_delete = ON",
    f"mmap_size = {_MMAP_BYTES}",
    f"journal_size_limit = {_MAX_WAL_BYTES}",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
)


def _open_writable(path: Path, vfs: str) -> apsw.Connection:
    """Open for writing; a new file is private to its owner from creation."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW
    make_private(path)
    return apsw.Connection(
        str(path.parent.resolve() / path.name),
        flags=flags,
        vfs=vfs or None,
        statementcachesize=_STATEMENT_CACHE,
    )


def _busy_handler(patience_s: float) -> Callable[[int], bool]:
    """Return a busy handler that retries in short, uneven steps until a timeout.

    SQLite's own delays grow to 0.1 s, and late writers overtake: with eight writers this halves the
    longest wait (p99 231 to 111 ms on a shared machine) at the same throughput.
    """
    until = 0.0

    def wait(tries: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if tries == 0:
            until = now + patience_s
        if now >= until:
            return False
        time.sleep(_BUSY_STEP_S * (2 + (os.getpid() + 3 * tries) % 7))
        return True

    return wait


def _open_read_only(path: Path, wait: Callable[[int], bool]) -> apsw.Connection:
    """Open read-only; in a folder that cannot be written, without shared memory."""
    if path.is_symlink():
        raise symlink_error(path)
    if not path.exists():
        msg = f"There is no database at {path}."
        raise StoreReadOnly(msg)
    raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    raw.set_busy_handler(wait)
    try:
        _run(raw, _FIRST_READ, {})
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError, apsw.ReadOnlyError) as error:
        raw.close()
        if os.access(path.parent, os.W_OK) and has_space(path):
            raise
        left_over = (path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-journal"))
        if any(file.exists() and file.stat().st_size for file in left_over):
            msg = f"{path} has a write-ahead log that cannot be read in a read-only folder."
            hint = "Copy the folder to a writable place and open it there."
            raise StoreReadOnly(msg, hint=hint) from error
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        raw = apsw.Connection(f"{path.resolve().as_uri()}?immutable=1", flags=flags)
    return raw


_FIRST_READ = "SELECT count(*) FROM sqlite_schema"


def _extended_code(error: apsw.Error) -> int:
    return int(getattr(error, "extendedresult", 0))


def _run(raw: apsw.Connection, sql: str, params: Mapping[str, Any]) -> list[Row]:
    """Run a statement, a few times if it cannot read because of a journal to roll back.

    A reader looks for a journal, and then whether its writer lives. A writer that ends between the
    two, such as one that sets WAL mode for a new file, seems to have died.
    """
    for _ in range(_JOURNAL_TRIES):
        try:
            return raw.execute(sql, params).fetchall()
        except apsw.ReadOnlyError as error:
            if _extended_code(error) != apsw.SQLITE_READONLY_ROLLBACK:
                raise
            time.sleep(_BUSY_STEP_S)
    return raw.execute(sql, params).fetchall()


def roll_back(path: Path, busy_timeout_s: float) -> None:
    """Roll back what a killed process left half done; a read-only connection must not do that.

    With WAL this happens only to a new file, and on shared file systems to any.
    """
    journal = path.with_name(f"{path.name}-journal")
    if path.is_symlink() or not journal.exists() or not journal.stat().st_size:
        return
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as raw:
            raw.set_busy_handler(_busy_handler(busy_timeout_s))
            raw.execute(_FIRST_READ).fetchall()
    except apsw.Error as error:
        raise translate_error(error, path) from error


def _set_journal(raw: apsw.Connection, path: Path, busy_timeout_s: float) -> None:
    """Set WAL mode, or a rollback journal where WAL is unsafe; the switch has no busy handler."""
    mode = "delete" if shared_file_system(path) else "wal"
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            raw.execute(f"PRAGMA journal_mode = {mode}").fetchall()
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_DELAY_S)
    raw.execute("PRAGMA synchronous = FULL").fetchall()


ROW_NUMBER = "INTEGER PRIMARY KEY"
"""The type of a column that numbers its rows."""

AUTOINCREMENT = "INTEGER PRIMARY KEY AUTOINCREMENT"
"""The type of a column that numbers its rows and never reuses a number."""

ID = "BLOB"
"""The type of a column that stores an id of 36 characters in 16 bytes."""

_NO_ROW = (-1,)
"""Matches no row: rows count from 1, and SQLite does not bind an empty array."""


def bound_values(name: str) -> str:
    """Return the query for the values bound to `name`."""
    return f"SELECT value FROM carray(:{name})"


def among(column: str, name: str) -> str:
    """Return the condition that a column is one of the values bound to `name`."""
    return f"{column} IN ({bound_values(name)})"


def json_list_overlaps(column: str, name: str) -> str:
    """Return the condition that a JSON list contains one of the texts bound to `name`."""
    one_of = among("held.value", name)
    return f"EXISTS (SELECT 1 FROM json_each({column}) AS held WHERE {one_of})"


def int_array(values: Sequence[int] | NDArray[np.int64]) -> Any:
    """Return numbers as an array to bind for `among`; an empty one matches no row."""
    return apsw.carray(np.ascontiguousarray(values if len(values) else _NO_ROW, dtype=np.int64))


def text_array(values: Sequence[str]) -> Any:
    """Return texts as an array to bind for `among`; it must not be empty."""
    return apsw.carray(tuple(values))


def id_blob(text: str) -> str:
    """Return the SQL for the stored form of an id, from an expression for its text."""
    return f"unhex({text}, '-')"


def id_text(column: str) -> str:
    """Return the SQL for the text of an id, from its column; NULL stays NULL."""
    pieces = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    text = " || '-' || ".join(f"substr(hex({column}), {at}, {size})" for at, size in pieces)
    return f"CASE WHEN {column} IS NOT NULL THEN lower({text}) END"


def json_field(column: str, name: str) -> str:
    """Return the SQL for one field of a column with a JSON object."""
    return f"json_extract({column}, '$.{name}')"


def next_number(db: Connection, table: str) -> int:
    """Return the number of the next row of an AUTOINCREMENT table, as of this transaction."""
    last = db.value("SELECT seq FROM sqlite_sequence WHERE name = :table", table=table)
    return int(last or 0) + 1


def set_next_number(db: Connection, table: str, number: int) -> None:
    """Set the number of the next row of an AUTOINCREMENT table."""
    db.run("DELETE FROM sqlite_sequence WHERE name = :table", table=table)
    db.insert("sqlite_sequence", name=table, seq=number - 1)


def has_table(db: Connection, name: str) -> bool:
    """Return whether the database has a table of this name."""
    return db.find("SELECT 1 FROM sqlite_schema WHERE name = :name", name=name) is not None


def is_empty_database(db: Connection) -> bool:
    """Return whether the database has no tables."""
    return db.find("SELECT 1 FROM sqlite_schema LIMIT 1") is None
