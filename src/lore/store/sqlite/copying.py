"""Copying: whole databases out of and into a live one, without stopping those who use it."""

from __future__ import annotations

import os
import re
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import apsw

from lore.errors import StoreError
from lore.store.files import make_private, sync_folder
from lore.store.sqlite.connection import Connection
from lore.store.sqlite.failures import translated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PAGES = 4_096
"""Pages copied at a time; between two steps an interrupt gets through."""

_PATIENCE_MS = 30_000

_UNFINISHED = re.compile(r"\.(?:part|restored)-(\d+)(?:-wal|-shm|-journal)?$")
"""Names of files that a killed process leaves behind while copying, with its number."""


def copy_database(source: Connection, target: Path) -> None:
    """Write a consistent copy of a live database to a file, whole or not at all."""
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        make_private(part)
        with closing(apsw.Connection(str(part))) as copy:
            _copy_pages(source.raw, copy)
            copy.execute("PRAGMA journal_mode = delete").fetchall()
        _sync(part)
        part.replace(target)
        sync_folder(target.parent)
    except apsw.Error as error:
        raise translated(error, target) from error
    except OSError as error:
        msg = f"The copy could not be written to {target}: {error.strerror}."
        raise StoreError(msg) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy all pages of one moment: without a transaction each foreign write starts it anew."""
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


def exchange(fresh: Path, target: Path, kept: Path) -> None:
    """Copy a database to `kept` and make it a copy of `fresh`, under those who have it open.

    Writes go on while the former content is copied; if one came in between, the copy is made
    again, so that what was acknowledged is in one of the two.
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
            while not _exchanged(origin, goal, watch, target, kept):
                pass
            goal.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except apsw.Error as error:
        raise translated(error, target) from error


def _exchanged(
    origin: apsw.Connection,
    goal: apsw.Connection,
    watch: apsw.Connection,
    target: Path,
    kept: Path,
) -> bool:
    """Try once; False if something was written after the former content was copied."""
    before = _version(watch)
    copy_database(Connection(watch, target, read_only=False), kept)
    with goal.backup("main", origin, "main") as backup:
        backup.step(1)
        if _version(watch) != before:
            return False
        backup.step(-1)
    return True


def _version(connection: apsw.Connection) -> int:
    """Return a number that changes with every commit of another connection."""
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return int(str(connection.execute("PRAGMA data_version").fetchall()[0][0]))


def unfinished(folder: Path) -> Iterator[Path]:
    """Yield the files of copies in a folder whose process is gone."""
    for path in sorted(folder.glob("*")):
        found = _UNFINISHED.search(path.name)
        if found and not _lives(int(found[1])):
            yield path


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
