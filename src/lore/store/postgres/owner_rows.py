"""All rows of one owner on PostgreSQL, of every table: dumped as lines, loaded, and deleted."""

from __future__ import annotations

import uuid
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import psycopg

from lore.store import maintenance, row_lines
from lore.store.postgres import vector_rows
from lore.store.postgres.owner_connection import SCHEMA, PostgresConnection, translate_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 500, 8_000_000
"""Rows that one statement inserts; an array of JSON has at most 256 MB."""

_NUMBERS = "used_numbers"
"""Deleting rows of other tables writes here."""

_DERIVED = (_NUMBERS, "word_totals", "vector_rows")
"""Tables that only PostgreSQL has, like those with words; a portable dump has none of them."""

_COLUMNS = f"""
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum),
    coalesce(array_agg(a.attname::text) FILTER (WHERE a.atttypid = 'tsvector'::regtype), '{{}}'),
    coalesce(array_agg(a.attname::text) FILTER (WHERE a.atttypid = 'float8'::regtype), '{{}}')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
    AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname"""

_REFERENCES = f"""
SELECT c.conrelid::regclass::text, c.confrelid::regclass::text FROM pg_constraint c
WHERE c.connamespace = '{SCHEMA}'::regnamespace AND c.contype = 'f'"""


class _Table(NamedTuple):
    """A table with rows of owners; `is_tree` if its rows may refer to each other.

    Columns of fractions have numbers with one. Columns of words have letters of the owner, for
    which a dump has a sign.
    """

    name: str
    columns: tuple[str, ...]
    words: tuple[str, ...]
    fractions: tuple[str, ...]
    is_tree: bool


def erase(db: PostgresConnection) -> None:
    """Delete every row of the owner, in the transaction that is open."""
    names = [table.name for table in reversed(_tables(db)) if table.name != _NUMBERS]
    for name in (*names, _NUMBERS):
        db.rows(f"DELETE FROM {name}")
    db.rows("SELECT unregister_owner()")


def dump(db: PostgresConnection, *, portable: bool = False) -> Iterator[bytes]:
    """Yield every row of the owner as a line of JSON, in the snapshot that is open.

    A portable dump can be loaded by any engine, which derives the rest again.
    """
    tables = _tables(db)
    if portable:
        tables = [one for one in tables if not one.words and one.name not in _DERIVED]
        numbers = {name: db.next_number(name) for name in row_lines.NUMBERED_TABLES}
        fractions = {table.name: list(table.fractions) for table in tables}
        yield from row_lines.portable_head(_migrations(db), numbers, fractions)
    else:
        yield orjson.dumps({"rows": row_lines.FORMAT, "schema": _schema(db)})
    count = 0
    for table in tables:
        yield orjson.dumps({"table": table.name})
        for line in _table_lines(db, table):
            count += 1
            yield line
    yield orjson.dumps({"end": count})


def _table_lines(db: PostgresConnection, table: _Table) -> Iterator[bytes]:
    row = "to_jsonb(t) - 'owner'"
    for words in table.words:
        row += (
            f" || jsonb_build_object('{words}', regexp_replace({words}::text,"
            r" '(^| )''' || left(owner::text, 6), '\1''' || chr(1), 'g'))"
        )
    # Rows stream through COPY: a table of one owner may be larger than the memory of this machine.
    sql = f"COPY (SELECT {row} FROM {table.name} t) TO STDOUT"
    try:
        with db.raw.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types(["text"])
            for (text,) in copy.rows():
                yield text.encode()
    except psycopg.Error as error:
        raise translate_error(error) from error


def load(db: PostgresConnection, lines: Iterable[bytes]) -> int:
    """Insert dumped rows as rows of the owner, who has none, and return how many they were.

    Cursors of other machines are void then, as after any restored backup.
    """
    rows = map(row_lines.parse, lines)
    is_portable = row_lines.check_head(next(rows, {}), _schema(db), _migrations(db))
    db.rows("SELECT register_owner()")
    loader = _Loader(db)
    for line in rows:
        loader.add(line)
    if loader.announced != loader.count:
        raise row_lines.damaged_error(reason="It is cut off.")
    if is_portable:
        _derive(db, loader.numbers)
    db.rows("SELECT skip_used_numbers()")
    db.rows(
        "SELECT ensure_graph(dimension) FROM"
        " (SELECT DISTINCT dimension FROM vector_rows WHERE in_graph) AS graphs"
    )
    db.run("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)
    return loader.count


def _derive(db: PostgresConnection, numbers: dict[str, int]) -> None:
    """Index the words and the vectors of rows that another engine had."""
    for table, number in numbers.items():
        db.set_next_number(table, number)
    maintenance.index_words(db)
    seq = 0
    sql = "SELECT seq, n, embedder_n, vector FROM vectors WHERE seq > :seq ORDER BY seq LIMIT :most"
    while stored := db.rows(sql, seq=seq, most=_ROWS_AT_ONCE):
        db.index_vectors([row[1:] for row in stored])
        seq = stored[-1][0]
    vector_rows.finish_graphs(db)


class _Loader:
    """Inserts rows in batches, each into the table that was named last."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db
        self._tables = {table.name: table for table in _tables(db)}
        self._table: _Table | None = None
        self._batch: list[bytes] = []
        self._bytes = 0
        self.numbers: dict[str, int] = {}
        self.count = 0
        self.announced = -1

    def add(self, line: dict[str, Any]) -> None:
        """Take the next line: a row, the name of a table, the next numbers, or the end."""
        if set(line) == {"table"}:
            self._insert()
            self._table = self._tables.get(str(line["table"]))
        elif set(line) == {"next"}:
            self.numbers = line["next"]
        elif set(line) == {"end"}:
            self._insert()
            self.announced = line["end"]
        elif self._table is None:
            raise row_lines.damaged_error(reason="It has rows of no table that is known.")
        else:
            self._batch.append(orjson.dumps(row_lines.without_nul(line)))
            self._bytes += len(self._batch[-1])
            # Rows that refer to each other are inserted at once.
            is_full = len(self._batch) >= _ROWS_AT_ONCE or self._bytes >= _BYTES_AT_ONCE
            if is_full and not self._table.is_tree:
                self._insert()

    def _insert(self) -> None:
        if self._table is None or not self._batch:
            return
        columns = ", ".join(self._table.columns)
        values = ", ".join(
            f"owned_words({column}::text)" if column in self._table.words else column
            for column in self._table.columns
        )
        self._db.rows(
            f"INSERT INTO {self._table.name} ({columns}) SELECT {values}"
            f" FROM jsonb_populate_recordset(NULL::{self._table.name}, CAST(:rows AS jsonb))",
            rows=f"[{b','.join(self._batch).decode()}]",
        )
        self.count += len(self._batch)
        self._batch, self._bytes = [], 0


def _schema(db: PostgresConnection) -> list[str]:
    """Return what the form of the tables depends on."""
    newest = db.value("SELECT max(n) FROM revisions")
    return [*sorted(_migrations(db)), f"revision {newest}"]


def _migrations(db: PostgresConnection) -> list[str]:
    return db.column("SELECT name FROM migrations")


def _tables(db: PostgresConnection) -> list[_Table]:
    """Return all tables with rows of owners; a table comes after those that it refers to."""
    columns = {name: names for name, *names in db.rows(_COLUMNS) if "owner" in names[0]}
    columns.pop("owners", None)
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(sorted(columns), ()))
    trees = set()
    for source, target in db.rows(_REFERENCES):
        source, target = (name.removeprefix(f"{SCHEMA}.") for name in (source, target))
        trees |= {source} if source == target else set()
        if source != target:
            order.add(source, target)
    return [
        _Table(name, tuple(one for one in columns[name][0] if one != "owner"),
               tuple(columns[name][1]), tuple(columns[name][2]), name in trees)
        for name in order.static_order()
    ]  # fmt: skip
