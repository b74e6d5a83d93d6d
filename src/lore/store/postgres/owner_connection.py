"""Connections to PostgreSQL: a pool, transactions of one owner, statements, and errors.

Whoever opens a memory logs in with their own role; every transaction of the store then runs as the
application role, for which row-level security holds without exception.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import psycopg
from psycopg import errors, postgres
from psycopg.abc import DumperKey
from psycopg.adapt import Buffer, Dumper, Loader, PyFormat
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper, NumericBinaryLoader

from lore.errors import (
    InvalidInput,
    LoreError,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)
from lore.store.postgres import program, vector_rows, word_tables
from lore.store.postgres.dialect import (
    is_query,
    parameter_names,
    split_insert,
    translate,
    translate_query,
)
from lore.store.postgres.owner_vector_cache import VectorCache
from lore.store.row_lines import NUL, NUL_SIGN
from lore.store.sql_connection import BoundArray, Connection, FullText, Row, newer_schema_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

SCHEMA = "lore"
"""The schema of all tables, functions and extensions of Lore."""

APPLICATION_ROLE = "lore_app"
"""The role that reads and writes rows: it owns no table and cannot bypass row-level security."""

_CONNECT_TIMEOUT_S = 10
_MAX_IDLE = 8
"""At most this many idle connections of a process are kept, whatever the number of owners."""

MOST_CONNECTIONS = 32
"""Connections of a process to one database, if the setting says nothing else."""

_WRITERS_SHARE = 4
"""One of this many connections is for writers alone: readers may wait for a write."""

_STATEMENTS_AT_ONCE = 500
"""Statements, or rows of an INSERT, that are sent together."""

_PREPARE_AFTER, _MAX_PREPARED = 1, 300
"""A query that is repeated is prepared; a connection keeps this many."""

_PLANNING = "SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"
"""Statements are short: planning or compiling one takes longer than running it. A prepared one is
planned once, whatever the values. No statement wants the rows of all owners, so each table is read
by an index, which begins with the owner, also while it is small."""


def owner_of(name: str) -> uuid.UUID:
    """Return the owner that the rows of a user carry: a hash of the user's name."""
    return uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16])


def translate_error(error: psycopg.Error) -> StoreError:
    """Translate an error of PostgreSQL into one of Lore; the only place that does so."""
    busy = errors.LockNotAvailable | errors.QueryCanceled | errors.DeadlockDetected
    if isinstance(error, busy | errors.SerializationFailure):
        return StoreBusy(
            "Timed out: another process has been writing to this memory for too long.",
            hint="Try again; the setting 'store.busy_timeout_s' is the timeout.",
        )
    if isinstance(error, errors.DiskFull | errors.OutOfMemory):
        return StoreFull("The database server has no space left.")
    if isinstance(error, errors.ReadOnlySqlTransaction | errors.InsufficientPrivilege):
        return StoreReadOnly(
            f"The database refuses to write: {error.diag.message_primary}",
            hint="Check the privileges of the role in 'store.url'.",
        )
    if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName):
        return StoreError(
            "The database has no tables of Lore.",
            hint="Open the memory once with a role that may create them.",
        )
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnreachable(
            f"The database server cannot be reached: {_reason(error)}",
            hint="Check 'store.url', and whether the server runs.",
        )
    return StoreError(
        f"PostgreSQL reported an error: {error.diag.message_primary or _first_line(error)}"
    )


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _reason(error: psycopg.Error) -> str:
    """Return why a connection failed, without the address: callers of a server may read it."""
    return _first_line(error).rpartition(" failed: ")[2].removeprefix("FATAL:").strip()


class _ArrayDumper(Dumper):
    """Writes the values of `among` as the literal of an array."""

    def dump(self, obj: BoundArray) -> Buffer:
        if isinstance(obj.values, np.ndarray):
            return b"{" + b",".join(b"%d" % n for n in obj.values.tolist()) + b"}"
        quoted = (f'"{_escaped(text)}"' for text in obj.values)
        return "{{{}}}".format(",".join(quoted)).encode()

    def quote(self, obj: BoundArray) -> Buffer:
        kind = b"bigint[]" if isinstance(obj.values, np.ndarray) else b"text[]"
        literal = bytes(self.dump(obj)).replace(b"'", b"''")
        return b"'" + literal + b"'::" + kind


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace(NUL, NUL_SIGN)


class _NumbersDumper(Dumper):
    """Writes numbers of `among` as the server stores an array."""

    format = Format.BINARY
    oid = postgres.types["int8"].array_oid

    _HEAD = struct.Struct("!iIIii")
    _ELEMENT: ClassVar = np.dtype([("size", ">i4"), ("value", ">i8")])

    def dump(self, obj: BoundArray) -> Buffer:
        elements = np.empty(len(obj.values), self._ELEMENT)
        elements["size"] = 8
        elements["value"] = obj.values
        head = self._HEAD.pack(1, 0, postgres.types["int8"].oid, len(elements), 1)
        return head + elements.tobytes()


class _TextsDumper(_ArrayDumper):
    """Writes texts of `among` as an array."""

    oid = postgres.types["text"].array_oid


class _BoundDumper(Dumper):
    """Chooses how the values of `among` are written as a parameter."""

    format = Format.BINARY

    def get_key(self, obj: BoundArray, format: PyFormat) -> DumperKey:  # noqa: ARG002 - as psycopg calls it
        return (BoundArray, np.ndarray if isinstance(obj.values, np.ndarray) else tuple)

    def upgrade(self, obj: BoundArray, format: PyFormat) -> Dumper:  # noqa: ARG002 - as psycopg calls it
        is_numbers = isinstance(obj.values, np.ndarray)
        return (_NumbersDumper if is_numbers else _TextsDumper)(BoundArray, self.connection)

    def dump(self, obj: BoundArray) -> Buffer | None:
        return self.upgrade(obj, PyFormat.AUTO).dump(obj)


class _BoolDumper(Dumper):
    """Writes a truth value as a literal that fits columns of numbers and conditions."""

    def dump(self, obj: bool) -> Buffer:  # noqa: FBT001 - as psycopg calls it
        return b"1" if obj else b"0"

    def quote(self, obj: bool) -> Buffer:  # noqa: FBT001 - as psycopg calls it
        return b"'1'" if obj else b"'0'"


class _NumberLoader(Loader):
    """Reads a sum of whole numbers as a whole number, others as a float."""

    def load(self, data: Buffer) -> int | float:
        number = Decimal(bytes(data).decode())
        return int(number) if number == number.to_integral_value() else float(number)


class _BinaryNumberLoader(NumericBinaryLoader):
    """Reads the same as the server stores it."""

    def load(self, data: Buffer) -> int | float:  # type: ignore[override]
        number = super().load(data)
        return int(number) if number == number.to_integral_value() else float(number)


_ARRAY_HEAD_BYTES = 20
"""What stands before the elements of an array with one dimension; an empty one is shorter."""


class _Int8ArrayLoader(Loader):
    """Reads an array of numbers, without NULL, as one of numpy."""

    format = Format.BINARY
    kind: ClassVar = np.dtype([("size", ">i4"), ("value", ">i8")])
    native: ClassVar[type] = np.int64

    def load(self, data: Buffer) -> NDArray[Any]:
        if len(data) <= _ARRAY_HEAD_BYTES:
            return np.empty(0, self.native)
        elements = np.frombuffer(data, self.kind, offset=_ARRAY_HEAD_BYTES)
        return elements["value"].astype(self.native)


class _Float8ArrayLoader(_Int8ArrayLoader):
    """Reads an array of floats, without NULL, as one of numpy."""

    kind = np.dtype([("size", ">i4"), ("value", ">f8")])
    native = np.float64


def _register(raw: psycopg.Connection[Any]) -> None:
    raw.adapters.register_dumper(BoundArray, _ArrayDumper)
    raw.adapters.register_dumper(BoundArray, _BoundDumper)
    # One type for all numbers: else a statement is prepared for each size.
    raw.adapters.register_dumper(int, Int8BinaryDumper)
    raw.adapters.register_dumper(bool, _BoolDumper)
    raw.adapters.register_loader("numeric", _NumberLoader)
    raw.adapters.register_loader("numeric", _BinaryNumberLoader)
    raw.adapters.register_loader(postgres.types["int8"].array_oid, _Int8ArrayLoader)
    raw.adapters.register_loader(postgres.types["float8"].array_oid, _Float8ArrayLoader)


def _check_address(url: str) -> None:
    """Refuse an address whose password would be read as something else, without showing it."""
    try:
        hosts = str(conninfo_to_dict(url).get("host", ""))
    except psycopg.ProgrammingError:
        hosts = "@"
    if "@" in hosts:
        msg = "'store.url' cannot be read."
        hint = "Write @, %, / and spaces in its password as %40, %25, %2F and %20."
        raise InvalidInput(msg, hint=hint)


def connect(url: str) -> psycopg.Connection[Any]:
    """Open a connection that commits each statement, with the role of the URL."""
    _check_address(url)
    try:
        raw = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
            cursor_factory=psycopg.ClientCursor,
            application_name="lore",
            # A server that vanished without a word is noticed within a minute.
            keepalives_idle=30,
            keepalives_interval=10,
            keepalives_count=3,
            tcp_user_timeout=30_000,
        )
        _register(raw)
        raw.prepare_threshold, raw.prepared_max = _PREPARE_AFTER, _MAX_PREPARED
        raw.execute(f"SET search_path = {SCHEMA}, public; {_PLANNING}")
    except psycopg.Error as error:
        raise translate_error(error) from error
    return raw


@dataclass(slots=True)
class Pool:
    """The connections of this process to one database; owners share them.

    At most `most` are in use; whoever wants another waits for one that is given back.
    """

    url: str
    most: int = MOST_CONNECTIONS
    wait_s: float = 10.0
    """How long to wait for a connection if all are in use."""
    is_prepared: bool = False
    """Whether the schema was created or found up to date by this process."""
    vectors: VectorCache = field(default_factory=VectorCache)
    _idle: list[psycopg.Connection[Any]] = field(default_factory=list)
    _in_use: int = 0
    _users: int = 0
    _lock: threading.Condition = field(default_factory=threading.Condition)
    _process: int = field(default_factory=os.getpid)

    def take(self, *, writes: bool = False) -> psycopg.Connection[Any]:
        """Return an idle connection or a new one, as the application role; give it back after use.

        Some connections are for those who write.
        """
        with self._lock:
            if self._process != os.getpid():
                self._idle, self._in_use, self._process = [], 0, os.getpid()
                self.vectors = VectorCache(self.vectors.most_bytes)
            most = self.most if writes else self.most - max(1, self.most // _WRITERS_SHARE)
            if not self._lock.wait_for(lambda: self._in_use < most, self.wait_s):
                msg = "All connections to the database are in use."
                raise StoreBusy(msg, hint="Try again; 'store.connections' is how many there are.")
            self._in_use += 1
        try:
            return self._find_idle() or self.connect()
        except BaseException:
            self._end_use()
            raise

    def _find_idle(self) -> psycopg.Connection[Any] | None:
        while True:
            with self._lock:
                raw = self._idle.pop() if self._idle else None
            if raw is None or (not raw.closed and _answers(raw)):
                return raw
            self.vectors.clear()  # the server may come back with an older state

    def _end_use(self) -> None:
        with self._lock:
            self._in_use -= 1
            self._lock.notify_all()

    def connect(self) -> psycopg.Connection[Any]:
        """Open a new connection as the application role."""
        raw = connect(self.url)
        try:
            raw.execute(f"SET ROLE {APPLICATION_ROLE}")
            _require_bounded_role(raw)
        except psycopg.Error as error:
            raw.close()
            raise translate_error(error) from error
        except StoreError:
            raw.close()
            raise
        return raw

    def give_back(self, raw: psycopg.Connection[Any]) -> None:
        """End the use of a connection, and keep it for the next transaction of any owner."""
        self._end_use()
        if raw.closed:
            self.vectors.clear()
        if raw.closed or raw.info.transaction_status != TransactionStatus.IDLE:
            raw.close()
            return
        with self._lock:
            is_used = self._users > 0 and self._process == os.getpid()
            if is_used and len(self._idle) < _MAX_IDLE:
                self._idle.append(raw)
                return
        raw.close()

    def join(self) -> None:
        """Count one more memory that uses the pool."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Count one memory less; with the last one, close the idle connections."""
        with self._lock:
            self._users -= 1
            idle, self._idle = (self._idle, []) if self._users <= 0 else ([], self._idle)
            if self._users <= 0:
                self.vectors.clear()
        for raw in idle:
            raw.close()


def _answers(raw: psycopg.Connection[Any]) -> bool:
    """Return whether the server has not closed a connection while nobody used it."""
    with suppress(psycopg.Error):
        raw.pgconn.consume_input()
        return bool(raw.info.transaction_status == TransactionStatus.IDLE)
    raw.close()
    return False


def _require_bounded_role(raw: psycopg.Connection[Any]) -> None:
    """Refuse a role for which row-level security does not hold."""
    row = raw.execute(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is None or row[0]:
        msg = f"The role '{APPLICATION_ROLE}' bypasses row-level security."
        raise StoreError(msg, hint=f"ALTER ROLE {APPLICATION_ROLE} NOSUPERUSER NOBYPASSRLS;")


class PostgresConnection(Connection):
    """One connection for one owner; every method translates PostgreSQL's errors into Lore's."""

    __slots__ = ("_busy_timeout_s", "_defines", "_is_closed", "owner", "pool", "raw")

    words: ClassVar[FullText] = word_tables
    engine: ClassVar[str] = "PostgreSQL"

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        path: Path,
        owner: uuid.UUID,
        *,
        pool: Pool | None = None,
        read_only: bool = False,
        busy_timeout_s: float = 5.0,
        defines: bool = True,
    ) -> None:
        super().__init__(path, read_only=read_only)
        self.raw = raw
        self.owner = owner
        self.pool = pool
        self._busy_timeout_s = busy_timeout_s
        self._is_closed = False
        self._defines = defines

    def _begin_read(self) -> None:
        self._begin(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{self._own()}{program.REQUIRE}"
        )

    def begin_write(self) -> None:
        """Begin a write transaction: wait for the owner's lock now, not at the first write.

        An owner's writers wait for each other, as in SQLite, and no one else's.
        """
        key = int.from_bytes(self.owner.bytes[:8], "big", signed=True)
        self._begin(
            f"BEGIN{self._own()}; SET LOCAL lock_timeout = {int(self._busy_timeout_s * 1000)};"
            f" SELECT pg_advisory_xact_lock({key}){program.REQUIRE_TO_WRITE}"
        )

    def _begin(self, sql: str) -> None:
        """Begin a transaction, with a new connection if the server has closed this one."""
        try:
            self._execute(sql)
        except (StoreBusy, SchemaTooNew):
            self._execute("ROLLBACK")
            raise
        except StoreError:
            if self.pool is None or not self.raw.closed:
                raise
            self.pool.vectors.clear()
            self.raw = self.pool.connect()
            self._execute(sql)

    def _own(self) -> str:
        return f"; SET LOCAL lore.owner = '{self.owner}'"

    def rows(self, sql: str, /, **params: Any) -> list[Row]:
        """Run a statement and return all its rows."""
        if not self._defines and _DEFINITION.match(sql):
            return []
        cursor = self._run(sql, params)
        result = cursor.pgresult
        return cursor.fetchall() if result is not None and result.nfields else []

    def run(self, sql: str, /, **params: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return max(0, self._run(sql, params).rowcount)

    def run_many(self, sql: str, values: Iterable[Mapping[str, Any] | Row]) -> None:
        """Run a statement once for each set of values, given by name or in order of the names."""
        names = parameter_names(sql)
        named = (
            dict(zip(names, row, strict=True)) if isinstance(row, tuple | list) else row
            for row in values
        )
        insert = split_insert(sql)
        while batch := list(islice(named, _STATEMENTS_AT_ONCE)):
            if insert is None:
                whole = ";".join(self._mogrify(translate(sql), row) for row in batch)
            else:
                before, row_sql, after = insert
                rows = ", ".join(self._mogrify(row_sql, row) for row in batch)
                whole = f"{before}{rows}{after.replace('%%', '%')}"
            self._execute_alone(whole)

    def _mogrify(self, sql: str, params: Mapping[str, Any]) -> str:
        try:
            return psycopg.ClientCursor(self.raw).mogrify(sql, _storable(params))
        except (psycopg.Error, UnicodeError, OverflowError) as error:
            raise self._translated(error) from error

    def _run(self, sql: str, params: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        if is_query(sql):
            return self._query(sql, params)
        translated = translate(sql)
        if not params:
            return self._execute_alone(translated.replace("%%", "%"))
        return self._execute_alone(translated, _storable(params))

    def _query(self, sql: str, params: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        """Run a query whose values the server binds, so that it is planned once."""
        nulls = frozenset(name for name, value in params.items() if value is None)
        translated = translate_query(sql, nulls)
        if len(params) == len(nulls):
            return self._execute_alone(translated.replace("%%", "%"), prepares=True)
        return self._execute_alone(translated, _storable(params), prepares=True)

    def _execute_alone(
        self, sql: str, params: Mapping[str, Any] | None = None, *, prepares: bool = False
    ) -> psycopg.Cursor[Any]:
        """Execute a statement, in a transaction of its own unless one is open."""
        if self._is_closed:
            msg = "The memory is closed."
            raise StoreError(msg)
        if self.in_transaction or sql.lstrip()[:5].upper() == "BEGIN":
            return self._execute(sql, params, prepares=prepares)
        self.begin_write() if not self.read_only else self._begin_read()
        try:
            cursor = self._execute(sql, params, prepares=prepares)
            self._execute("COMMIT")
        except LoreError:
            with suppress(psycopg.Error):
                self.raw.execute("ROLLBACK")
            raise
        return cursor

    def _execute(
        self, sql: str, params: Mapping[str, Any] | None = None, *, prepares: bool = False
    ) -> psycopg.Cursor[Any]:
        try:
            if prepares:
                return psycopg.Cursor(self.raw).execute(sql, params, binary=True)
            return self.raw.execute(sql, params)
        except (psycopg.Error, UnicodeError, OverflowError) as error:
            raise self._translated(error) from error

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or failed and waits for its end."""
        return bool(self.raw.info.transaction_status != TransactionStatus.IDLE)

    def release_memory(self) -> None:
        """Do nothing: the server caches the pages."""

    def close(self) -> None:
        """Give the connection back to its pool, or close it."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.pool is not None:
            if self.in_transaction:
                with suppress(psycopg.Error):
                    self.raw.execute("ROLLBACK")
            self.pool.give_back(self.raw)
        else:
            self.raw.close()

    def index_vectors(self, stored: Sequence[Row]) -> None:
        """Add a row for each passage of new vectors."""
        vector_rows.add(self, stored)

    def next_number(self, table: str) -> int:
        """Return the number of the next row of a table whose numbers are not used again."""
        return int(self.value("SELECT next_number(:table)", table=table))

    def set_next_number(self, table: str, number: int) -> None:
        """Set the least number of the next row of a table whose numbers are not used again."""
        self.rows("SELECT use_number(:table, :number)", table=table, number=number - 1)

    def has_table(self, name: str) -> bool:
        """Return whether the database has a table of this name."""
        return self.value("SELECT to_regclass(:name)", name=f"{SCHEMA}.{name}") is not None

    def is_empty_database(self) -> bool:
        """Return whether the schema has no tables."""
        sql = "SELECT 1 FROM pg_tables WHERE schemaname = :schema LIMIT 1"
        return self.find(sql, schema=SCHEMA) is None

    def size(self) -> int:
        """Return the size of the owner's texts and vectors in bytes, without indexes."""
        return int(
            self.value(
                "SELECT (SELECT coalesce(sum(pg_column_size(m.*)), 0) FROM messages m)"
                " + (SELECT coalesce(sum(pg_column_size(f.*)), 0) FROM fragments f)"
                " + (SELECT coalesce(sum(pg_column_size(d.*)), 0) FROM distillations d)"
                " + (SELECT coalesce(sum(length(v.vector)), 0) FROM vectors v)"
            )
        )

    def journal_mode(self) -> str:
        """Return how the server keeps its journal: always as a write-ahead log."""
        return "wal"

    @property
    def place(self) -> str:
        """The database and its server, as people see them."""
        return f"PostgreSQL, database {self.raw.info.dbname} on {self.raw.info.host}"

    @property
    def cache_key(self) -> str:
        """The owner and the database: owners may share the folder of local files."""
        return f"{self.owner} {self.place}"

    def integrity_problems(self) -> list[str]:
        """Return nothing: the server checks its own files."""
        return []

    def _translated(self, error: Exception) -> LoreError:
        if isinstance(error, psycopg.DataError) and error.sqlstate is None:
            return InvalidInput(f"A value cannot be stored: {error}")
        if isinstance(error, errors.NumericValueOutOfRange | errors.ProgramLimitExceeded):
            return InvalidInput(f"A value cannot be stored: {error.diag.message_primary}")
        if isinstance(error, psycopg.Error):
            is_too_old = error.sqlstate == program.TOO_OLD
            return newer_schema_error(program.PLACE) if is_too_old else translate_error(error)
        return InvalidInput(f"A value cannot be stored: {error}")


_DEFINITION = re.compile(r"\s*(?:CREATE|ALTER|DROP|SELECT create_word_table)\b")


def _storable(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return values with the sign for a zero character in place of it."""
    if any(isinstance(value, str) and NUL in value for value in params.values()):
        return {
            name: value.replace(NUL, NUL_SIGN) if isinstance(value, str) else value
            for name, value in params.items()
        }
    return params
