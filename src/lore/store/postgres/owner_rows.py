"""All rows of one owner on PostgreSQL, of every table: dumped as lines, loaded, and deleted."""

from __future__ import annotations

import uuid
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import psycopg

from lore.errors import LoreError, SchemaTooNew, StoreDamaged
from lore.store.postgres.owner_connection import SCHEMA, PostgresConnection, translate_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FORMAT = 1
"""The form of the lines: a head, each table with its rows after it, and the number of all rows."""

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 500, 8_000_000
"""Rows that one statement inserts; an array of JSON has at most 256 MB."""

_NUMBERS = "used_numbers"
"""Deleting rows of other tables writes here."""

_COLUMNS = f"""
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum),
    coalesce(array_agg(a.attname::text) FILTER (WHERE a.atttypid = 'tsvector'::regtype), '{{}}')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
    AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname"""

_REFERENCES = f"""
SELECT c.conrelid::regclass::text, c.confrelid::regclass::text FROM pg_constraint c
WHERE c.connamespace = '{SCHEMA}'::regnamespace AND c.contype = 'f'"""


class _Table(NamedTuple):
    """A table with rows of owners; `is_tree` if its rows may refer to each other.

    Columns of words have letters of the owner, for which a dump has a sign.
    """

    name: str
    columns: tuple[str, ...]
    words: tuple[str, ...]
    is_tree: bool


def erase(db: PostgresConnection) -> None:
    """Delete every row of the owner, in the transaction that is open."""
    names = [table.name for table in reversed(_tables(db)) if table.name != _NUMBERS]
    for name in (*names, _NUMBERS):
        db.rows(f"DELETE FROM {name}")
    db.rows("SELECT unregister_owner()")


def dump(db: PostgresConnection) -> Iterator[bytes]:
    """Yield every row of the owner as a line of JSON, in the snapshot that is open."""
    yield orjson.dumps({"rows": _FORMAT, "schema": _schema(db)})
    count = 0
    for table in _tables(db):
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
    rows = iter(lines)
    _check_head(db, _parse(next(rows, b"{}")))
    db.rows("SELECT register_owner()")
    loader = _Loader(db)
    for line in rows:
        loader.add(_parse(line))
    if loader.announced != loader.count:
        raise _damaged(reason="It is cut off.")
    db.rows("SELECT skip_used_numbers()")
    db.rows(
        "SELECT ensure_graph(dimension) FROM"
        " (SELECT DISTINCT dimension FROM vector_rows WHERE in_graph) AS graphs"
    )
    db.run("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)
    return loader.count


class _Loader:
    """Inserts rows in batches, each into the table that was named last."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db
        self._tables = {table.name: table for table in _tables(db)}
        self._table: _Table | None = None
        self._batch: list[bytes] = []
        self._bytes = 0
        self.count = 0
        self.announced = -1

    def add(self, line: dict[str, Any]) -> None:
        """Take the next line: a row, the name of a table, or the end."""
        if set(line) == {"table"}:
            self._insert()
            self._table = self._tables.get(str(line["table"]))
        elif set(line) == {"end"}:
            self._insert()
            self.announced = line["end"]
        elif self._table is None:
            raise _damaged(reason="It has rows of no table that is known.")
        else:
            self._batch.append(orjson.dumps(line))
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


def _check_head(db: PostgresConnection, head: dict[str, Any]) -> None:
    if head.get("rows") != _FORMAT:
        raise _damaged(reason="It is no dump of a memory.")
    if head.get("schema") != _schema(db):
        msg = "The backup was made by another version of Lore, with other tables."
        raise SchemaTooNew(msg, hint="Restore it with that version, then upgrade.")


def _parse(line: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _damaged(reason="It has a line that is no JSON.") from error
    if not isinstance(parsed, dict):
        raise _damaged(reason="It has a line that is no row.")
    return parsed


def _damaged(*, reason: str) -> LoreError:
    msg = f"The dump of a memory is damaged: {reason}"
    return StoreDamaged(msg, hint="Take another backup; nothing was restored.")


def _schema(db: PostgresConnection) -> list[str]:
    """Return what the form of the tables depends on."""
    newest = db.value("SELECT max(n) FROM revisions")
    return [*sorted(db.column("SELECT name FROM migrations")), f"revision {newest}"]


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
               tuple(columns[name][1]), name in trees)
        for name in order.static_order()
    ]  # fmt: skip
