"""Homes of one person for tests of sync: real databases, clocks that go wrong, and a mailbox."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from lore.redaction.redactor import Redactor
from lore.store import sync_rows
from lore.store.database import Connection, Database, open_database
from lore.store.sqlite import SqliteConnection
from lore.sync.batch import Applied
from lore.sync.replica import ChangePage, Replica

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RAM = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


class Killed(Exception):
    """The process was killed at a statement."""


@cache
def empty_database() -> bytes:
    """Return the file of an empty database: creating one takes longer than copying it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        open_database(path, busy_timeout_s=5, backups=None).close()
        return path.read_bytes()


class Machine:
    """One home: a database, a clock of its own, and what it knows of the others."""

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self.name = name
        self.folder = folder or Path(tempfile.mkdtemp(dir=RAM))
        self.skew = timedelta()
        self.time = NOON
        path = self.folder / "memory.db"
        path.write_bytes(empty_database())
        self.database: Database = open_database(
            path, busy_timeout_s=5, backups=self.folder / "backups", now=self.now
        )
        self.replica = Replica(self.database, Redactor(bytes(32)))
        self.pulled: dict[str, str] = {}
        self.pushed: dict[str, str] = {}

    def now(self) -> datetime:
        self.time += timedelta(milliseconds=7)
        return self.time + self.skew

    def write(self, work: Callable[[Connection], Any]) -> Any:
        return self.database.write(work)

    def page_from(self, other: Machine, limit: int = 250) -> ChangePage:
        cursor = self.pulled.get(other.name, "")
        return other.replica.changes(cursor, without=self.replica.machine, limit=limit)

    def receive(self, page: ChangePage, other: Machine) -> Applied:
        return self.replica.apply(page.records, via=other.replica.machine)

    def receive_and_die(self, page: ChangePage, other: Machine, statement: int) -> bool:
        """Apply a page in a process that is killed at a statement; return whether it was."""

        def die(db: Connection) -> Applied:
            left = statement

            def trace(_cursor: object, _sql: str, _values: object) -> bool:
                nonlocal left
                left -= 1
                if not left:
                    raise Killed
                return True

            assert isinstance(db, SqliteConnection)
            db.raw.exec_trace = trace
            try:
                return apply(db)
            finally:
                db.raw.exec_trace = None

        apply = self.replica.prepare_apply(page.records, via=other.replica.machine)
        try:
            self.database.write(die)
        except Killed:
            return True
        return False

    def sync_with(self, hub: Machine) -> int:
        """Pull and push all there is; return how many records travelled."""
        self.replica.scan()
        hub.replica.scan()
        count = 0
        for one, other in ((self, hub), (hub, self)):
            more = True
            while more:
                page = one.page_from(other)
                one.receive(page, other)
                one.pulled[other.name] = page.cursor
                count, more = count + len(page.records), page.more
            one.replica.scan()
        return count

    def state(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return all that sync exchanges."""
        with self.database.read() as db:
            return {
                (kind, one.identity): {name: value for name, (value, _) in one.values.items()}
                for kind in sync_rows.KINDS
                for one in sync_rows.read_all(db, kind)
            }

    def bytes(self) -> bytes:
        """Return what is on the disk, once deleted pages are rewritten."""
        self.database.erase_traces()
        return b"".join(
            file.read_bytes() for file in sorted(self.folder.rglob("*")) if file.is_file()
        )

    def close(self) -> None:
        self.database.close()
        shutil.rmtree(self.folder, ignore_errors=True)
