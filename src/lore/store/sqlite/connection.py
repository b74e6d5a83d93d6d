"""Connections to a SQLite file: opening, settings, statements, SQL dialect, and errors."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar

import apsw

from lore.errors import InvalidInput, LoreError, StoreBusy, StoreDamaged, StoreError, StoreReadOnly
from lore.store.files import FULL_DISK, disk_full_error, has_space, make_private, shared_file_system
from lore.store.sql_connection import BoundArray, Connection, FullText, Row, newer_schema_error
from lore.store.sqlite import full_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path


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


class SqliteConnection(Connection):
    """One connection to a SQLite file; every method translates SQLite's errors into Lore's."""

    __slots__ = ("_program_steps", "raw")

    words: ClassVar[FullText] = full_text

    def __init__(
        self, raw: apsw.Connection, path: Path, *, read_only: bool, program_steps: int | None = None
    ) -> None:
        """Use a connection; `program_steps` are the migrations that this program knows."""
        super().__init__(path, read_only=read_only)
        self.raw = raw
        self._program_steps = program_steps
        raw.convert_binding = _bind_array

    def _begin_read(self) -> None:
        self.rows("BEGIN")
        self._require_program()

    def rows(self, sql: str, /, **params: Any) -> list[Row]:
        """Run a statement and return all its rows."""
        try:
            return _run(self.raw, sql, params)
        except (apsw.Error, *_UNSTORABLE) as error:
            raise self._translated(error) from error

    def run(self, sql: str, /, **params: Any) -> int:
        """Run a statement and return how many rows it changed."""
        self.rows(sql, **params)
        return self.raw.changes()

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
        self._require_program()

    def _require_program(self) -> None:
        """Refuse a database that a newer program has changed since the last transaction."""
        if self._program_steps is not None and oldest_program(self) > self._program_steps:
            self.rows("ROLLBACK")
            raise newer_schema_error(str(self.path))

    def release_memory(self) -> None:
        """Free the page cache."""
        self.raw.release_memory()

    def close(self) -> None:
        """Close the connection."""
        try:
            self.raw.close(force=True)
        except apsw.Error as error:
            raise translate_error(error, self.path) from error

    def next_number(self, table: str) -> int:
        """Return the number of the next row of an AUTOINCREMENT table, as of this transaction."""
        last = self.value("SELECT seq FROM sqlite_sequence WHERE name = :table", table=table)
        return int(last or 0) + 1

    def set_next_number(self, table: str, number: int) -> None:
        """Set the number of the next row of an AUTOINCREMENT table."""
        self.run("DELETE FROM sqlite_sequence WHERE name = :table", table=table)
        self.insert("sqlite_sequence", name=table, seq=number - 1)

    def has_table(self, name: str) -> bool:
        """Return whether the database has a table of this name."""
        return self.find("SELECT 1 FROM sqlite_schema WHERE name = :name", name=name) is not None

    def is_empty_database(self) -> bool:
        """Return whether the database has no tables."""
        return self.find("SELECT 1 FROM sqlite_schema LIMIT 1") is None

    def size(self) -> int:
        """Return the size of the database in bytes."""
        return int(self.value("PRAGMA page_count")) * int(self.value("PRAGMA page_size"))

    def journal_mode(self) -> str:
        """Return the journal mode of the database."""
        return str(self.value("PRAGMA journal_mode"))

    def integrity_problems(self) -> list[str]:
        """Return what SQLite's integrity check of the file reports, at most 20 lines."""
        return integrity_problems(self.path)

    def _translated(self, error: Exception) -> LoreError:
        if isinstance(error, UnicodeDecodeError):
            return damaged_error(error, self.path, 0)
        if not isinstance(error, apsw.Error):
            return InvalidInput(f"A value cannot be stored: {error}")
        closed = isinstance(error, apsw.ConnectionClosedError)
        return translate_error(error, self.path, 0 if closed else self.raw.system_errno)


def oldest_program(db: Connection) -> int:
    """Return how many migrations a program must know; 0 if nothing says so."""
    return int(db.value("PRAGMA user_version"))


def set_oldest_program(db: Connection, steps: int) -> None:
    """Set how many migrations a program must know at least, within the caller's transaction."""
    if steps > oldest_program(db):
        db.rows(f"PRAGMA user_version = {steps:d}")


def _bind_array(_cursor: apsw.Cursor, _place: int, value: Any) -> Any:
    """Bind an array of numbers or texts, the only values that SQLite does not know itself."""
    if isinstance(value, BoundArray):
        return apsw.carray(value.values)
    msg = f"a {type(value).__name__} cannot be bound"
    raise TypeError(msg)


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
    program_steps: int | None = None,
) -> SqliteConnection:
    """Open a database file with the settings that Lore relies on.

    A named VFS has no shared memory, so its connection locks the file exclusively. With
    `program_steps`, the number of migrations that this program knows, a transaction is refused once
    a newer program has changed the schema too much.
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
    return SqliteConnection(raw, path, read_only=read_only, program_steps=program_steps)


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


_CHECK_TIMEOUT_S = 10.0


def integrity_problems(path: Path) -> list[str]:
    """Return what SQLite's integrity check reports, at most 20 lines.

    It uses a new connection: one that has searched before checks the keyword index against cached
    pages and reports damage where others have written since.
    """
    try:
        with closing(open_connection(path, busy_timeout_s=_CHECK_TIMEOUT_S, read_only=True)) as db:
            lines = [str(row[0]) for row in db.rows("PRAGMA integrity_check(20)")]
            orphans = db.rows("PRAGMA foreign_key_check")
    except StoreDamaged as error:
        return [str(error)]
    return [line for line in lines if line != "ok"] + [
        f"{row[0]}: row {row[1]} refers to a missing {row[2]}" for row in orphans[:20]
    ]
