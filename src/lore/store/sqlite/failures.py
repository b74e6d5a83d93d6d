"""Failures of SQLite, told as Lore's: the only place where they are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from lore.errors import StoreBusy, StoreDamaged, StoreError, StoreReadOnly
from lore.store.files import FULL_DISK, full, has_space

if TYPE_CHECKING:
    from pathlib import Path


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


def _read_only(_error: apsw.Error, path: Path, _number: int) -> StoreError:
    return StoreReadOnly(
        f"{path} cannot be written.", hint="Check owner and permissions of the folder."
    )


def damaged(error: Exception, path: Path, _number: int) -> StoreError:
    """Return the error for a file that cannot be understood."""
    return StoreDamaged(
        f"{path} is damaged or no database: {error}",
        hint="'lore doctor' says what can be saved; 'lore restore' takes a backup.",
    )


def _cannot_open(error: apsw.Error, path: Path, number: int) -> StoreError:
    if path.is_symlink():
        return symbolic_link(path)
    if path.is_dir():
        return StoreError(f"{path} is a folder, not a database.")
    return _read_only(error, path, number)


def symbolic_link(path: Path) -> StoreError:
    """Return the error for a path that leads elsewhere."""
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


_TRANSLATIONS = (
    (apsw.BusyError, _busy),
    (apsw.LockedError, _busy),
    (apsw.ProtocolError, _busy),
    (apsw.FullError, _full),
    (apsw.ReadOnlyError, _read_only),
    (apsw.CantOpenError, _cannot_open),
    (apsw.PermissionsError, _read_only),
    (apsw.AuthError, _read_only),
    (apsw.CorruptError, damaged),
    (apsw.NotADBError, damaged),
    (apsw.ConnectionClosedError, _closed),
    (apsw.IOError, _io),
)
