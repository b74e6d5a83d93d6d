"""The database: a pool of readers, and one writer thread that commits queued writes in groups."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lore import clock
from lore.errors import InvalidInput, StoreDamaged, StoreError, StoreFull, StoreReadOnly
from lore.index.vector_index import VectorIndex
from lore.lazy_dataclass import dataclass
from lore.store import files, migrations, sqlite
from lore.store.codec import pack_json, unpack_json
from lore.store.overview import loaded_overview
from lore.store.sql_connection import Connection
from lore.store.sqlite.database_file import (
    companion_files,
    external_columns,
    external_rows,
    open_external,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lore.index.nearest_items import Nearest, NearestItems, VectorServer
    from lore.index.quantization import Float32s
    from lore.index.vector_index import VectorFilter
    from lore.store.postgres.server_database import PostgresDatabase


@dataclass(slots=True)
class QueuedWrite:
    """A write that waits in the queue, with its result or error."""

    work: Callable[[Connection], Any]
    key: str = ""
    patient: bool = False
    future: Future[Any] = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None

    def deliver(self) -> None:
        """Resolve the future with the result or the error."""
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def run_group(db: Connection, group: Sequence[QueuedWrite], now: clock.Clock) -> None:
    """Run writes in one transaction; a write that fails does not affect the others.

    Raise if the transaction cannot be committed: then none of the writes happened. After a disk
    failure during the commit this is unknown, and repeating them with their keys is safe.
    """
    db.begin_write()
    try:
        for write in group:
            _run_one(db, write, now)
        db.rows("COMMIT")
    finally:
        if db.in_transaction:
            with suppress(StoreError):
                db.rows("ROLLBACK")


def fail_group(group: Sequence[QueuedWrite], error: BaseException) -> None:
    """Set an error on all writes of a transaction that failed."""
    kind = type(error) if isinstance(error, StoreError) else StoreError
    reason = str(error) if isinstance(error, StoreError) else f"The write failed: {error!r}"
    hint = error.hint if isinstance(error, StoreError) else ""
    for write in group:
        write.error = write.error or kind(reason, hint=hint)


def _run_one(db: Connection, write: QueuedWrite, now: clock.Clock) -> None:
    """Run one write in its own savepoint, so that its failure rolls back nothing else."""
    digest = key_digest(write.key) if write.key else ""
    if digest:
        receipt = db.find("SELECT result FROM receipts WHERE key = :key", key=digest)
        if receipt:
            write.result = unpack_json(receipt[0])
            return
    db.rows("SAVEPOINT one")
    try:
        write.result = write.work(db)
        if digest:
            packed = pack_json(write.result)
            db.insert("receipts", key=digest, result=packed, at=clock.to_us(now()))
        db.rows("RELEASE SAVEPOINT one")
    except Exception as error:
        write.error = error
        if not db.in_transaction:
            # SQLite rolled the whole transaction back: the disk is full or failed.
            raise error if isinstance(error, StoreError) else StoreError(str(error)) from error
        db.rows("ROLLBACK TO SAVEPOINT one")
        db.rows("RELEASE SAVEPOINT one")


def key_digest(key: str) -> str:
    """Return the digest under which an idempotency key is stored; a key may quote content."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


__all__ = [
    "Connection",
    "Database",
    "companion_files",
    "external_columns",
    "external_rows",
    "open_database",
    "open_external",
]

T = TypeVar("T")

_MAX_GROUP = 256
"""At most this many writes share one commit."""

_GROUP_WAIT_S = 1.0
"""A patient write waits this long for others to share its commit."""

_CLOSE_TIMEOUT_S = 30.0

_IDLE_WRITER_S = 10.0
"""The writer frees its page cache, up to 16 MB, when nothing was written for this long."""

_MAX_IDLE_READERS = 8
"""At most this many idle connections are kept for the next reader."""

_SPARE_READERS = 2
"""Idle connections that stay open when memory is released."""

logging.getLogger("lore").addHandler(logging.NullHandler())
log = logging.getLogger("lore.store")


class Database:
    """One open database, safe for many threads and beside other processes; here a SQLite file."""

    keeps_connections = True
    """Whether idle connections are kept here; an engine with a pool has its own."""

    has_index_files = True
    """Whether vectors are searched in files beside the database; an engine may search its rows."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_s: float,
        read_only: bool = False,
        full: bool = False,
        now: clock.Clock = clock.now,
        program_steps: int | None = None,
    ) -> None:
        """Prepare a database; `program_steps` are the migrations that this program knows."""
        self.path = path
        self._program_steps = program_steps
        self.read_only = read_only
        self.full = full
        self.now = now
        self.vector_server: VectorServer | None = None
        """Where vectors are searched, if not here."""
        self._busy_timeout_s = busy_timeout_s
        self._local = threading.local()
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._queue: deque[QueuedWrite] = deque()
        self._wakes_writer = threading.Event()
        """Set for the first write in the queue, and for each that is not patient."""
        self._writer: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()

    @property
    def place(self) -> str:
        """Return what tells this database from a copy of it elsewhere."""
        return str(self.path.stat().st_ino)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection of this thread; everything read inside sees one snapshot."""
        inner: Connection | None = getattr(self._local, "connection", None)
        if inner is not None:
            yield inner
            return
        connection = self._take_reader()
        try:
            connection.begin_snapshot()
            self._local.connection = connection
            yield connection
        finally:
            self._local.connection = None
            self._release_reader(connection)

    def _take_reader(self) -> Connection:
        with self._lock:
            self._require_open()
            if self._idle:
                return self._idle.pop()
        return self.connect()

    def _release_reader(self, connection: Connection) -> None:
        with suppress(StoreError):
            connection.end_snapshot()
            with self._lock:
                is_full = len(self._idle) >= _MAX_IDLE_READERS
                if self.keeps_connections and not self._closed and not is_full:
                    self._idle.append(connection)
                    return
        _close_quietly(connection)

    def close_idle_readers(self) -> None:
        """Close the idle connections but the two used last, with their page caches."""
        with self._lock:
            idle, self._idle = self._idle[:-_SPARE_READERS], self._idle[-_SPARE_READERS:]
        for connection in idle:
            _close_quietly(connection)

    def _require_open(self) -> None:
        if self._process != os.getpid():
            msg = "This memory was opened before the process was forked."
            raise StoreError(msg, hint="Open a separate memory in each process.")
        if self._closed:
            msg = "The memory is closed."
            raise StoreError(msg)

    def write(self, work: Callable[[Connection], T], *, key: str = "") -> T:
        """Run `work` in a write transaction and return its result once it is durable.

        A write whose key was seen before does nothing and returns the former result, which must be
        JSON.
        """
        result: T = self.submit(work, key=key).result()
        return result

    def submit(
        self, work: Callable[[Connection], T], *, key: str = "", patient: bool = False
    ) -> Future[T]:
        """Queue a write and return its future, which is done once the write is durable.

        A patient write waits a moment for others to share its commit.
        """
        if self.full:
            raise files.disk_full_error(self.path)
        if self.read_only:
            msg = f"{self.path} is open read-only."
            raise StoreReadOnly(msg, hint="Run 'lore doctor' to find out why.")
        write = QueuedWrite(work, key, patient)
        with self._lock:
            self._require_open()
            if self._writer is threading.current_thread():
                msg = "A write cannot wait for another write."
                raise StoreError(msg)
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._write_loop, name="lore-writer", daemon=True
                )
                self._writer.start()
            self._queue.append(write)
            if not patient or len(self._queue) in {1, _MAX_GROUP}:
                self._wakes_writer.set()
        return write.future

    def write_alone(self, work: Callable[[Connection], object]) -> None:
        """Run a large write in a transaction of its own.

        Writes that share a commit can be undone one by one, for which SQLite holds the pages that
        they change in memory.
        """
        with self._separate_connection() as connection:
            connection.begin_write()
            work(connection)
            connection.rows("COMMIT")

    def open_index(self, folder: Path, *, identity: str, dimension: int) -> NearestItems:
        """Open the index of the vectors of an embedder, here or on the vector server."""
        with self.read() as db:
            epoch = str(find_meta(db, "epoch"))
        if self.vector_server is None:
            return self.open_own_index(folder, identity=identity, dimension=dimension, epoch=epoch)
        from lore.index.qdrant_points import QdrantPoints, outage_of  # an extra, a slow import
        from lore.store.qdrant_index import QdrantIndex

        return QdrantIndex(
            self,
            QdrantPoints(self.vector_server, identity=identity, dimension=dimension, epoch=epoch),
            identity=identity,
            fallback=partial(self.search_stored, identity),
            outage=outage_of(self.vector_server.url) if self.vector_server.is_of_many else None,
        )

    def open_own_index(
        self, folder: Path, *, identity: str, dimension: int, epoch: str
    ) -> NearestItems:
        """Open the index that belongs to the database; of a SQLite database it is a file."""
        return VectorIndex.open(
            folder,
            identity=identity,
            dimension=dimension,
            epoch=epoch,
            writable=not self.read_only,
        )

    def search_stored(
        self, identity: str, db: Connection, unit: Float32s, k: int, where: VectorFilter | None
    ) -> Nearest | None:
        """Search the vectors in the database itself; None if that would take too long."""
        from lore.store import vectors

        return vectors.scan_stored(db, vectors.find_embedder(db, identity), unit, k, where)

    def dump_rows(self, *, portable: bool = True) -> Iterator[bytes]:
        """Yield every row as a line of JSON, all of one moment; that of a file is portable."""
        del portable
        with self.read() as db:
            yield from sqlite.dump_rows(db)

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database file."""
        with self._separate_connection() as connection:
            sqlite.checkpoint(connection)

    def erase_traces(self) -> None:
        """Leave no bytes of deleted rows in the file or its log, by rewriting the file."""
        with self._separate_connection() as connection:
            sqlite.erase_traces(connection)

    def copy_to(self, target: Path, finish: Callable[[Path], None] | None = None) -> None:
        """Write a consistent copy to a file while others keep reading and writing."""
        with self._separate_connection() as connection:
            sqlite.copy_database(connection, target, finish)

    def close(self) -> None:
        """Finish queued writes and close all connections; those in use close after use."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            writer = self._writer
        if writer is not None:
            self._wakes_writer.set()
            writer.join(_CLOSE_TIMEOUT_S)
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            _close_quietly(connection)

    def connect(self, cache_kib: int = sqlite.READER_KIB) -> Connection:
        """Open a connection of the caller's own."""
        return sqlite.open_connection(
            self.path,
            busy_timeout_s=self._busy_timeout_s,
            read_only=self.read_only,
            cache_kib=cache_kib,
            program_steps=self._program_steps,
        )

    @contextmanager
    def _separate_connection(self) -> Iterator[Connection]:
        connection = self.connect()
        try:
            yield connection
        finally:
            connection.close()

    def _write_loop(self) -> None:
        connection: Connection | None = None
        while True:
            if connection is not None and not self._wakes_writer.wait(_IDLE_WRITER_S):
                connection.release_memory()
            group, last = self._next_group()
            if group:
                try:
                    connection = connection or self.connect(sqlite.WRITER_KIB)
                    run_group(connection, group, self.now)
                except BaseException as error:  # noqa: BLE001 - callers wait for each of these
                    fail_group(group, error)
                    _close_quietly(connection)
                    connection = None
                if not self.keeps_connections:
                    _close_quietly(connection)
                    connection = None
                for write in group:
                    write.deliver()
            if last:
                _close_quietly(connection)
                return

    def _next_group(self) -> tuple[list[QueuedWrite], bool]:
        """Wait for a write and take those queued behind it; True when the queue is closed."""
        self._wakes_writer.wait()
        with self._lock:
            self._wakes_writer.clear()
            may_wait = all(write.patient for write in self._queue) and not self._closed
        if may_wait:
            self._wakes_writer.wait(_GROUP_WAIT_S)
        with self._lock:
            count = min(len(self._queue), _MAX_GROUP)
            group = [self._queue.popleft() for _ in range(count)]
            if self._queue or self._closed:
                self._wakes_writer.set()
            else:
                self._wakes_writer.clear()
            last = self._closed and not self._queue
        return [write for write in group if write.future.set_running_or_notify_cancel()], last


def open_on_server(  # noqa: PLR0913 - how a memory is opened, by name
    url: str,
    owner: str,
    path: Path,
    *,
    busy_timeout_s: float,
    now: clock.Clock = clock.now,
    connections: int = 32,
    cache_mb: int = 256,
    create: bool = True,
) -> PostgresDatabase:
    """Open the memory of an owner on a PostgreSQL server; `path` is where its local files are.

    Without `create`, an owner who has no rows gets none, and no folder is made.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        msg = "'store.url' must begin with postgresql://."
        raise InvalidInput(msg, hint="Leave it empty to keep the memory in a SQLite file.")
    if not owner:
        msg = "A memory on PostgreSQL needs the name of its owner."
        raise InvalidInput(msg, hint="Set 'store.owner' (LORE_STORE_OWNER).")
    try:
        from lore.store.postgres.server_database import open_postgres  # an extra, and a slow import
    except ModuleNotFoundError as error:
        msg = "A memory on PostgreSQL needs the package psycopg."
        raise StoreError(msg, hint="Install agent-lore[postgres].") from error
    if create:
        files.make_folder(path.parent)
    return open_postgres(
        url, owner, path, busy_timeout_s=busy_timeout_s, now=now, connections=connections,
        cache_mb=cache_mb, create=create,
    )  # fmt: skip


def open_database(  # noqa: PLR0913 - how a file is opened, by name
    path: Path,
    *,
    busy_timeout_s: float,
    backups: Path | None,
    read_only: bool = False,
    full: bool = False,
    now: clock.Clock = clock.now,
    seal: Callable[[Path], None] | None = None,
    steps: Sequence[migrations.Migration] = migrations.MIGRATIONS,
) -> Database:
    """Open or create a database and migrate its schema by `steps`, after a backup to `backups`.

    `seal` seals that backup. A damaged file, or one on a full disk, is opened read-only so that its
    content can be saved. A file of another program, or one that a newer Lore changed so that this
    one cannot use it, is refused and not changed.
    """
    if not read_only:
        files.make_folder(path.parent)
        _refuse_lost_database(path, backups)
        read_only = _is_read_only_file(path)
    database = Database(
        path, busy_timeout_s=busy_timeout_s, read_only=read_only, full=full, now=now,
        program_steps=len(steps),
    )  # fmt: skip
    try:
        if not read_only:
            sqlite.roll_back(path, busy_timeout_s)
        if read_only or _has_content(path):
            _check_schema(path, busy_timeout_s, steps)
        if not read_only:
            migrations.migrate(database, backups, steps, seal=seal)
            _warn_if_shared(path)
    except (StoreDamaged, StoreFull) as error:
        database.close()
        if read_only or not _has_content(path):
            raise
        full = isinstance(error, StoreFull)
        reason = "no space left" if full else "database damaged"
        log.warning("opened for reading only", extra={"reason": reason})
        return open_database(
            path, busy_timeout_s=busy_timeout_s, backups=backups, read_only=True, full=full,
            now=now, steps=steps,
        )  # fmt: skip
    except BaseException:
        database.close()
        raise
    return database


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _refuse_lost_database(path: Path, backups: Path | None) -> None:
    """Refuse an empty file beside backups: it was a memory before and is no new one."""
    if backups is None or not path.exists() or _has_content(path):
        return
    if newest := max(backups.glob("*.db"), default=None):
        msg = f"{path} is empty, but it has backups."
        hint = f"'lore restore {newest}' brings one back; delete the empty file to start anew."
        raise StoreDamaged(msg, hint=hint)


def _check_schema(path: Path, busy_timeout_s: float, steps: Sequence[migrations.Migration]) -> None:
    """Refuse a file that this version of Lore must not change."""
    connection = sqlite.open_connection(path, busy_timeout_s=busy_timeout_s, read_only=True)
    try:
        migrations.check(connection, steps)
    finally:
        _close_quietly(connection)


def _warn_if_shared(path: Path) -> None:
    shared = files.shared_file_system(path)
    if shared:
        log.warning("shared file system, slower journal", extra={"file_system": shared})


def _is_read_only_file(path: Path) -> bool:
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _close_quietly(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(StoreError):
            connection.close()


def find_meta(db: Connection, key: str) -> str | None:
    """Return a value of the table `meta`, or None."""
    overview = loaded_overview(db)
    if overview is not None and key in overview.meta:
        return overview.meta[key]
    sql = "SELECT value FROM meta WHERE key = :key"
    value = db.once(("meta", key), lambda: db.value(sql, key=key))
    return None if value is None else str(value)


def set_meta(db: Connection, key: str, value: str) -> None:
    """Store a value in the table `meta`, replacing the former one."""
    db.upsert("meta", ("key",), key=key, value=value)


def remove_meta(db: Connection, key: str) -> None:
    """Remove a value from the table `meta`."""
    db.run("DELETE FROM meta WHERE key = :key", key=key)
