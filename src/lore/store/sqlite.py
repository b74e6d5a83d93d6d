"""What is SQLite's alone: opening a file, its settings, its errors, its online backup."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from lore.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

Row = tuple[Any, ...]

OLDEST_LIBRARY = (3, 51, 3)
"""Older SQLite can corrupt a WAL file that several connections write and checkpoint."""

SHARED_FILE_SYSTEMS = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse", "fuseblk", "afs",
    "ceph", "glusterfs", "lustre", "vboxsf", "prl_fs", "afpfs", "webdav",
)  # fmt: skip
"""File systems without the shared memory that WAL needs between processes."""

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""Folds accents; English endings fold too, other languages keep their words as they are."""

_CACHE_KIB = 16_384
_MMAP_BYTES = 1 << 28
_PATIENT_RETRY_S = 0.02


def among(column: str, name: str) -> str:
    """Return the condition that a column is one of the numbers bound to `name`."""
    return f"{column} IN (SELECT value FROM carray(:{name}))"


def numbers(values: Sequence[int] | NDArray[np.int64]) -> Any:
    """Return a list of numbers in the form that `among` binds."""
    return apsw.carray(np.ascontiguousarray(values, dtype=np.int64))


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
        except apsw.Error as error:
            raise translated(error, self.path) from error

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

    def run_many(self, sql: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each set of values."""
        try:
            self.raw.executemany(sql, values)
        except apsw.Error as error:
            raise translated(error, self.path) from error

    def data_version(self) -> int:
        """Return a number that changes when another connection has written."""
        return int(self.value("PRAGMA data_version"))

    def close(self) -> None:
        """Close the connection."""
        self.raw.close(True)


def check_library(version: str = apsw.sqlite_lib_version()) -> None:
    """Refuse a SQLite library that is known to corrupt files in Lore's way of use."""
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_LIBRARY:
        oldest = ".".join(map(str, OLDEST_LIBRARY))
        msg = f"SQLite {version} can corrupt a database that several processes write."
        raise StoreError(msg, hint=f"Install an apsw that carries SQLite {oldest} or newer.")


def describe_library() -> str:
    """Return the versions of the library and what it carries."""
    return f"apsw {apsw.apsw_version()}, SQLite {apsw.sqlite_lib_version()}"


def open_connection(path: Path, *, busy_timeout_s: float, read_only: bool) -> Connection:
    """Open a database file with the settings that Lore relies on."""
    check_library()
    try:
        raw = _open_read_only(path) if read_only else _open_writable(path)
        raw.set_busy_timeout(int(busy_timeout_s * 1000))
        connection = Connection(raw, path, read_only=read_only)
        for pragma in (
            "foreign_keys = ON",
            "secure_delete = ON",
            f"cache_size = -{_CACHE_KIB}",
            f"mmap_size = {_MMAP_BYTES}",
            "temp_store = MEMORY",
            "trusted_schema = OFF",
        ):
            raw.execute(f"PRAGMA {pragma}").fetchall()
        if not read_only:
            _set_journal(connection, busy_timeout_s)
    except apsw.Error as error:
        raise translated(error, path) from error
    return connection


def _open_writable(path: Path) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW
    fresh = not path.exists()
    raw = apsw.Connection(str(path.resolve()), flags=flags)
    if fresh:
        path.chmod(0o600)
    return raw


def _open_read_only(path: Path) -> apsw.Connection:
    """Open for reading; in a folder that cannot be written, without shared memory."""
    if not path.exists():
        msg = f"There is no database at {path}."
        raise StoreReadOnly(msg)
    raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        raw.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        raw.close()
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        raw = apsw.Connection(f"{path.as_uri()}?immutable=1", flags=flags)
    return raw


def _set_journal(connection: Connection, busy_timeout_s: float) -> None:
    """Set WAL, or a rollback journal where WAL is not safe; the switch has no busy handler."""
    mode = "delete" if shared_file_system(connection.path) else "wal"
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.raw.execute(f"PRAGMA journal_mode = {mode}").fetchall()
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PATIENT_RETRY_S)
    connection.raw.execute("PRAGMA synchronous = FULL").fetchall()


def shared_file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the name of the network or shared file system that holds `path`, or ''."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    target = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ").rstrip("/") or "/"
        inside = target == point or target.startswith(point if point == "/" else point + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    name = kind.split(".", 1)[0]
    return kind if name in SHARED_FILE_SYSTEMS else ""


def translated(error: apsw.Error, path: Path) -> StoreError:
    """Return Lore's error for one of SQLite's: the only place where they are told apart."""
    for kind, make in _TRANSLATIONS:
        if isinstance(error, kind):
            return make(error, path)
    return StoreError(f"The database refused: {error}")


def _busy(_error: apsw.Error, path: Path) -> StoreError:
    return StoreBusy(
        f"Another process has been writing to {path} for too long.",
        hint="Try again; 'store.busy_timeout_s' says how long to wait.",
    )


def _full(_error: apsw.Error, path: Path) -> StoreError:
    return StoreFull(
        f"No space left to write {path}; nothing was changed.",
        hint="Free some space; reading goes on meanwhile.",
    )


def _read_only(_error: apsw.Error, path: Path) -> StoreError:
    return StoreReadOnly(
        f"{path} cannot be written.", hint="Check owner and permissions of the folder."
    )


def _damaged(error: apsw.Error, path: Path) -> StoreError:
    return StoreDamaged(
        f"{path} is damaged or no database: {error}",
        hint="'lore doctor' says what can be saved; 'lore restore' takes a backup.",
    )


def _cannot_open(error: apsw.Error, path: Path) -> StoreError:
    if path.is_symlink():
        return StoreError(f"{path} is a symbolic link; Lore does not follow it.")
    if path.is_dir():
        return StoreError(f"{path} is a folder, not a database.")
    return _read_only(error, path)


def _io(error: apsw.Error, path: Path) -> StoreError:
    if not has_space(path):
        return _full(error, path)
    return StoreError(
        f"The disk failed while using {path}: {error}",
        hint="Whether the last write arrived is not known; repeating it is safe.",
    )


def has_space(path: Path) -> bool:
    """Tell whether the file system of `path` takes another page."""
    probe = path.parent / f".space-{os.getpid()}"
    try:
        probe.write_bytes(b"\0" * 65_536)
    except OSError as error:
        return error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    finally:
        probe.unlink(missing_ok=True)
    return True


_TRANSLATIONS = (
    (apsw.BusyError, _busy),
    (apsw.LockedError, _busy),
    (apsw.FullError, _full),
    (apsw.ReadOnlyError, _read_only),
    (apsw.CantOpenError, _cannot_open),
    (apsw.PermissionsError, _read_only),
    (apsw.CorruptError, _damaged),
    (apsw.NotADBError, _damaged),
    (apsw.IOError, _io),
)


def copy_database(source: Connection, target: Path) -> None:
    """Write a consistent copy of a live database to a file that does not exist yet."""
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        copy = apsw.Connection(str(part))
        part.chmod(0o600)
        with copy.backup("main", source.raw, "main") as backup:
            while not backup.done:
                backup.step(4096)
        copy.execute("PRAGMA journal_mode = delete").fetchall()
        copy.close()
        descriptor = os.open(part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(target)
    except apsw.Error as error:
        raise translated(error, target) from error
    except OSError as error:
        msg = f"The copy could not be written to {target}: {error.strerror}."
        raise StoreError(msg) from error
    finally:
        part.unlink(missing_ok=True)


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    name, *options = TOKENIZER.split()
    return apsw.Connection(":memory:").fts5_tokenizer(name, options)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return a word as the keyword index keeps it."""
    found = _tokenizer()(
        word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return str(found[0]) if found else word


def overwrite(source: Path, target: Path) -> None:
    """Make a database a copy of another in one transaction, under those who have it open."""
    try:
        origin = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
        goal = apsw.Connection(str(target))
        goal.set_busy_timeout(30_000)
        with goal.backup("main", origin, "main") as backup:
            backup.step(-1)
        goal.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        goal.close()
        origin.close()
    except apsw.Error as error:
        raise translated(error, target) from error


def erase_traces(connection: Connection) -> None:
    """Leave no byte of deleted rows in the database file or its log."""
    connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")


def damage(connection: Connection) -> list[str]:
    """Return what SQLite's own integrity check finds wrong, at most 20 lines."""
    found = [str(row[0]) for row in connection.rows("PRAGMA integrity_check(20)")]
    found = [] if found == ["ok"] else found
    orphans = connection.rows("PRAGMA foreign_key_check")
    return found + [f"{row[0]}: row {row[1]} refers to a missing {row[2]}" for row in orphans[:20]]
