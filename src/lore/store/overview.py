"""Which tables of a memory have rows: recall leaves out the queries of those that have none."""

from __future__ import annotations

from typing import Literal, get_args

from lore.store.sql_connection import Connection

SparseTable = Literal["messages", "distillations", "edges", "replacements", "standing"]
"""Tables that many memories do not use."""

_TABLES: tuple[SparseTable, ...] = get_args(SparseTable)
_OVERVIEW = "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in _TABLES)


def is_known_empty(db: Connection, table: SparseTable) -> bool:
    """Return whether a table has no rows in this snapshot; one query tells of all tables.

    Outside of a snapshot nothing is known.
    """
    if not db.has_snapshot:
        return False

    def load() -> frozenset[SparseTable]:
        row = db.find(_OVERVIEW) or ()
        return frozenset(name for name, has_rows in zip(_TABLES, row, strict=True) if not has_rows)

    return table in db.once("empty tables", load)
