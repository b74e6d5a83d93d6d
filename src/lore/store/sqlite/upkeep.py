"""Upkeep of a SQLite file: its log, its size, traces of deleted rows, damage, companions."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from lore.errors import StoreBusy, StoreDamaged
from lore.store.sqlite.connection import PATIENT_RETRY_S, Connection, open_connection

if TYPE_CHECKING:
    from pathlib import Path

_CHECKPOINT_S = 15.0
"""So long a forgetting waits for readers and other checkpoints to be done."""

_CHECK_S = 10.0


def companions(path: Path) -> list[Path]:
    """Return the files that SQLite keeps beside a database while it is in use."""
    return [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def count_bytes(db: Connection) -> int:
    """Return how large the database is."""
    return int(db.value("PRAGMA page_count")) * int(db.value("PRAGMA page_size"))


def journal_of(db: Connection) -> str:
    """Return the name of the journal that makes writes durable."""
    return str(db.value("PRAGMA journal_mode"))


def empty_log(connection: Connection, *, patience_s: float = _CHECKPOINT_S) -> None:
    """Fold the log into the database file and cut it to nothing."""
    deadline = time.monotonic() + patience_s
    busy = 1
    while busy and time.monotonic() < deadline:
        busy, *_ = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if busy:
            time.sleep(PATIENT_RETRY_S)
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
