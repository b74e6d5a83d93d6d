"""Mentions: which entities a fragment names; a graph between fragments that share them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lore.store.sqlite import Connection, among, numbers, texts, word_tables
from lore.text import entities
from lore.text.entities import Mention

_LINKED_CHARS = 2_000
"""So much of a text is searched for the titles of other fragments."""

_LONGEST_TITLE = 6
"""Words of the longest title that is looked for."""

_MOST_LINKED = 200
"""A title that more texts have is no help."""

Table = NDArray[np.int64]
"""Rows of (item, entity, 1 if the entity is the item's title, uses of the entity)."""


def add(db: Connection, item_n: int, found: Sequence[Mention]) -> None:
    """Write down what an item mentions."""
    for mention in found:
        entity_n = db.value(
            "INSERT INTO entities (name, uses) VALUES (:name, 1)"
            " ON CONFLICT (name) DO UPDATE SET uses = entities.uses + 1 RETURNING n",
            name=mention.name,
        )
        db.run(
            "INSERT INTO mentions (item_n, entity_n, is_title)"
            " VALUES (:item_n, :entity_n, :is_title)",
            item_n=item_n,
            entity_n=entity_n,
            is_title=int(mention.is_title),
        )


def link_titles(db: Connection, item_n: int, content: str, found: Sequence[Mention]) -> None:
    """Link a fragment with others by title, also where the title is written without capitals.

    Titles of others that stand in its text are mentions; so is its own title in older texts.
    """
    known = {mention.name for mention in found}
    phrases = set(entities.phrases(content[:_LINKED_CHARS], longest=_LONGEST_TITLE)) - known
    if phrases:
        rows = db.rows(
            "SELECT DISTINCT e.name FROM entities e JOIN mentions m ON m.entity_n = e.n"
            f" WHERE m.is_title = 1 AND {among('e.name', 'names')}",
            names=texts(sorted(phrases)),
        )
        add(db, item_n, [Mention(name) for (name,) in rows])
    for mention in found:
        if mention.is_title and " " in mention.name:
            _link_older(db, item_n, mention.name)


def _link_older(db: Connection, item_n: int, title: str) -> None:
    rows = db.rows(
        f"SELECT w.n FROM ({word_tables.holding('fragment_words', 'phrase')}) w WHERE w.n < :n"
        " AND w.n NOT IN (SELECT m.item_n FROM mentions m JOIN entities e"
        " ON e.n = m.entity_n WHERE e.name = :title) LIMIT :most",
        phrase=word_tables.phrase(title, column="content"),
        title=title,
        n=item_n,
        most=_MOST_LINKED,
    )
    for (older_n,) in rows:
        content = db.value("SELECT content FROM fragments WHERE n = :n", n=older_n)
        if f" {title} " in f" {entities.normalise(content or '')} ":
            add(db, older_n, [Mention(title)])


def remove(db: Connection, item_ns: Sequence[int]) -> None:
    """Drop what items mention, and entities that nothing mentions any more."""
    if not len(item_ns):
        return
    rows = db.rows(
        f"DELETE FROM mentions WHERE {among('item_n', 'ns')} RETURNING entity_n",
        ns=numbers(item_ns),
    )
    for (entity_n,) in rows:
        db.run("UPDATE entities SET uses = uses - 1 WHERE n = :n", n=entity_n)
    if rows:
        db.run(
            f"DELETE FROM entities WHERE {among('n', 'ns')} AND uses <= 0",
            ns=numbers(sorted({row[0] for row in rows})),
        )


def titled(db: Connection, names: Iterable[str], *, most_each: int) -> dict[str, list[int]]:
    """Return for each name the items that have it as their title."""
    found: dict[str, list[int]] = {}
    for name in dict.fromkeys(names):
        rows = db.rows(
            "SELECT m.item_n FROM entities e JOIN mentions m ON m.entity_n = e.n"
            " WHERE e.name = :name AND m.is_title = 1 LIMIT :most",
            name=name,
            most=most_each,
        )
        if rows:
            found[name] = [row[0] for row in rows]
    return found


def of_items(db: Connection, item_ns: Sequence[int]) -> Table:
    """Return what items mention."""
    if not len(item_ns):
        return np.empty((0, 4), np.int64)
    return _table(
        db.rows(
            "SELECT m.item_n, m.entity_n, m.is_title, e.uses FROM mentions m"
            f" JOIN entities e ON e.n = m.entity_n WHERE {among('m.item_n', 'ns')}",
            ns=numbers(item_ns),
        )
    )


def of_entities(db: Connection, entity_ns: Sequence[int]) -> Table:
    """Return which items mention entities."""
    if not len(entity_ns):
        return np.empty((0, 4), np.int64)
    return _table(
        db.rows(
            f"SELECT item_n, entity_n, is_title, 0 FROM mentions WHERE {among('entity_n', 'ns')}",
            ns=numbers(entity_ns),
        )
    )


def _table(rows: Sequence[tuple[int, ...]]) -> Table:
    return np.array(rows, np.int64).reshape(-1, 4)


def names_of(db: Connection, entity_ns: Sequence[int]) -> dict[int, str]:
    """Return the names of entities."""
    if not len(entity_ns):
        return {}
    rows = db.rows(f"SELECT n, name FROM entities WHERE {among('n', 'ns')}", ns=numbers(entity_ns))
    return dict(rows)
