"""Backup and restore of a server's home.

The backup of memories in files is a server's home itself. On PostgreSQL, rows are dumped to a file
of each memory, and a restore loads them into a database.
"""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lore.config_files import make_private_folder, replace_file
from lore.errors import InvalidInput, NotFound, StoreDamaged, StoreError, StoreFull
from lore.server.memory_store import MEMORY_FILE, MemoryStore
from lore.server.registry import (
    KEY_FILE,
    OWNERS_FOLDER,
    REGISTRY_FILE,
    TEAMS_FOLDER,
    MemoryKind,
    Registry,
)
from lore.settings import USER_FILE, Settings
from lore.store.database import open_database
from lore.store.files import FULL_DISK, make_private

ROWS_FILE = "memory.rows.gz"
"""All rows of a memory on PostgreSQL, as lines of JSON."""

_COMPRESSION = 3
"""Most of a dump are digits of vectors, which higher levels hardly make smaller."""

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


def back_up(registry: Registry, target: Path, store: MemoryStore | None = None) -> HomeBackup:
    """Copy a server's home to a new folder while the server runs; each memory is consistent.

    The registry is copied first: whoever is in it has their memory in the backup, too. `store` is
    where the memories are, if not in files.
    """
    if store is not None:
        store.verify()
    _require_free(target)
    try:
        make_private_folder(target)
        registry.database.copy_to(target / REGISTRY_FILE)
        _copy_small_files(registry.home, target)
        counts = {kind: _copy_memories(registry.home / kind, target / kind)
                  for kind in (OWNERS_FOLDER, TEAMS_FOLDER)}  # fmt: skip
        if store is not None and store.url:
            counts = _dump_memories(store.settings, target)
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
        if (folder / MEMORY_FILE).exists():
            database = open_database(
                folder / MEMORY_FILE, busy_timeout_s=_BUSY_S, backups=None, read_only=True
            )
            try:
                database.copy_to(to / MEMORY_FILE)
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


def _memories(registry: Registry) -> Iterator[tuple[MemoryKind, str, Path]]:
    """Yield the kind, the id and the folder of every memory."""
    for owner in registry.list_owners():
        yield "owner", owner.id, registry.owner_folder(owner.id)
    for team in registry.list_teams():
        yield "team", team.id, registry.team_folder(team.id)


def _dump_memories(settings: Settings, target: Path) -> dict[str, int]:
    """Dump the rows of everybody who is in the copied registry; return how many they are."""
    counts = {OWNERS_FOLDER: 0, TEAMS_FOLDER: 0}
    with Registry.open(target, create=False) as copied:
        store = MemoryStore(copied, settings)
        for kind, id_, folder in _memories(copied):
            make_private_folder(folder)
            make_private(folder / ROWS_FILE)
            with (
                store.open_rows(kind, id_) as database,
                gzip.open(folder / ROWS_FILE, "wb", _COMPRESSION) as file,
            ):
                for line in database.dump_rows():
                    file.write(line + b"\n")
            counts[folder.parent.name] += 1
        copied.mark_backup()
    return counts


def restore(source: Path, target: Path, settings: Settings) -> HomeBackup:
    """Make a server's home of a backup, and load the rows of its memories into the database.

    All of it or nothing: the home appears when everything is loaded. If that was interrupted, the
    next attempt first deletes what had been loaded.
    """
    _check_backup(source, settings)
    _require_free(target)
    part = target.with_name(f"{target.name}.restoring")
    _delete_part(part, settings)
    try:
        make_private_folder(part)
        done = _load_all(source, part, target, settings)
        if target.exists():
            target.rmdir()
        part.rename(target)
    except OSError as error:
        _delete_part(part, settings)
        msg = f"The backup could not be restored: {error.strerror or error}. Nothing of it is left."
        raise (StoreFull if error.errno in FULL_DISK else StoreError)(msg) from error
    except StoreError:
        _delete_part(part, settings)
        raise
    return done


def _check_backup(source: Path, settings: Settings) -> None:
    missing = [name for name in (REGISTRY_FILE, KEY_FILE) if not (source / name).is_file()]
    if missing:
        msg = f"{source} is no backup of a server: {missing[0]} is missing."
        raise NotFound(msg, hint="Name the folder that 'lore backup --server' wrote.")
    with Registry.open(source, create=False) as registry:
        if not registry.is_backup:
            msg = f"{source} is a server's folder with its memories in it."
            raise InvalidInput(msg, hint=f"'lore serve --data {source}' serves it as it is.")
        lost = [id_ for _, id_, folder in _memories(registry) if not (folder / ROWS_FILE).is_file()]
    if lost:
        msg = f"The backup lacks the rows of {len(lost)} memories."
        raise StoreDamaged(msg, hint="Take another backup; nothing was restored.")
    if not settings.store_url:
        msg = "The memories of this backup are rows of PostgreSQL."
        raise InvalidInput(msg, hint="Set 'store.url' (LORE_STORE_URL) to a database for them.")


def _load_all(source: Path, part: Path, target: Path, settings: Settings) -> HomeBackup:
    counts: dict[str, int] = {"owner": 0, "team": 0}
    _copy_small_files(source, part)
    make_private(part / REGISTRY_FILE)
    shutil.copyfile(source / REGISTRY_FILE, part / REGISTRY_FILE)
    with Registry.open(part, create=False) as registry:
        registry.renew_rows()
        store = MemoryStore(registry, settings)
        for kind, id_, folder in _memories(registry):
            former = source / folder.relative_to(part)
            make_private_folder(folder)
            _copy_small_files(former, folder)
            with store.open_rows(kind, id_) as database:
                database.load_rows(_lines(former / ROWS_FILE))
            counts[kind] += 1
        store.claim()
    size = sum(path.stat().st_size for path in source.rglob(ROWS_FILE))
    return HomeBackup(str(target), counts["owner"], counts["team"], size)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            yield from file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{path} is damaged."
        raise StoreDamaged(msg, hint="Take another backup; nothing was restored.") from error


def _delete_part(part: Path, settings: Settings) -> None:
    """Delete what an interrupted restore left: first rows, then the registry that names them."""
    if (part / REGISTRY_FILE).exists() and (part / KEY_FILE).exists():
        with Registry.open(part, create=False) as registry:
            if not registry.is_backup:  # else nothing was loaded yet
                _erase_all(registry, MemoryStore(registry, settings))
    shutil.rmtree(part, ignore_errors=True)


def _erase_all(registry: Registry, store: MemoryStore) -> None:
    names: list[tuple[MemoryKind, str]] = [(kind, id_) for kind, id_, _ in _memories(registry)]
    for kind, id_ in (*names, ("server", "")):
        with store.open_rows(kind, id_) as database:
            database.erase_rows()
