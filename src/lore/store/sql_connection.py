"""Connections: what the store asks of a database engine, and the SQL that engines spell apart.

SQL is written as SQLite reads it; the connection of another engine translates it. The fragments
below are all that needs more than a translation of words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from lore import local_files
from lore.errors import SchemaTooNew

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

T = TypeVar("T")

Row = tuple[Any, ...]


def newer_schema_error(place: str) -> SchemaTooNew:
    """Return the error for a database that a newer Lore changed so that this one cannot use it."""
    msg = f"{place} was upgraded by a newer Lore, and this one is too old for it."
    return SchemaTooNew(msg, hint="Update this Lore ('lore upgrade' prints how); nothing was lost.")


class FullText(Protocol):
    """Word tables of an engine: their rows are numbered by the caller.

    A query consists of quoted words and phrases, joined by OR.
    """

    def create(self, db: Any, table: str, columns: Sequence[str]) -> None:
        """Create an empty table."""

    def add(
        self, db: Any, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
    ) -> None:
        """Add new rows, each with its number and the texts of the columns in order."""

    def remove(self, db: Any, table: str, ns: Sequence[int]) -> None:
        """Delete rows; missing ones are ignored."""

    def search(
        self,
        db: Any,
        table: str,
        query: str,
        *,
        limit: int,
        weights: Sequence[float],
        only: str = "",
        unless: str = "",
        **params: Any,
    ) -> list[tuple[int, float]]:
        """Return the best rows for a query with BM25 scores, best first.

        `only` is a query for the rows that may be found; `unless` is one that yields something for
        an excluded row `{n}`; `params` are their parameters.
        """

    def match_query(self, table: str, name: str) -> str:
        """Return the query for the numbers `n` of the rows that match a query bound to `name`."""

    def phrase_query(self, words: str, column: str = "") -> str:
        """Return the query for a phrase, in any column or in one."""

    def all_rows_query(self, table: str) -> str:
        """Return the query for the numbers `n` of all rows of a table."""

    def count_rows(self, db: Any, table: str, terms: Sequence[str]) -> list[int]:
        """Return how many rows contain each of some words, in any inflection."""

    def run_command(
        self, db: Any, table: str, command: Literal["optimize", "delete-all", "integrity-check"]
    ) -> None:
        """Merge index segments, delete all rows, or check the index and raise if it is damaged."""


class Connection(ABC):
    """One connection to a database; every method raises the errors of Lore, not of the engine."""

    __slots__ = ("_snapshot", "path", "read_only")

    words: ClassVar[FullText]
    """The word tables of the engine."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._snapshot: dict[Hashable, Any] | None = None

    def begin_snapshot(self) -> None:
        """Begin a read transaction: until `end_snapshot`, everything read is of one moment."""
        self._begin_read()
        self._snapshot = {}

    def end_snapshot(self) -> None:
        """End a read transaction, unless the engine ended it, and forget what `once` computed."""
        self._snapshot = None
        if self.in_transaction:
            self.rows("COMMIT")

    @property
    def has_snapshot(self) -> bool:
        """Whether everything read is of one moment."""
        return self._snapshot is not None

    @property
    def cache_key(self) -> str:
        """What tells the memory of this connection from others in the process."""
        return str(self.path)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a value that is computed once in a snapshot, and at each call outside of one."""
        if self._snapshot is None:
            return compute()
        if key not in self._snapshot:
            self._snapshot[key] = compute()
        value: T = self._snapshot[key]
        return value

    def computed(self, key: Hashable) -> Any:
        """Return what `once` computed in this snapshot, or None."""
        return None if self._snapshot is None else self._snapshot.get(key)

    @abstractmethod
    def rows(self, sql: str, /, **params: Any) -> list[Row]:
        """Run a statement and return all its rows."""

    def find(self, sql: str, /, **params: Any) -> Row | None:
        """Run a statement and return its first row, or None."""
        rows = self.rows(sql, **params)
        return rows[0] if rows else None

    def value(self, sql: str, /, **params: Any) -> Any:
        """Run a statement and return the first value of its first row, or None."""
        row = self.find(sql, **params)
        return row[0] if row else None

    def number(self, sql: str, /, **params: Any) -> int | None:
        """Run a statement and return the first value of its first row as a number, or None."""
        value = self.value(sql, **params)
        return None if value is None else int(value)

    def column(self, sql: str, /, **params: Any) -> list[Any]:
        """Run a statement and return the first value of each of its rows."""
        return [row[0] for row in self.rows(sql, **params)]

    @abstractmethod
    def run(self, sql: str, /, **params: Any) -> int:
        """Run a statement and return how many rows it changed."""

    def insert(self, table: str, /, **values: Any) -> None:
        """Insert a row."""
        self.rows(insert_sql(table, tuple(values)), **values)

    def insert_unless_exists(self, table: str, /, **values: Any) -> bool:
        """Insert a row unless one with the same key exists; return whether it is new."""
        sql = insert_sql(table, tuple(values))
        return bool(self.run(f"{sql} ON CONFLICT DO NOTHING", **values))

    def insert_numbered(self, table: str, /, **values: Any) -> int:
        """Insert a row and return its number `n`."""
        return int(self.value(f"{insert_sql(table, tuple(values))} RETURNING n", **values))

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert rows of values, each in the order of the columns."""
        self.run_many(insert_sql(table, tuple(columns)), rows)

    def upsert(self, table: str, key: Sequence[str], /, **values: Any) -> None:
        """Insert a row, or replace all values of the row with the same key."""
        self.run(_upsert_sql(table, tuple(key), tuple(values)), **values)

    def update(self, table: str, n: int, /, **values: Any) -> int:
        """Set values of the row with a number; return how many rows that were."""
        assignments = ", ".join(f"{name} = :{name}" for name in values)
        return self.run(f"UPDATE {table} SET {assignments} WHERE n = :n", n=n, **values)

    @abstractmethod
    def run_many(self, sql: str, values: Iterable[Mapping[str, Any] | Row]) -> None:
        """Run a statement once for each set of values, given by name or in order of the names."""

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether a transaction is open; SQLite rolls it back itself when the disk fails."""

    @abstractmethod
    def _begin_read(self) -> None:
        """Begin a read transaction."""

    @abstractmethod
    def begin_write(self) -> None:
        """Begin a write transaction: wait for the lock now, not at the first write."""

    @abstractmethod
    def release_memory(self) -> None:
        """Free what the connection caches."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def index_vectors(self, stored: Sequence[Row]) -> None:  # noqa: B027 - most need nothing
        """Index new vectors, each an item, an embedder and a blob, if the engine does so itself."""

    @abstractmethod
    def next_number(self, table: str) -> int:
        """Return the number of the next row of an AUTOINCREMENT table, as of this transaction."""

    @abstractmethod
    def set_next_number(self, table: str, number: int) -> None:
        """Set the number of the next row of an AUTOINCREMENT table."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Return whether the database has a table of this name."""

    @abstractmethod
    def is_empty_database(self) -> bool:
        """Return whether the database has no tables."""

    @abstractmethod
    def size(self) -> int:
        """Return the size of the memory in bytes."""

    engine: ClassVar[str] = "SQLite"
    """The name of the engine, for people."""

    @property
    def place(self) -> str:
        """Where the memory is, as people see it."""
        return str(self.path)

    @property
    def shown_place(self) -> str:
        """Where the memory is; for callers of a server for many people, on which engine alone."""
        return self.engine if local_files.are_withheld() else self.place

    @abstractmethod
    def journal_mode(self) -> str:
        """Return how the engine keeps its journal."""

    @abstractmethod
    def integrity_problems(self) -> list[str]:
        """Return what the engine's own check of its files reports."""


@cache
def insert_sql(table: str, names: tuple[str, ...]) -> str:
    """Return the statement that inserts a row of named values."""
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"


@cache
def _upsert_sql(table: str, key: tuple[str, ...], names: tuple[str, ...]) -> str:
    renewed = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    conflict = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {renewed}"
    return f"{insert_sql(table, names)} {conflict}"


ROW_NUMBER = "INTEGER PRIMARY KEY"
"""The type of a column that numbers its rows."""

AUTOINCREMENT = "INTEGER PRIMARY KEY AUTOINCREMENT"
"""The type of a column that numbers its rows and never reuses a number."""

ID = "BLOB"
"""The type of a column that stores an id of 36 characters in 16 bytes."""

_NO_ROW = (-1,)
"""Matches no row: rows count from 1, and SQLite does not bind an empty array."""


class BoundArray:
    """Values to bind for `among`; each engine binds them its own way."""

    __slots__ = ("values",)

    def __init__(self, values: NDArray[np.int64] | tuple[str, ...]) -> None:
        self.values = values


def bound_values(name: str) -> str:
    """Return the query for the values bound to `name`."""
    return f"SELECT value FROM carray(:{name})"


def among(column: str, name: str) -> str:
    """Return the condition that a column is one of the values bound to `name`."""
    return f"{column} IN ({bound_values(name)})"


def json_list_overlaps(column: str, name: str) -> str:
    """Return the condition that a JSON list contains one of the texts bound to `name`."""
    one_of = among("held.value", name)
    return f"EXISTS (SELECT 1 FROM json_each({column}) AS held WHERE {one_of})"


def int_array(values: Sequence[int] | NDArray[np.int64]) -> BoundArray:
    """Return numbers as an array to bind for `among`; an empty one matches no row."""
    return BoundArray(np.ascontiguousarray(values if len(values) else _NO_ROW, dtype=np.int64))


def text_array(values: Sequence[str]) -> BoundArray:
    """Return texts as an array to bind for `among`; it must not be empty."""
    return BoundArray(tuple(values))


def id_blob(text: str) -> str:
    """Return the SQL for the stored form of an id, from an expression for its text."""
    return f"unhex({text}, '-')"


def id_text(column: str) -> str:
    """Return the SQL for the text of an id, from its column; NULL stays NULL."""
    pieces = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    text = " || '-' || ".join(f"substr(hex({column}), {at}, {size})" for at, size in pieces)
    return f"CASE WHEN {column} IS NOT NULL THEN lower({text}) END"


def json_field(column: str, name: str) -> str:
    """Return the SQL for one field of a column with a JSON object, as it is or as text."""
    return f"json_extract({column}, '$.{name}')"


def json_number(column: str, name: str) -> str:
    """Return the SQL for a whole number in a column with a JSON object."""
    return f"CAST({json_field(column, name)} AS INTEGER)"


def count_if(condition: str) -> str:
    """Return the SQL for the number of rows that meet a condition."""
    return f"count(CASE WHEN {condition} THEN 1 END)"
