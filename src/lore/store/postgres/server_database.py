"""Memories on PostgreSQL: the readers and the writer of one owner, who share a pool with others."""

from __future__ import annotations

import threading
import uuid
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from lore import clock
from lore.errors import InvalidInput
from lore.store.database import Database
from lore.store.postgres import owner_rows, schema
from lore.store.postgres.owner_connection import (
    MOST_CONNECTIONS,
    Pool,
    PostgresConnection,
    owner_of,
)
from lore.store.postgres.owner_vector_cache import DEFAULT_MB
from lore.store.postgres.vector_rows import PostgresVectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from lore.index.nearest_items import Nearest, NearestItems
    from lore.index.quantization import Float32s
    from lore.index.vector_index import VectorFilter
    from lore.store.postgres.owner_vector_cache import VectorCache
    from lore.store.sql_connection import Connection


class PostgresDatabase(Database):
    """The memory of one owner on a PostgreSQL server, safe for many threads and processes.

    `path` is where its local files are: the lock of consolidation and the journal of spending.
    """

    keeps_connections = False
    has_index_files = False

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

    def connect(self, cache_kib: int = 0) -> PostgresConnection:
        """Take a connection of the pool; closing it gives it back."""
        del cache_kib
        return PostgresConnection(
            self._pool.take(writes=threading.current_thread() is self._writer),
            self.path,
            self.owner,
            pool=self._pool,
            busy_timeout_s=self._busy_timeout_s,
        )

    @property
    def vector_cache(self) -> VectorCache:
        """The vectors in the memory of this process, of all owners of the pool."""
        return self._pool.vectors

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

    @contextmanager
    def _transaction(self) -> Iterator[PostgresConnection]:
        """Yield a connection in a write transaction of its own, which the block's end commits."""
        connection = self.connect()
        try:
            connection.begin_write()
            yield connection
            connection.rows("COMMIT")
        finally:
            connection.close()

    @contextmanager
    def lock(self) -> Iterator[PostgresConnection]:
        """Yield a connection that has the owner's write lock; commit at the end of the block.

        The block may take as long as it wants to, also if it does nothing with the connection.
        """
        with self._transaction() as db:
            db.rows("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield db

    def erase_rows(self) -> None:
        """Delete every row of the owner in all tables, or none."""
        with self._transaction() as db:
            owner_rows.erase(db)
        self.vector_cache.release(self.owner)

    def dump_rows(self, *, portable: bool = False) -> Iterator[bytes]:
        """Yield every row of the owner as a line of JSON, all of one moment."""
        with self.read() as db:
            assert isinstance(db, PostgresConnection)
            yield from owner_rows.dump(db, portable=portable)

    def load_rows(self, lines: Iterable[bytes]) -> int:
        """Insert dumped rows as those of the owner, all or none; return how many."""
        with self._transaction() as db:
            return owner_rows.load(db, lines)

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


def open_postgres(  # noqa: PLR0913 - how a memory is opened, by name
    url: str,
    owner: str,
    path: Path,
    *,
    busy_timeout_s: float,
    now: clock.Clock = clock.now,
    connections: int = MOST_CONNECTIONS,
    cache_mb: int = DEFAULT_MB,
    create: bool = True,
) -> PostgresDatabase:
    """Open the memory of an owner; create or migrate the schema if the role may do so.

    Without `create`, an owner who has no rows gets none.
    """
    pool = _pool(url)
    pool.most, pool.vectors.most_bytes = connections, cache_mb * 1_000_000
    _prepare(pool, path)
    database = PostgresDatabase(pool, owner_of(owner), path, busy_timeout_s=busy_timeout_s, now=now)
    try:
        if create:
            database.write(_ensure_epoch)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(pool: Pool, path: Path) -> None:
    """Create or migrate the schema; once that is done, look with a connection of the pool."""
    if pool.is_prepared:
        raw = pool.take()
        try:
            if schema.is_current(raw):
                return
        finally:
            pool.give_back(raw)
    schema.prepare(pool.url, path)
    pool.is_prepared = True


def _ensure_epoch(db: Connection) -> None:
    db.rows("SELECT register_owner()")
    db.insert_unless_exists("meta", key="epoch", value=uuid.uuid4().hex)
