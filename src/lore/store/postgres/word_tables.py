"""Full-text search: word tables with the words that SQLite's tokenizer finds, and BM25 scores.

A word is stored with a few letters of its owner, so that the index holds a list of rows for each
owner's word, not one for all owners. The functions of `schema.py` add them and search.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lore.index.quantization import best_first
from lore.store.sql_connection import among, int_array, text_array
from lore.store.sqlite.full_text import tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lore.store.sql_connection import Connection, Row

_K1, _B = 1.2, 0.75
"""The constants of BM25 that FTS5 has."""

_LEAST_RARITY = 1e-6
"""What a word counts that is in most rows, as in FTS5."""

PREFIX_SIGN = "\x01"
"""Stands for the owner's letters before each word, which the database fills in."""

_LABELS = "ABC"
"""The weights that stand for the first, second and third column."""

_MAX_POSITION = 16_383
_MAX_WORDS = 60_000
"""Words of a row; more would pass PostgreSQL's limit of one megabyte."""

_MAX_WORD_BYTES = 120
_MAX_POSITIONS = 64
"""Uses of a word in a row; BM25 hardly tells more of them apart."""

_PHRASE = re.compile(r'(?:\{(\w+)\} : )?"([^"]*)"')


def create(db: Connection, table: str, columns: Sequence[str]) -> None:
    """Create an empty table."""
    db.rows(f"SELECT create_word_table('{table}', '{{{','.join(columns)}}}')")


def add(
    db: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Add new rows, each with its number and the texts of the columns in order."""
    del columns
    vectors = [(n, *_vector(texts)) for n, *texts in rows]
    if not vectors:
        return
    db.run_many(
        f"INSERT INTO {table} (n, words, length) VALUES (:n, owned_words(:words), :length)",
        vectors,
    )
    _count(db, table, len(vectors), sum(length for _, _, length in vectors))


def _count(db: Connection, table: str, rows: int, length: int) -> None:
    db.run(
        "INSERT INTO word_totals (name, entries, length) VALUES (:name, :entries, :length)"
        " ON CONFLICT (name) DO UPDATE SET entries = word_totals.entries + excluded.entries,"
        " length = word_totals.length + excluded.length",
        name=table,
        entries=rows,
        length=length,
    )


def _vector(texts: Sequence[str]) -> tuple[str, int]:
    """Return the words of a row with their places, and how many there are."""
    places: dict[str, list[str]] = {}
    position = count = 0
    for label, text in zip(_LABELS, texts, strict=False):
        for word in tokens(text):
            count += 1
            position += 1
            if count <= _MAX_WORDS:
                places_of_word = places.setdefault(word, [])
                if len(places_of_word) < _MAX_POSITIONS:
                    places_of_word.append(f"{min(position, _MAX_POSITION)}{label}")
        position += 1  # a phrase does not cross columns
    return " ".join(f"{_lexeme(word)}:{','.join(at)}" for word, at in places.items()), count


def _lexeme(word: str) -> str:
    cut = word.encode()[:_MAX_WORD_BYTES].decode(errors="ignore")
    quoted = cut.replace("\\", "\\\\").replace("'", "''")
    return f"'{PREFIX_SIGN}{quoted}'"


def remove(db: Connection, table: str, ns: Sequence[int]) -> None:
    """Delete rows; missing ones are ignored."""
    lengths = db.column(
        f"DELETE FROM {table} WHERE {among('n', 'ns')} RETURNING length", ns=int_array(ns)
    )
    if lengths:
        _count(db, table, -len(lengths), -sum(lengths))


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
    phrases = [phrase for phrase in map(_phrase, _PHRASE.finditer(query)) if phrase]
    if not phrases:
        return []
    weight_list = ", ".join(f"{weight:g}" for weight in weights)
    rows = db.rows(
        "SELECT entries, total, ns, lengths, uses"
        f" FROM uses_in_{table}(:phrases, ARRAY[{weight_list}]::float8[])",
        phrases=text_array(list(dict.fromkeys(phrases))),
    )
    ns, scores = _score(rows)
    bounds = [f"{table}.n IN ({only})"] if only else []
    if unless:
        bounds.append(f"NOT EXISTS ({unless.format(n=f'{table}.n')})")
    best = best_first(scores, len(scores) if bounds else limit)
    if bounds:
        best = best[_passing(db, table, ns[best], " AND ".join(bounds), limit, params)]
    return list(zip(ns[best].tolist(), scores[best].tolist(), strict=True))


def _score(rows: Sequence[Row]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows that have a word, in order of their numbers, with their BM25 scores.

    For each phrase there are the numbers and lengths of all rows with it, and its weighted uses.
    """
    if not rows:
        return np.empty(0, np.int64), np.empty(0)
    parts = []
    for entries, total, _, lengths, uses in rows:
        count = np.count_nonzero(uses > 0)
        rarity = math.log(max(1e-9, (entries - count + 0.5) / (count + 0.5)))
        average = max(total / entries, 1e-9)
        norms = _K1 * (1 - _B + _B / average * lengths)
        parts.append(max(_LEAST_RARITY, rarity) * (_K1 + 1) * uses / (uses + norms))
    ns = np.concatenate([row[2] for row in rows])
    order = np.argsort(ns, kind="stable")
    ns = ns[order]
    starts = np.flatnonzero(np.diff(ns, prepend=ns[0] - 1))
    return ns[starts], np.add.reduceat(np.concatenate(parts)[order], starts)


def _passing(
    db: Connection,
    table: str,
    ns: NDArray[np.int64],
    bounds: str,
    limit: int,
    params: dict[str, Any],
) -> list[int]:
    """Return the places of the first rows that pass conditions."""
    if not len(ns):
        return []
    sql = (
        f"SELECT place - 1 FROM unnest(:found) WITH ORDINALITY AS {table} (n, place)"
        f" WHERE {bounds} ORDER BY place LIMIT :limit"
    )
    return db.column(sql, found=int_array(ns), limit=limit, **params)


def _phrase(match: re.Match[str]) -> str:
    return _phrase_of(match[2], "")


def _phrase_of(text: str, label: str) -> str:
    suffix = f":{label}" if label else ""
    return " <-> ".join(f"{_lexeme(word)}{suffix}" for word in tokens(text))


def match_query(table: str, name: str) -> str:
    """Return the query for the numbers `n` of the rows that match a query bound to `name`."""
    return f"SELECT n FROM match_words('{table}', :{name}) AS matched (n)"


def phrase_query(words: str, column: str = "") -> str:
    """Return the query for a phrase, in any column or in one."""
    return _phrase_of(words, _COLUMN_LABELS[column] if column else "")


_COLUMN_LABELS = {"text": "A", "summary": "A", "title": "A", "content": "B"}
"""The labels of the columns that are searched on their own."""


def all_rows_query(table: str) -> str:
    """Return the query for the numbers `n` of all rows of a table."""
    return f"SELECT n FROM {table}"


def count_rows(db: Connection, table: str, terms: Sequence[str]) -> list[int]:
    """Return how many rows contain each of some words, in any inflection."""
    if not terms:
        return []
    sql = (
        f"SELECT (SELECT count(*) FROM match_words('{table}', asked.query))"
        " FROM unnest(:queries) WITH ORDINALITY AS asked (query, place) ORDER BY place"
    )
    return db.column(sql, queries=text_array([phrase_query(term) for term in terms]))


def run_command(
    db: Connection, table: str, command: Literal["optimize", "delete-all", "integrity-check"]
) -> None:
    """Delete all rows, or check the totals; the server merges its index itself."""
    if command == "delete-all":
        db.run(f"DELETE FROM {table}")
        db.run("DELETE FROM word_totals WHERE name = :name", name=table)
