"""Full-text search: contentless FTS5 tables whose rows the caller numbers.

A query consists of quoted words and phrases, joined by OR.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import apsw

from lore.store.sql_connection import among, int_array

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lore.store.sql_connection import Connection

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""Folds accents and English endings; words of other languages stay as they are."""


def create(db: Connection, table: str, columns: Sequence[str]) -> None:
    """Create an empty table."""
    db.rows(
        f"CREATE VIRTUAL TABLE {table} USING fts5({', '.join(columns)}, content='',"
        f" contentless_delete=1, tokenize='{TOKENIZER}')"
    )
    db.rows(f"CREATE VIRTUAL TABLE {table}_vocabulary USING fts5vocab({table}, 'row')")


def add(
    db: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Add new rows, each with its number and the texts of the columns in order."""
    values = ", ".join(f":{column}" for column in columns)
    db.run_many(
        f"INSERT INTO {table} (rowid, {', '.join(columns)}) VALUES (:n, {values})",
        rows,
    )


def remove(db: Connection, table: str, ns: Sequence[int]) -> None:
    """Delete rows; missing ones are ignored."""
    db.run(f"DELETE FROM {table} WHERE {among('rowid', 'ns')}", ns=int_array(ns))


def search(
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
    """Return the best rows for a query with BM25 scores, best first.

    `only` is a query for the rows that may be found; `unless` is one that yields something for an
    excluded row `{n}`; `params` are their parameters.
    """
    # The plus sign keeps FTS5 from running the whole match again for each row.
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


def match_query(table: str, name: str) -> str:
    """Return the query for the numbers `n` of the rows that match a query bound to `name`."""
    return f"SELECT rowid AS n FROM {table} WHERE {table} MATCH :{name}"


def phrase_query(words: str, column: str = "") -> str:
    """Return the query for a phrase, in any column or in one."""
    return f'{{{column}}} : "{words}"' if column else f'"{words}"'


def all_rows_query(table: str) -> str:
    """Return the query for the numbers `n` of all rows of a table."""
    return f"SELECT id AS n FROM {table}_docsize"


def count_rows(db: Connection, table: str, terms: Sequence[str]) -> list[int]:
    """Return how many rows contain each of some words, in any inflection."""
    sql = f"SELECT doc FROM {table}_vocabulary WHERE term = :term"
    return [db.number(sql, term=stem(term)) or 0 for term in terms]


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    name, *options = TOKENIZER.split()
    return apsw.Connection(":memory:").fts5_tokenizer(name, options)


def tokens(text: str) -> list[str]:
    """Return the words of a text in order, as the tables store them."""
    words: list[str] = _tokenizer()(  # type: ignore[assignment]  # with these flags, words
        text.encode(errors="replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return words


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return the stem of a word, as the tables store it."""
    stems: list[str] = _tokenizer()(  # type: ignore[assignment]  # with these flags, words
        word.encode(),
        apsw.FTS5_TOKENIZE_QUERY,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return stems[0] if stems else word


def run_command(
    db: Connection, table: str, command: Literal["optimize", "delete-all", "integrity-check"]
) -> None:
    """Merge the index segments, delete all rows, or check the index and raise if it is damaged."""
    db.run(f"INSERT INTO {table} ({table}) VALUES ('{command}')")
