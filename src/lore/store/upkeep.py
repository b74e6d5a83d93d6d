"""Upkeep: backup, restore, forgetting in copies too, and rebuilding what is derived."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lore import clock
from lore.errors import InvalidInput, NotFound, SchemaTooNew, StoreDamaged
from lore.store import changes, checks, dialogues, files, forgetting, fragments, migrations, sqlite
from lore.store.db import Connection, Database, open_database
from lore.store.forgetting import Doomed

if TYPE_CHECKING:
    from concurrent.futures import Future

_PATIENCE_S = 5.0
_DAY_US = 86_400_000_000

_OWN_BACKUPS = ("lore-", "before-")
"""How the files begin that Lore itself puts into the folder of backups."""

_RECEIPT_DAYS = 30
"""A write is repeated within minutes; its receipt is kept for so long."""


def backup(database: Database, target: Path) -> Path:
    """Write a consistent copy of a live database; an existing file is not overwritten."""
    if target.is_dir():
        stamp = database.now().strftime("%Y%m%dT%H%M%S")
        target = target / f"lore-{stamp}.db"
    if target.exists():
        msg = f"{target} exists already."
        raise InvalidInput(msg, hint="Name another file.")
    if not target.parent.is_dir():
        msg = f"There is no folder {target.parent}."
        raise NotFound(msg)
    database.copy_to(target)
    return target


def restore(path: Path, source: Path, backups: Path) -> Path | None:
    """Put a backup in the place of the database; return where the former one was kept.

    What was forgotten stays forgotten: it is removed from the restored copy too.
    """
    if not source.is_file():
        msg = f"There is no file {source}."
        raise NotFound(msg)
    _refuse_unsound(source)
    files.make_folder(path.parent)
    forgotten = _tombstones(path, backups)
    fresh = path.with_name(f"{path.name}.restored-{os.getpid()}")
    kept: Path | None = None
    try:
        _copy(source, fresh)
        with closing(open_database(fresh, busy_timeout_s=_PATIENCE_S, backups=None)) as copy:
            copy.write(lambda db: forgetting.apply_tombstones(db, forgotten, now=copy.now()))
            copy.write(_new_epoch)
            copy.erase_traces()
        if path.exists():
            files.make_folder(backups)
            kept = backups / f"before-restore-{uuid.uuid4().hex[:8]}.db"
        _swap(fresh, path, kept)
        if kept is not None:
            _forget_late(path, kept, forgotten)
    finally:
        for leftover in (fresh, *sqlite.companions(fresh)):
            leftover.unlink(missing_ok=True)
    return kept


def _forget_late(path: Path, kept: Path, known: dict[str, str]) -> None:
    """Forget in the restored database what was forgotten while it was being prepared."""
    with suppress(StoreDamaged):
        late = {id_: s for id_, s in _read_tombstones(kept).items() if id_ not in known}
        if late:
            with closing(open_database(path, busy_timeout_s=_PATIENCE_S, backups=None)) as now:
                now.write(lambda db: forgetting.apply_tombstones(db, late, now=now.now()))
                now.erase_traces()


def _refuse_unsound(source: Path) -> None:
    with closing(sqlite.open_connection(source, busy_timeout_s=1, read_only=True)) as db:
        if not migrations.check(db):
            msg = f"{source} is an empty database, not a backup of Lore."
            raise InvalidInput(msg)
    if sqlite.damage(source):
        msg = f"{source} is damaged; the present database was left as it is."
        raise StoreDamaged(msg)


def _tombstones(path: Path, backups: Path) -> dict[str, str]:
    """Return what was forgotten; of a damaged database, what its backups know of it."""
    if not path.exists():
        return {}
    try:
        return _read_tombstones(path)
    except StoreDamaged:
        found: dict[str, str] = {}
        for copy in sorted(backups.glob("*.db")):
            with suppress(StoreDamaged):
                found |= _read_tombstones(copy)
        return found


def _read_tombstones(path: Path) -> dict[str, str]:
    with closing(sqlite.open_connection(path, busy_timeout_s=_PATIENCE_S, read_only=True)) as db:
        return changes.tombstones(db) if migrations.check(db) else {}


def _new_epoch(db: Connection) -> None:
    db.run("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite.open_connection(source, busy_timeout_s=_PATIENCE_S, read_only=True)) as db:
        sqlite.copy_database(db, target)


def _swap(fresh: Path, path: Path, kept: Path | None) -> None:
    """Keep the former content, and replace it in one transaction of the engine's own.

    Other processes may have the file open, so it is not renamed over: its pages are. Only a
    file that cannot be opened any more is replaced by name.
    """
    if kept is not None:
        try:
            sqlite.exchange(fresh, path, kept)
        except StoreDamaged:
            files.make_private(kept)
            shutil.copyfile(path, kept)
        else:
            return
    for companion in sqlite.companions(path):
        companion.unlink(missing_ok=True)
    fresh.replace(path)
    files.sync_folder(path.parent)


def forget(database: Database, doomed: Doomed, text: str, backups: Path) -> list[str]:
    """Forget in the database and in the automatic backups, down to the bytes on disk."""

    def work(db: Connection) -> list[str]:
        now = database.now()
        gone = forgetting.forget(db, doomed, text=text, now=now)
        if gone:
            db.run(
                "INSERT INTO meta (key, value) VALUES ('forgotten_at', :at)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                at=str(clock.to_us(now)),
            )
        return gone

    ids = database.write(work)
    database.erase_traces()
    with database.read() as db:
        known = changes.tombstones(db)
    for leftover in (*sqlite.unfinished(database.path.parent), *sqlite.unfinished(backups)):
        leftover.unlink(missing_ok=True)
    for copy in sorted(backups.glob("*.db")):
        if copy.is_file() and not copy.is_symlink():
            _forget_in_copy(copy, known, text)
    return ids


def _forget_in_copy(copy: Path, gone: dict[str, str], text: str) -> None:
    """Forget in a backup all that was ever forgotten.

    A backup of Lore's own making that cannot be cleaned is removed, for it holds the text; a
    file of another program is left alone.
    """
    try:
        with closing(open_database(copy, busy_timeout_s=_PATIENCE_S, backups=None)) as database:
            _require_writable(database)
            database.write(partial(_forget_all, gone=gone, text=text, now=database.now()))
            database.erase_traces()
    except (StoreDamaged, SchemaTooNew):
        if copy.name.startswith(_OWN_BACKUPS):
            copy.unlink(missing_ok=True)


def _require_writable(database: Database) -> None:
    if database.read_only:
        msg = f"{database.path} cannot be cleaned."
        raise StoreDamaged(msg)


def _forget_all(db: Connection, *, gone: dict[str, str], text: str, now: datetime) -> None:
    forgetting.apply_tombstones(db, gone, now=now)
    if text:
        forgetting.forget(db, forgetting.of_text(db, text), text=text, now=now)


def forgotten_since(db: Connection, moment: datetime) -> bool:
    """Tell whether a person had something forgotten after a moment.

    Tombstones do not say: what a cycle prunes, and what is taken back with one, leaves some too.
    """
    at = db.value("SELECT value FROM meta WHERE key = 'forgotten_at'")
    return at is not None and int(at) > clock.to_us(moment)


def epoch(db: Connection) -> str:
    """Return the id of this incarnation of the database; a restore begins a new one."""
    return str(db.value("SELECT value FROM meta WHERE key = 'epoch'"))


def upkeep_is_due(db: Connection, now: datetime) -> bool:
    """Tell whether the daily upkeep was last done more than a day ago.

    Or at a time that is still to come: then the clock was wrong, and nothing is to wait for it.
    """
    done = db.value("SELECT value FROM meta WHERE key = 'upkeep_at'")
    return done is None or not 0 <= clock.to_us(now) - int(done) < _DAY_US


def begin_upkeep(database: Database) -> Future[None] | None:
    """Queue the daily upkeep if it is due; None if it is not, or nothing can be written."""
    if database.read_only:
        return None
    with database.read() as db:
        due = upkeep_is_due(db, database.now())
    return database.submit(partial(do_upkeep, now=database.now())) if due else None


def do_upkeep(db: Connection, now: datetime) -> None:
    """Let fragments fade, and drop receipts of writes that nobody will repeat any more."""
    if not upkeep_is_due(db, now):
        return
    at = clock.to_us(now)
    fragments.rescore(db, now=now)
    db.run("DELETE FROM receipts WHERE at < :before", before=at - _RECEIPT_DAYS * _DAY_US)
    dialogues.tidy(db, now=now)
    db.run(
        "INSERT INTO meta (key, value) VALUES ('upkeep_at', :at)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        at=str(at),
    )


def describe_library() -> str:
    """Return the versions of the library that keeps the database."""
    return sqlite.describe_library()


def keyword_findings(database: Database) -> list[checks.Finding]:
    """Check the keyword index; the check itself writes, so it goes through the writer."""
    if database.read_only:
        with database.read() as db:
            return checks.keyword_agreement(db)
    return database.write(checks.keyword_agreement)
