"""Whole SQLite files: copies, checkpoints, integrity checks, and databases of other programs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from lore.errors import StoreBusy, StoreError
from lore.store.files import make_private, sync_folder
from lore.store.sql_connection import Connection, Row
from lore.store.sqlite.connection import (
    RETRY_DELAY_S,
    SqliteConnection,
    open_connection,
    translate_error,
)

_PAGES = 4_096
"""Pages copied at a time; an interrupt gets through between two steps."""

_PATIENCE_MS = 30_000

_ALONE_MS = 500

_UNFINISHED = re.compile(r"\.(?:part|restored)-(\d+)(?:-wal|-shm|-journal)?$")
"""Names of files that a killed process leaves while copying, with its process id."""


def copy_database(
    source: Connection, target: Path, finish: Callable[[Path], None] | None = None
) -> None:
    """Write a consistent copy of a live database to a file, completely or not at all.

    `finish` gets the copy before it has its name.
    """
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        make_private(part)
        with closing(apsw.Connection(str(part))) as copy:
            _copy_pages(_raw(source), copy)
            copy.execute("PRAGMA journal_mode = delete").fetchall()
        if finish:
            finish(part)
        _sync(part)
        part.replace(target)
        sync_folder(target.parent)
    except apsw.Error as error:
        raise translate_error(error, target) from error
    except OSError as error:
        msg = f"The copy could not be written to {target}: {error.strerror}."
        raise StoreError(msg) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _raw(db: Connection) -> apsw.Connection:
    if isinstance(db, SqliteConnection):
        return db.raw
    msg = f"{db.path} is not a SQLite file."
    raise StoreError(msg)


def write_offline(path: Path, sql: str, **params: Any) -> None:
    """Run a statement in a database file that no one uses, and leave no files beside it."""
    try:
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute(sql, params).fetchall()
            connection.execute("PRAGMA journal_mode = delete").fetchall()
    except apsw.Error as error:
        raise translate_error(error, path) from error


@contextmanager
def open_alone(path: Path) -> Iterator[SqliteConnection]:
    """Open a file that nobody else has open, and keep it locked until the end of the block."""
    try:
        with closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)) as raw:
            raw.set_busy_timeout(_ALONE_MS)
            # Before anything is read: it then locks the file itself, as everyone does who reads it.
            raw.execute("PRAGMA locking_mode = exclusive").fetchall()
            raw.execute("BEGIN IMMEDIATE; COMMIT").fetchall()
            yield SqliteConnection(raw, path, read_only=False)
    except apsw.BusyError as error:
        msg = f"Another process has {path} open."
        raise StoreBusy(msg, hint="Stop it; 'fuser' on that file names it.") from error
    except apsw.Error as error:
        raise translate_error(error, path) from error


def schema_objects(db: Connection) -> dict[tuple[str, str], str]:
    """Return the SQL of all tables, indexes, views and triggers, by type and name."""
    rows = db.rows(
        "SELECT type, name, coalesce(sql, '') FROM sqlite_schema"
        " WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' OR type NOT IN ('table', 'index')"
    )
    return {(kind, name): " ".join(sql.split()) for kind, name, sql in rows}


@contextmanager
def open_scratch() -> Iterator[Connection]:
    """Open an empty database in memory."""
    with closing(apsw.Connection(":memory:")) as raw:
        yield SqliteConnection(raw, Path(":memory:"), read_only=False)


def _copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy all pages within one transaction: otherwise each write of others restarts the copy."""
    began = not source.in_transaction
    if began:
        source.execute("BEGIN").fetchall()
    try:
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
    finally:
        if began and source.in_transaction:
            source.execute("COMMIT").fetchall()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap_database(fresh: Path, target: Path, saved: Path) -> None:
    """Copy a database to `kept` and replace its content by `fresh`, while others have it open.

    Writes continue while the former content is copied; if one came in between, the copy is
    repeated, so that every acknowledged write is in one of the two.
    """
    try:
        with (
            closing(apsw.Connection(str(fresh), flags=apsw.SQLITE_OPEN_READONLY)) as origin,
            closing(apsw.Connection(str(target))) as goal,
            closing(apsw.Connection(str(target))) as watch,
        ):
            for connection in (goal, watch):
                connection.set_busy_timeout(_PATIENCE_MS)
            for pragma in ("synchronous = FULL", "secure_delete = ON"):
                goal.execute(f"PRAGMA {pragma}").fetchall()
            while not _try_swap(origin, goal, watch, target, saved):
                pass
            goal.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except apsw.Error as error:
        raise translate_error(error, target) from error


def _try_swap(
    origin: apsw.Connection,
    goal: apsw.Connection,
    watch: apsw.Connection,
    target: Path,
    saved: Path,
) -> bool:
    """Try once; return False if something was written after the former content was copied."""
    before = _data_version(watch)
    copy_database(SqliteConnection(watch, target, read_only=False), saved)
    with goal.backup("main", origin, "main") as backup:
        backup.step(1)
        if _data_version(watch) != before:
            return False
        backup.step(-1)
    return True


def _data_version(connection: apsw.Connection) -> int:
    """Return a number that changes with every commit of another connection."""
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return int(str(connection.execute("PRAGMA data_version").fetchall()[0][0]))


def leftover_copies(folder: Path) -> Iterator[Path]:
    """Yield the unfinished copies in a folder whose process is gone."""
    for path in sorted(folder.glob("*")):
        match = _UNFINISHED.search(path.name)
        if match and not _is_running(int(match[1])):
            yield path


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_CHECKPOINT_TIMEOUT_S = 15.0
"""Forgetting waits this long for readers and other checkpoints to finish."""


def companion_files(path: Path) -> list[Path]:
    """Return the files that SQLite keeps beside a database while it is in use."""
    return [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def checkpoint(connection: Connection, *, patience_s: float = _CHECKPOINT_TIMEOUT_S) -> None:
    """Move the write-ahead log into the database file and truncate it."""
    deadline = time.monotonic() + patience_s
    busy = 1
    while busy and time.monotonic() < deadline:
        busy, *_ = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if busy:
            time.sleep(RETRY_DELAY_S)
    if busy:
        msg = "The write-ahead log could not be truncated: another process kept reading."
        raise StoreBusy(msg, hint="Try again; deleted rows may still be in the log.")


def erase_traces(connection: Connection) -> None:
    """Leave no byte of deleted rows in the database file or its log.

    `secure_delete` overwrites a row, but not copies of it that moved between pages left in their
    free space: of 3,000 deleted texts 4 were still there. Only VACUUM leaves none.
    """
    connection.rows("PRAGMA temp_store = FILE")
    connection.rows("VACUUM")
    checkpoint(connection)


_EXTERNAL_TIMEOUT_S = 2.0
"""The owner writes in short transactions; what is missed now is read the next time."""


@contextmanager
def open_external(path: Path) -> Iterator[Connection]:
    """Open a database of another program read-only."""
    log_file = path.with_name(f"{path.name}-wal")
    was_closed = not log_file.exists()
    db = open_connection(path, busy_timeout_s=_EXTERNAL_TIMEOUT_S, read_only=True)
    try:
        yield db
    finally:
        db.close()
        if was_closed and log_file.exists():
            _remove_wal(path)


def _remove_wal(path: Path) -> None:
    """Remove the log that reading left beside a closed database, unless it is in use now.

    A read-only connection cannot do so; a writable one does when it is the last to close.
    """
    with suppress(apsw.Error):
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        raw = apsw.Connection(str(path.parent.resolve() / path.name), flags=flags)
        try:
            raw.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        finally:
            raw.close()


def external_columns(db: Connection, table: str) -> tuple[str, ...]:
    """Return the column names of a table; none if the table does not exist."""
    rows = db.rows("SELECT name FROM pragma_table_info(:name)", name=table)
    return tuple(str(row[0]) for row in rows)


def external_rows(
    db: Connection,
    table: str,
    names: Sequence[str],
    *,
    equal: Mapping[str, Any] | None = None,
    least: Mapping[str, int] | None = None,
    order: Sequence[str] = (),
) -> list[Row]:
    """Return columns of the rows whose values equal, or are at least, the given ones.

    A missing column is read as NULL; a condition on one matches no row. Each table also has its
    `rowid`.
    """
    existing = external_columns(db, table)
    existing = (*existing, "rowid") if existing else ()
    conditions = [(name, "=", value) for name, value in (equal or {}).items()]
    conditions += [(name, ">=", value) for name, value in (least or {}).items()]
    if not existing or any(name not in existing for name, _, _ in conditions):
        return []
    selected = ", ".join(_quote_name(name) if name in existing else "NULL" for name in names)
    sql = f"SELECT {selected} FROM {_quote_name(table)}"
    if conditions:
        tests = (
            f"{_quote_name(name)} {sign} :v{i}" for i, (name, sign, _) in enumerate(conditions)
        )
        sql += f" WHERE {' AND '.join(tests)}"
    sorts = [_quote_name(name) for name in order if name in existing]
    if sorts:
        sql += f" ORDER BY {', '.join(sorts)}"
    return db.rows(sql, **{f"v{i}": value for i, (_, _, value) in enumerate(conditions)})


def _quote_name(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
