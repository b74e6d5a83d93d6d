"""What recall asks of every memory first, in one query of a snapshot.

Recall leaves out the queries of tables that have no rows.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from lore.store.sql_connection import Connection

SparseTable = Literal["messages", "distillations", "edges", "replacements", "standing", "projects"]
"""Tables that many memories do not use."""

MetaKey = Literal["epoch", "embedder"]
"""Values of `meta` that every recall needs."""

_TABLES: tuple[SparseTable, ...] = get_args(SparseTable)
META_KEYS: tuple[MetaKey, ...] = get_args(MetaKey)


class Overview(NamedTuple):
    """The state of a memory at the moment of a snapshot."""

    highest_number: int
    has_pending: bool
    """Whether an item waits for its vector."""
    meta: dict[str, str | None]
    empty: frozenset[SparseTable]


PENDING = "items i WHERE i.embedder_n IS NULL"
"""The items that wait for their vector."""

_OVERVIEW = "SELECT " + ", ".join((
    "(SELECT coalesce(max(n), 0) FROM items)",
    f"EXISTS (SELECT 1 FROM {PENDING})",
    *(f"(SELECT value FROM meta WHERE key = '{key}')" for key in META_KEYS),
    *(f"EXISTS (SELECT 1 FROM {table})" for table in _TABLES),
))  # fmt: skip


def find_overview(db: Connection) -> Overview | None:
    """Return the overview of a snapshot; None outside of one, where nothing stays as it is."""
    if not db.has_snapshot:
        return None

    def load() -> Overview:
        highest, has_pending, *rest = db.rows(_OVERVIEW)[0]
        values, filled = rest[: len(META_KEYS)], rest[len(META_KEYS) :]
        empty = (table for table, has_rows in zip(_TABLES, filled, strict=True) if not has_rows)
        meta = dict(zip(META_KEYS, values, strict=True))
        return Overview(int(highest), bool(has_pending), meta, frozenset(empty))

    return db.once("overview", load)


def loaded_overview(db: Connection) -> Overview | None:
    """Return the overview if this snapshot has it: a query for one value needs no more tables."""
    overview: Overview | None = db.computed("overview")
    return overview


def is_known_empty(db: Connection, table: SparseTable) -> bool:
    """Return whether a table has no rows in this snapshot; outside of one nothing is known."""
    overview = find_overview(db)
    return overview is not None and table in overview.empty
