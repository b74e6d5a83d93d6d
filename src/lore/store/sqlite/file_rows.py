"""All rows of a SQLite file, of every table: dumped as portable lines, and loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from typing import Any

import apsw
import orjson

from lore.errors import StoreError
from lore.store import row_lines
from lore.store.row_lines import NUMBERED_TABLES, Line
from lore.store.sql_connection import Connection, Row
from lore.store.sqlite.connection import SqliteConnection, translate_error

_ROWS_AT_ONCE = 500

_FRACTION = "REAL"

_TABLES = (
    "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'migrations'"
)
"""Tables with rows of their own; those of the keyword index are virtual, or shadows of such."""


def dump_rows(db: Connection) -> Iterator[bytes]:
    """Yield every row as a line of JSON, in the snapshot that is open."""
    assert isinstance(db, SqliteConnection)
    numbers = {table: db.next_number(table) for table in NUMBERED_TABLES}
    tables = _tables(db)
    fractions = {table: _fractions(db, table) for table in tables}
    migrations = db.column("SELECT name FROM migrations")
    names = {table: _indexed_texts(db, table) for table in tables}
    yield from row_lines.portable_head(migrations, numbers, fractions, names)
    count = 0
    for table in tables:
        yield orjson.dumps({"table": table})
        columns = list(_columns(db, table))
        for row in _rows(db, f"SELECT {', '.join(columns)} FROM {table}"):
            count += 1
            yield orjson.dumps(dict(zip(columns, map(_packed, row), strict=True)))
    yield orjson.dumps({"end": count})


def _rows(db: SqliteConnection, sql: str) -> Iterator[Row]:
    """Yield rows one by one: a table may be larger than the memory of this machine."""
    try:
        yield from db.raw.execute(sql)
    except apsw.Error as error:
        raise translate_error(error, db.path) from error


def _packed(value: Any) -> Any:
    if isinstance(value, float):
        return row_lines.pack_number(value)
    return f"\\x{value.hex()}" if isinstance(value, bytes) else value


def load_rows(db: Connection, lines: Iterable[bytes]) -> int:
    """Insert the rows of a portable dump into a new file, and return how many they were."""
    rows = map(row_lines.parse, lines)
    migrations = db.column("SELECT name FROM migrations")
    if not row_lines.check_head(next(rows, {}), [], migrations):
        raise row_lines.damaged_error(reason="It was made for PostgreSQL.")
    # A row may refer to one that comes later.
    db.rows("PRAGMA defer_foreign_keys = ON")
    db.run("DELETE FROM meta")
    loader = _Loader(db)
    for line in rows:
        loader.add(line)
    if loader.announced != loader.count:
        raise row_lines.damaged_error(reason="It is cut off.")
    for table, number in loader.numbers.items():
        db.set_next_number(table, number)
    return loader.count


class _Loader:
    """Inserts rows in batches, each into the table that was named last."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._tables = {table: _columns(db, table) for table in _tables(db)}
        self._table = ""
        self._batch: list[Line] = []
        self.numbers: dict[str, int] = {}
        self.count = 0
        self.announced = -1

    def add(self, line: Line) -> None:
        """Take the next line: a row, the name of a table, the next numbers, or the end."""
        if set(line) == {"table"}:
            self._insert()
            self._table = str(line["table"])
        elif set(line) == {"next"}:
            self.numbers = line["next"]
        elif set(line) == {"end"}:
            self._insert()
            self.announced = line["end"]
        elif self._table not in self._tables:
            raise row_lines.damaged_error(reason="It has rows of no table that is known.")
        else:
            self._batch.append(line)
            if len(self._batch) >= _ROWS_AT_ONCE:
                self._insert()

    def _insert(self) -> None:
        if not self._batch:
            return
        types = self._tables[self._table]
        self._db.insert_many(
            self._table,
            list(types),
            [
                tuple(_unpacked(row[name], type_) for name, type_ in types.items())
                for row in self._batch
            ],
        )
        self.count += len(self._batch)
        self._batch = []


def _unpacked(value: Any, type_: str) -> Any:
    if type_ == _FRACTION and row_lines.is_number(value):
        if value == "NaN":  # SQLite would store NULL
            msg = "The memory has a number that is none (NaN), which a file cannot have."
            raise StoreError(msg, hint="Set it to 0 in the database, or report this.")
        return float(value)
    is_bytes = type_ == "BLOB" and isinstance(value, str)
    return bytes.fromhex(value.removeprefix("\\x")) if is_bytes else value


def _columns(db: Connection, table: str) -> dict[str, str]:
    """Return the columns of a table and their types."""
    return {row[1]: row[2] for row in db.rows(f"PRAGMA table_info({table})")}


def _fractions(db: Connection, table: str) -> list[str]:
    """Return the columns of numbers with a fraction."""
    return [name for name, type_ in _columns(db, table).items() if type_ == _FRACTION]


def _indexed_texts(db: Connection, table: str) -> list[list[str]]:
    """Return the columns of texts of each index."""
    texts = {name for name, type_ in _columns(db, table).items() if type_ == "TEXT"}
    indexes = (
        [row[2] for row in db.rows(f"PRAGMA index_info({index[1]})") if row[2] in texts]
        for index in db.rows(f"PRAGMA index_list({table})")
    )
    return [names for names in indexes if names]


def _tables(db: Connection) -> list[str]:
    """Return all tables with rows; a table comes after those that it refers to."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for table in sorted(db.column(_TABLES)):
        targets = {row[2] for row in db.rows(f"PRAGMA foreign_key_list({table})")}
        order.add(table, *sorted(targets - {table}))
    return list(order.static_order())
