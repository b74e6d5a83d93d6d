"""Databases of other programs: opened for reading only, and never waited for long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from lore.store.sqlite.connection import Connection, Row, open_connection

_PATIENCE_S = 2.0
"""Whoever owns the database writes in short steps; what is missed now is read the next time."""


@contextmanager
def open_foreign(path: Path) -> Iterator[Connection]:
    """Open a database that belongs to another program; nothing can be written to it."""
    log_file = path.with_name(f"{path.name}-wal")
    was_closed = not log_file.exists()
    db = open_connection(path, busy_timeout_s=_PATIENCE_S, read_only=True)
    try:
        yield db
    finally:
        db.close()
        if was_closed and log_file.exists():
            _leave_closed(path)


def _leave_closed(path: Path) -> None:
    """Take away the log that reading made beside a closed database, unless it is in use now.

    A connection for reading cannot; one that may write does so when it is the last to close.
    """
    with suppress(apsw.Error):
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        raw = apsw.Connection(str(path.parent.resolve() / path.name), flags=flags)
        try:
            raw.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        finally:
            raw.close()


def columns(db: Connection, table: str) -> tuple[str, ...]:
    """Return the names of the columns of a table; none if there is no such table."""
    found = db.rows("SELECT name FROM pragma_table_info(:name)", name=table)
    return tuple(str(row[0]) for row in found)


def rows(
    db: Connection,
    table: str,
    names: Sequence[str],
    *,
    equal: Mapping[str, Any] | None = None,
    least: Mapping[str, int] | None = None,
    order: Sequence[str] = (),
) -> list[Row]:
    """Return columns of the rows whose values are equal to, or at least, those given.

    A column that the table does not have is read as null; a condition on it fits no row.
    """
    known = columns(db, table)
    conditions = [(name, "=", value) for name, value in (equal or {}).items()]
    conditions += [(name, ">=", value) for name, value in (least or {}).items()]
    if not known or any(name not in known for name, _, _ in conditions):
        return []
    wanted = ", ".join(_quoted(name) if name in known else "NULL" for name in names)
    sql = f"SELECT {wanted} FROM {_quoted(table)}"
    if conditions:
        tests = (f"{_quoted(name)} {sign} :v{i}" for i, (name, sign, _) in enumerate(conditions))
        sql += f" WHERE {' AND '.join(tests)}"
    sorts = [_quoted(name) for name in order if name in known]
    if sorts:
        sql += f" ORDER BY {', '.join(sorts)}"
    return db.rows(sql, **{f"v{i}": value for i, (_, _, value) in enumerate(conditions)})


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
