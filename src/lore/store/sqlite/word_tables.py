"""Word tables: FTS5 tables without content of their own, their rows numbered by the caller.

A query is words and phrases in quotation marks, with OR between them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import apsw

from lore.errors import StoreError
from lore.store.sqlite.dialect import among, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lore.store.sqlite.connection import Connection

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""Folds accents; English endings fold too, other languages keep their words as they are."""


def create(db: Connection, table: str, columns: Sequence[str]) -> None:
    """Make an empty table."""
    db.rows(
        f"CREATE VIRTUAL TABLE {table} USING fts5({', '.join(columns)}, content='',"
        f" contentless_delete=1, tokenize='{TOKENIZER}')"
    )
    db.rows(f"CREATE VIRTUAL TABLE {table}_vocabulary USING fts5vocab({table}, 'row')")


def add(
    db: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Add rows that are not there: number and the texts of some columns, in their order."""
    values = ", ".join(f":{column}" for column in columns)
    db.run_many(
        f"INSERT INTO {table} (rowid, {', '.join(columns)}) VALUES (:n, {values})",
        rows,
    )


def remove(db: Connection, table: str, ns: Sequence[int]) -> None:
    """Take rows out; those that are not there do no harm."""
    db.run(f"DELETE FROM {table} WHERE {among('rowid', 'ns')}", ns=numbers(ns))


def best(
    db: Connection,
    table: str,
    query: str,
    *,
    limit: int,
    weights: Sequence[float],
    only: str = "",
    unless: str = "",
    **params: Any,
) -> list[tuple[int, float]]:
    """Return the best rows for a query with their BM25, best first.

    `only` is a query for the rows that may be found, `unless` one that finds something for a
    row `{n}` that may not; `params` are their parameters.
    """
    # The plus sign keeps FTS5 from running the whole match anew for each of the rows.
    bounds = f"AND +rowid IN ({only})" if only else ""
    if unless:
        bounds += f" AND NOT EXISTS ({unless.format(n=f'{table}.rowid')})"
    weight_list = ", ".join(f"{weight:g}" for weight in weights)
    rows = db.rows(
        f"SELECT rowid, bm25({table}, {weight_list}) FROM {table}"
        f" WHERE {table} MATCH :query {bounds} ORDER BY 2 LIMIT :limit",
        query=query,
        limit=limit,
        **params,
    )
    return [(n, -score) for n, score in rows]


def holding(table: str, name: str) -> str:
    """Return the query for the numbers `n` of the rows that satisfy a query bound to `name`."""
    return f"SELECT rowid AS n FROM {table} WHERE {table} MATCH :{name}"


def phrase(words: str, column: str = "") -> str:
    """Return the query for words that follow each other, anywhere or in one column."""
    return f'{{{column}}} : "{words}"' if column else f'"{words}"'


def row_numbers(table: str) -> str:
    """Return the query for the numbers `n` of all rows of a table."""
    return f"SELECT id AS n FROM {table}_docsize"


def count_rows(db: Connection, table: str, word: str) -> int:
    """Return how many rows have a word, in any of its inflections."""
    found = db.value(f"SELECT doc FROM {table}_vocabulary WHERE term = :term", term=stem(word))
    return int(found or 0)


def merge(db: Connection, table: str) -> None:
    """Write the table anew so that nothing of removed rows is left in it."""
    db.run(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def clear(db: Connection, table: str) -> None:
    """Empty the table."""
    db.run(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")


def find_damage(db: Connection, table: str) -> str:
    """Return what the table's own check finds wrong, or ''."""
    try:
        db.run(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    except StoreError as error:
        return str(error)
    return ""


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    name, *options = TOKENIZER.split()
    return apsw.Connection(":memory:").fts5_tokenizer(name, options)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return a word as the tables keep it."""
    found: list[str] = _tokenizer()(  # type: ignore[assignment]  # with these flags, words
        word.encode(),
        apsw.FTS5_TOKENIZE_QUERY,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return found[0] if found else word
