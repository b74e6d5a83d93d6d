"""Memories on PostgreSQL: the readers and the writer of one owner, who share a pool with others."""

from __future__ import annotations

import uuid
from functools import cache
from typing import TYPE_CHECKING

from lore import clock
from lore.errors import InvalidInput
from lore.store.database import Database
from lore.store.postgres import schema
from lore.store.postgres.owner_connection import Pool, PostgresConnection, owner_of
from lore.store.postgres.vector_rows import PostgresVectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lore.index.nearest_items import Nearest, NearestItems
    from lore.index.quantization import Float32s
    from lore.index.vector_index import VectorFilter
    from lore.store.sql_connection import Connection


class PostgresDatabase(Database):
    """The memory of one owner on a PostgreSQL server, safe for many threads and processes.

    `path` is where its local files are: the lock of consolidation and the journal of spending.
    """

    keeps_connections = False

    def __init__(
        self,
        pool: Pool,
        owner: uuid.UUID,
        path: Path,
        *,
        busy_timeout_s: float,
        now: clock.Clock = clock.now,
    ) -> None:
        super().__init__(path, busy_timeout_s=busy_timeout_s, now=now)
        self._pool = pool
        self.owner = owner
        self._has_left = False
        pool.join()

    @property
    def place(self) -> str:
        """Return whose rows these are; a copy of the whole server counts as the same."""
        return self.owner.hex

    def connect(self, cache_kib: int = 0) -> Connection:
        """Take a connection of the pool; closing it gives it back."""
        del cache_kib
        return PostgresConnection(
            self._pool.take(),
            self.path,
            self.owner,
            pool=self._pool,
            busy_timeout_s=self._busy_timeout_s,
        )

    def open_own_index(
        self, folder: Path, *, identity: str, dimension: int, epoch: str
    ) -> NearestItems:
        """Return the index of the vectors of an embedder, which is in the database."""
        del folder, epoch
        return PostgresVectorIndex(self, identity, dimension)

    def search_stored(
        self, identity: str, db: Connection, unit: Float32s, k: int, where: VectorFilter | None
    ) -> Nearest | None:
        """Search the rows of pgvector, which are there anyway."""
        del db
        return PostgresVectorIndex(self, identity, len(unit)).search(unit, k, where=where)

    def close(self) -> None:
        """Finish queued writes; the last memory of a pool closes its connections."""
        super().close()
        if not self._has_left:
            self._has_left = True
            self._pool.leave()

    def checkpoint(self) -> None:
        """Do nothing: the server moves its own log."""

    def erase_traces(self) -> None:
        """Do nothing: the server reuses the space of deleted rows by itself (autovacuum)."""

    def copy_to(self, target: Path, finish: Callable[[Path], None] | None = None) -> None:
        """Refuse: a copy of the database is the server's business."""
        del target, finish
        msg = "A memory on PostgreSQL has no file to copy."
        hint = "Use pg_dump for the whole database, or 'lore export' for this memory."
        raise InvalidInput(msg, hint=hint)


@cache
def _pool(url: str) -> Pool:
    return Pool(url)


def open_postgres(
    url: str, owner: str, path: Path, *, busy_timeout_s: float, now: clock.Clock = clock.now
) -> PostgresDatabase:
    """Open the memory of an owner; create or migrate the schema if the role may do so."""
    schema.prepare(url, path)
    database = PostgresDatabase(
        _pool(url), owner_of(owner), path, busy_timeout_s=busy_timeout_s, now=now
    )
    try:
        database.write(_ensure_epoch)
    except BaseException:
        database.close()
        raise
    return database


def _ensure_epoch(db: Connection) -> None:
    db.rows("SELECT register_owner()")
    db.insert_unless_exists("meta", key="epoch", value=uuid.uuid4().hex)
