"""What is SQLite's alone: opening a file, its settings, its errors, its online backup."""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import closing, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from lore.errors import (
    InvalidInput,
    LoreError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

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
_MMAP_BYTES = 0
_PATIENT_RETRY_S = 0.02

_CHECKPOINT_S = 15.0
"""So long a forgetting waits for readers and other checkpoints to be done."""
_STEP_S = 0.001
_CHECK_S = 10.0

_LOG_BYTES = 1 << 26
"""The log is cut back to so much after a transaction that made it longer."""

_NO_ROW = (-1,)
"""Rows are numbered from 1, and SQLite does not bind an empty array."""

_UNFIT = (UnicodeError, OverflowError)
"""What apsw raises for half a surrogate pair, a number beyond 64 bits, or stored garbage."""


def among(column: str, name: str) -> str:
    """Return the condition that a column is one of the numbers bound to `name`."""
    return f"{column} IN (SELECT value FROM carray(:{name}))"


def numbers(values: Sequence[int] | NDArray[np.int64]) -> Any:
    """Return a list of numbers in the form that `among` binds; an empty one fits no row."""
    return apsw.carray(np.ascontiguousarray(values if len(values) else _NO_ROW, dtype=np.int64))


def texts(values: Sequence[str]) -> Any:
    """Return a list of texts in the form that `among` binds."""
    return apsw.carray(tuple(values))


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

    def run_many(self, sql: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each set of values."""
        try:
            self.raw.executemany(sql, values)
        except (apsw.Error, *_UNFIT) as error:
            raise self._translated(error) from error

    def data_version(self) -> int:
        """Return a number that changes when another connection has written."""
        return int(self.value("PRAGMA data_version"))

    def close(self) -> None:
        """Close the connection."""
        try:
            self.raw.close(force=True)
        except apsw.Error as error:
            raise translated(error, self.path) from error

    def _translated(self, error: Exception) -> LoreError:
        if isinstance(error, UnicodeDecodeError):
            return _damaged(error, self.path, 0)
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
    path: Path, *, busy_timeout_s: float, read_only: bool, vfs: str = ""
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
        for pragma in (*(("locking_mode = EXCLUSIVE",) if vfs else ()), *_PRAGMAS):
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
    f"cache_size = -{_CACHE_KIB}",
    f"mmap_size = {_MMAP_BYTES}",
    f"journal_size_limit = {_LOG_BYTES}",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
)


def _open_writable(path: Path, vfs: str) -> apsw.Connection:
    """Open for writing; a file that is new belongs to its owner alone from the first moment."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW
    make_private(path)
    return apsw.Connection(str(path.parent.resolve() / path.name), flags=flags, vfs=vfs or None)


def make_private(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is one."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise _refused(error, path) from error
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, that only their owner may enter."""
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
            each.chmod(0o700)
        if not folder.is_dir():
            msg = f"{folder} is a file, not a folder."
            raise StoreError(msg, hint="LORE_HOME names another place.")
    except OSError as error:
        raise _refused(error, folder) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
        raise _symbolic_link(path)
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
            time.sleep(_PATIENT_RETRY_S)
    raw.execute("PRAGMA synchronous = FULL").fetchall()


_ESCAPED = re.compile(r"\\([0-7]{3})")


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
        point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[1]).rstrip("/") or "/"
        inside = target == point or target.startswith(point if point == "/" else point + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    name = kind.split(".", 1)[0]
    return kind if name in SHARED_FILE_SYSTEMS else ""


def translated(error: apsw.Error, path: Path, number: int = 0) -> StoreError:
    """Return Lore's error for one of SQLite's: the only place where they are told apart.

    `number` is the operating system's own number of the error, where it is known.
    """
    for kind, make in _TRANSLATIONS:
        if isinstance(error, kind):
            return make(error, path, number)
    return StoreError(f"The database refused: {error}")


def _busy(_error: apsw.Error, path: Path, _number: int) -> StoreError:
    return StoreBusy(
        f"Another process has been writing to {path} for too long.",
        hint="Try again; 'store.busy_timeout_s' says how long to wait.",
    )


def _full(_error: apsw.Error, path: Path, _number: int) -> StoreError:
    return full(path)


def full(path: Path) -> StoreFull:
    """Return the error for a disk that takes no more."""
    return StoreFull(
        f"No space left to write {path}; nothing was changed.",
        hint="Free some space; reading goes on meanwhile.",
    )


def _read_only(_error: apsw.Error, path: Path, _number: int) -> StoreError:
    return StoreReadOnly(
        f"{path} cannot be written.", hint="Check owner and permissions of the folder."
    )


def _damaged(error: Exception, path: Path, _number: int) -> StoreError:
    return StoreDamaged(
        f"{path} is damaged or no database: {error}",
        hint="'lore doctor' says what can be saved; 'lore restore' takes a backup.",
    )


def _cannot_open(error: apsw.Error, path: Path, number: int) -> StoreError:
    if path.is_symlink():
        return _symbolic_link(path)
    if path.is_dir():
        return StoreError(f"{path} is a folder, not a database.")
    return _read_only(error, path, number)


def _symbolic_link(path: Path) -> StoreError:
    return StoreError(f"{path} is a symbolic link; Lore does not follow it.")


def _io(error: apsw.Error, path: Path, number: int) -> StoreError:
    if number in FULL_DISK or not has_space(path):
        return _full(error, path, number)
    return StoreError(
        f"The disk failed while using {path}: {error}",
        hint="Whether the last write arrived is not known; repeating it is safe.",
    )


def _closed(_error: apsw.Error, _path: Path, _number: int) -> StoreError:
    return StoreError("The memory is closed.")


def _refused(error: OSError, path: Path) -> StoreError:
    """Return Lore's error for a file or folder that the system does not let us make."""
    if error.errno in FULL_DISK:
        return StoreFull(f"No space left to make {path}.", hint="Free some space.")
    return StoreReadOnly(
        f"{path} cannot be made: {error.strerror}.", hint="LORE_HOME names another place."
    )


FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def has_space(path: Path) -> bool:
    """Tell whether the file system of `path` takes another page."""
    probe = path.parent / f".space-{os.getpid()}"
    try:
        probe.write_bytes(b"\0" * 65_536)
    except OSError as error:
        return error.errno not in FULL_DISK
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    return True


_TRANSLATIONS = (
    (apsw.BusyError, _busy),
    (apsw.LockedError, _busy),
    (apsw.ProtocolError, _busy),
    (apsw.FullError, _full),
    (apsw.ReadOnlyError, _read_only),
    (apsw.CantOpenError, _cannot_open),
    (apsw.PermissionsError, _read_only),
    (apsw.AuthError, _read_only),
    (apsw.CorruptError, _damaged),
    (apsw.NotADBError, _damaged),
    (apsw.ConnectionClosedError, _closed),
    (apsw.IOError, _io),
)


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    name, *options = TOKENIZER.split()
    return apsw.Connection(":memory:").fts5_tokenizer(name, options)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return a word as the keyword index keeps it."""
    found: list[str] = _tokenizer()(  # type: ignore[assignment]  # with these flags, words
        word.encode(),
        apsw.FTS5_TOKENIZE_QUERY,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return found[0] if found else word


def empty_log(connection: Connection) -> None:
    """Fold the log into the database file and cut it to nothing."""
    deadline = time.monotonic() + _CHECKPOINT_S
    busy = 1
    while busy and time.monotonic() < deadline:
        busy, *_ = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if busy:
            time.sleep(_PATIENT_RETRY_S)
    if busy:
        msg = "The log could not be emptied: another process kept reading."
        raise StoreBusy(msg, hint="Try again; what is deleted can still be in the log.")


def erase_traces(connection: Connection) -> None:
    """Leave no byte of deleted rows in the database file or its log.

    `secure_delete` overwrites a row where it stands, but not copies of it that moved between
    pages left behind in their free space: of 3,000 deleted texts 4 were still there. Only
    writing the file anew leaves none.
    """
    connection.rows("PRAGMA temp_store = FILE")
    connection.rows("VACUUM")
    empty_log(connection)


def damage(path: Path) -> list[str]:
    """Return what SQLite's own integrity check finds wrong, at most 20 lines.

    It looks with a connection of its own: one that has searched before checks the keyword
    index by what it remembers of it, and finds damage where others have written since.
    """
    try:
        with closing(open_connection(path, busy_timeout_s=_CHECK_S, read_only=True)) as db:
            found = [str(row[0]) for row in db.rows("PRAGMA integrity_check(20)")]
            orphans = db.rows("PRAGMA foreign_key_check")
    except StoreDamaged as error:
        return [str(error)]
    return [line for line in found if line != "ok"] + [
        f"{row[0]}: row {row[1]} refers to a missing {row[2]}" for row in orphans[:20]
    ]
