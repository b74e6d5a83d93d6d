"""Expressions and types that SQLite spells in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lore.store.sqlite.connection import Connection

NUMBERED = "INTEGER PRIMARY KEY"
"""The type of a column that numbers its rows by itself."""

GROWING = "INTEGER PRIMARY KEY AUTOINCREMENT"
"""The type of a column that numbers its rows and never gives a number twice."""

ID = "BLOB"
"""The type of a column that keeps an id, which has 36 characters, in 16 bytes."""

_NO_ROW = (-1,)
"""Rows are numbered from 1, and SQLite does not bind an empty array."""


def listed(name: str) -> str:
    """Return the query for the values bound to `name`."""
    return f"SELECT value FROM carray(:{name})"


def among(column: str, name: str) -> str:
    """Return the condition that a column is one of the values bound to `name`."""
    return f"{column} IN ({listed(name)})"


def shares(column: str, name: str) -> str:
    """Return the condition that a JSON list has one of the texts bound to `name`."""
    one_of = among("held.value", name)
    return f"EXISTS (SELECT 1 FROM json_each({column}) AS held WHERE {one_of})"


def numbers(values: Sequence[int] | NDArray[np.int64]) -> Any:
    """Return a list of numbers in the form that `among` binds; an empty one fits no row."""
    return apsw.carray(np.ascontiguousarray(values if len(values) else _NO_ROW, dtype=np.int64))


def texts(values: Sequence[str]) -> Any:
    """Return a list of texts in the form that `among` binds; it must not be empty."""
    return apsw.carray(tuple(values))


def id_of(text: str) -> str:
    """Return an id as its column keeps it, of an expression for its text."""
    return f"unhex({text}, '-')"


def id_text(column: str) -> str:
    """Return the text of an id, of the column that keeps it; NULL stays NULL."""
    pieces = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    text = " || '-' || ".join(f"substr(hex({column}), {at}, {size})" for at, size in pieces)
    return f"CASE WHEN {column} IS NOT NULL THEN lower({text}) END"


def field_of(column: str, name: str) -> str:
    """Return the SQL of one field of a column that holds a JSON object."""
    return f"json_extract({column}, '$.{name}')"


def next_number(db: Connection, table: str) -> int:
    """Return the number that the next row of a growing table gets; belongs into a write."""
    last = db.value("SELECT seq FROM sqlite_sequence WHERE name = :table", table=table)
    return int(last or 0) + 1


def has_table(db: Connection, name: str) -> bool:
    """Tell whether the database has a table of this name."""
    return db.find("SELECT 1 FROM sqlite_schema WHERE name = :name", name=name) is not None


def is_blank(db: Connection) -> bool:
    """Tell whether the database has no tables at all."""
    return db.find("SELECT 1 FROM sqlite_schema LIMIT 1") is None
