"""Backup of a server's home: a folder that is a server's home itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lore.config_files import make_private_folder, replace_file
from lore.errors import InvalidInput, StoreError, StoreFull
from lore.server.registry import KEY_FILE, OWNERS_FOLDER, REGISTRY_FILE, TEAMS_FOLDER, Registry
from lore.settings import USER_FILE
from lore.store.database import open_database
from lore.store.files import FULL_DISK

_MEMORY = "memory.db"
_SMALL_FILES = (USER_FILE, KEY_FILE, "redaction.key")
"""Keys and settings; indexes are built again from the database, and logs are left out."""

_BUSY_S = 30.0


@dataclass(frozen=True, slots=True)
class HomeBackup:
    """A finished backup: where it is, and how many memories it has."""

    folder: str
    owners: int
    teams: int
    bytes: int


def back_up(registry: Registry, target: Path) -> HomeBackup:
    """Copy a server's home to a new folder while the server runs; each database is consistent.

    The registry is copied first: whoever is in it has their memory in the backup, too.
    """
    _require_free(target)
    try:
        make_private_folder(target)
        registry.database.copy_to(target / REGISTRY_FILE)
        counts = {kind: _copy_memories(registry.home / kind, target / kind)
                  for kind in (OWNERS_FOLDER, TEAMS_FOLDER)}  # fmt: skip
        _copy_small_files(registry.home, target)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        msg = f"The backup could not be written: {error.strerror}. Nothing of it is left."
        raise (StoreFull if error.errno in FULL_DISK else StoreError)(msg) from error
    except StoreError:
        shutil.rmtree(target, ignore_errors=True)
        raise
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return HomeBackup(str(target), counts[OWNERS_FOLDER], counts[TEAMS_FOLDER], size)


def _require_free(target: Path) -> None:
    """Raise unless a backup can be written to a path without touching what is there."""
    try:
        taken = "is not empty" if target.exists() and any(target.iterdir()) else ""
    except NotADirectoryError:
        taken = "is a file"
    except OSError as error:
        taken = f"cannot be read: {error.strerror}"
    if taken:
        msg = f"{target} {taken}."
        raise InvalidInput(msg, hint="Name a folder that does not exist yet.")


def _copy_memories(source: Path, target: Path) -> int:
    make_private_folder(target)
    count = 0
    for folder in _folders(source):
        to = target / folder.name
        make_private_folder(to)
        _copy_small_files(folder, to)
        if (folder / _MEMORY).exists():
            database = open_database(
                folder / _MEMORY, busy_timeout_s=_BUSY_S, backups=None, read_only=True
            )
            try:
                database.copy_to(to / _MEMORY)
            finally:
                database.close()
            count += 1
    return count


def _folders(source: Path) -> Iterator[Path]:
    if source.is_dir():
        yield from (path for path in sorted(source.iterdir())
                    if path.is_dir() and not path.is_symlink())  # fmt: skip


def _copy_small_files(source: Path, target: Path) -> None:
    for name in _SMALL_FILES:
        if (source / name).is_file() and not (source / name).is_symlink():
            replace_file(target / name, (source / name).read_bytes())
