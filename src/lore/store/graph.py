"""The graph: typed edges between fragments, and the entities that fragments mention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.records import Edge, EdgeKind
from lore.store.codec import unpack_record
from lore.store.overview import is_known_empty
from lore.store.sql_connection import (
    Connection,
    Row,
    among,
    bound_values,
    id_text,
    int_array,
    text_array,
)
from lore.text import entities
from lore.text.entities import Mention

_MAX_DEPTH = 64


class EdgeRow(NamedTuple):
    """One edge by the numbers of its ends."""

    source_n: int
    target_n: int
    kind: EdgeKind
    weight: float


class EdgeState(NamedTuple):
    """The weight and note of an edge."""

    weight: float
    note: str


def put_edge(
    db: Connection,
    source_n: int,
    target_n: int,
    kind: EdgeKind,
    *,
    now: datetime,
    weight: float = 1.0,
    note: str = "",
) -> None:
    """Store an edge; an existing one takes the new weight and note."""
    db.run(
        "INSERT INTO edges (source_n, target_n, kind, weight, note, created_at)"
        " VALUES (:source_n, :target_n, :kind, :weight, :note, :at)"
        " ON CONFLICT (source_n, target_n, kind)"
        " DO UPDATE SET weight = excluded.weight, note = excluded.note",
        source_n=source_n,
        target_n=target_n,
        kind=kind,
        weight=weight,
        note=note,
        at=clock.to_us(now),
    )


def remove_edge(db: Connection, source_n: int, target_n: int, kind: EdgeKind) -> Row | None:
    """Delete an edge; return its weight, note and time if it existed."""
    sql = f"DELETE FROM edges WHERE {_THIS_EDGE} RETURNING weight, note, created_at"
    return db.find(sql, source_n=source_n, target_n=target_n, kind=kind)


def find_edge(db: Connection, source_n: int, target_n: int, kind: EdgeKind) -> EdgeState | None:
    """Return the weight and note of an edge, or None."""
    sql = f"SELECT weight, note FROM edges WHERE {_THIS_EDGE}"
    row = db.find(sql, source_n=source_n, target_n=target_n, kind=kind)
    return None if row is None else EdgeState(*row)


def edges_of_fragment(db: Connection, n: int) -> list[Edge]:
    """Return the edges of a fragment, in both directions."""
    sql = (
        f"SELECT {id_text('a.id')}, {id_text('b.id')}, e.kind, e.weight, e.note, e.created_at"
        " FROM edges e JOIN items a ON a.n = e.source_n JOIN items b ON b.n = e.target_n"
        " WHERE e.source_n = :n OR e.target_n = :n ORDER BY e.kind, e.weight DESC"
    )
    return [unpack_record(Edge, row) for row in db.rows(sql, n=n)]


def edges_among(db: Connection, ns: Sequence[int], kinds: Sequence[EdgeKind]) -> list[EdgeRow]:
    """Return the edges of some kinds that touch one of the fragments."""
    if not len(ns) or is_known_empty(db, "edges"):
        return []
    kind_list = ", ".join(f"'{kind}'" for kind in kinds)
    sql = (
        f"SELECT source_n, target_n, kind, weight FROM edges WHERE kind IN ({kind_list})"
        f" AND ({among('source_n', 'ns')} OR {among('target_n', 'ns')})"
    )
    return [EdgeRow(*row) for row in db.rows(sql, ns=int_array(ns))]


def children(db: Connection, n: int, *, deleted: bool = False) -> list[int]:
    """Return a fragment's children in the order they were learned; deleted ones if requested."""
    sql = (
        "SELECT e.target_n FROM edges e JOIN fragments f ON f.n = e.target_n"
        " WHERE e.source_n = :n AND e.kind = 'hierarchical'"
        " AND (:deleted OR f.deleted_at IS NULL) ORDER BY e.target_n"
    )
    return db.column(sql, n=n, deleted=deleted)


def find_parent(db: Connection, n: int) -> int | None:
    """Return a fragment's parent, or None."""
    sql = "SELECT source_n FROM edges WHERE target_n = :n AND kind = 'hierarchical'"
    return db.number(sql, n=n)


def subtree(db: Connection, n: int, *, max_depth: int = _MAX_DEPTH) -> list[tuple[int, int]]:
    """Return a fragment and its descendants, each with its distance from the top."""
    sql = (
        "WITH RECURSIVE below (n, distance) AS (SELECT CAST(:n AS INTEGER), 0 UNION"
        " SELECT e.target_n, b.distance + 1 FROM below b JOIN edges e ON e.source_n = b.n"
        " JOIN fragments f ON f.n = e.target_n"
        " WHERE e.kind = 'hierarchical' AND b.distance < :max_depth AND f.deleted_at IS NULL)"
        " SELECT n, min(distance) FROM below GROUP BY n ORDER BY 2, 1"
    )
    return [(n_, distance) for n_, distance in db.rows(sql, n=n, max_depth=max_depth)]


def ancestors(db: Connection, n: int) -> list[int]:
    """Return the ancestors of a fragment, from its root down to its parent."""
    return ancestors_of(db, [n])[n]


def ancestors_of(db: Connection, ns: Sequence[int]) -> dict[int, list[int]]:
    """Return the ancestors of each of the fragments, from its root down to its parent."""
    if is_known_empty(db, "edges"):
        return {n: [] for n in ns}
    rows = db.rows(
        "WITH RECURSIVE above (below, n, distance) AS (SELECT value, value, 0"
        f" FROM ({bound_values('ns')}) UNION"
        " SELECT a.below, e.source_n, a.distance + 1 FROM above a JOIN edges e"
        " ON e.target_n = a.n WHERE e.kind = 'hierarchical' AND a.distance < :deepest)"
        " SELECT below, n FROM above WHERE distance > 0 ORDER BY distance DESC",
        ns=int_array(ns),
        deepest=_MAX_DEPTH,
    )
    above: dict[int, list[int]] = {n: [] for n in ns}
    for below, n in rows:
        above[below].append(n)
    return above


_MAX_LINKED_CHARS = 2_000
"""At most this much of a text is searched for the titles of other fragments."""

_MAX_TITLE_WORDS = 6
"""The longest title that is searched for, in words."""

_MAX_LINKED = 200
"""A title that more texts contain is not linked."""

MentionTable = NDArray[np.int64]
"""Rows of (item, entity, 1 if the entity is the item's title, uses of the entity)."""


def add_mentions(db: Connection, item_n: int, mentions: Sequence[Mention]) -> None:
    """Store the entities that an item mentions."""
    for mention in mentions:
        entity_n = db.value(
            "INSERT INTO entities (name, uses) VALUES (:name, 1)"
            " ON CONFLICT (name) DO UPDATE SET uses = entities.uses + 1 RETURNING n",
            name=mention.name,
        )
        row = {"item_n": item_n, "entity_n": entity_n, "is_title": int(mention.is_title)}
        db.insert("mentions", **row)


def link_titles(db: Connection, item_n: int, content: str, mentions: Sequence[Mention]) -> None:
    """Link a fragment with others by title, whatever the capitalization.

    Titles of others in its text become mentions; so does its own title in older texts.
    """
    own_names = {mention.name for mention in mentions}
    phrases = (
        set(entities.phrases(content[:_MAX_LINKED_CHARS], longest=_MAX_TITLE_WORDS)) - own_names
    )
    if phrases:
        rows = db.rows(
            "SELECT DISTINCT e.name FROM entities e JOIN mentions m ON m.entity_n = e.n"
            f" WHERE m.is_title = 1 AND {among('e.name', 'names')}",
            names=text_array(sorted(phrases)),
        )
        add_mentions(db, item_n, [Mention(name) for (name,) in rows])
    for mention in mentions:
        if mention.is_title and " " in mention.name:
            _link_older_fragments(db, item_n, mention.name)


def _link_older_fragments(db: Connection, item_n: int, title: str) -> None:
    rows = db.rows(
        f"SELECT w.n FROM ({db.words.match_query('fragment_words', 'phrase')}) w WHERE w.n < :n"
        " AND w.n NOT IN (SELECT m.item_n FROM mentions m JOIN entities e"
        " ON e.n = m.entity_n WHERE e.name = :title) LIMIT :most",
        phrase=db.words.phrase_query(title, column="content"),
        title=title,
        n=item_n,
        most=_MAX_LINKED,
    )
    for (older_n,) in rows:
        content = db.value("SELECT content FROM fragments WHERE n = :n", n=older_n)
        if f" {title} " in f" {entities.normalise(content or '')} ":
            add_mentions(db, older_n, [Mention(title)])


def remove_mentions(db: Connection, item_ns: Sequence[int]) -> None:
    """Delete the mentions of items, and entities that are no longer mentioned."""
    if not len(item_ns):
        return
    rows = db.rows(
        f"DELETE FROM mentions WHERE {among('item_n', 'ns')} RETURNING entity_n",
        ns=int_array(item_ns),
    )
    for (entity_n,) in rows:
        db.run("UPDATE entities SET uses = uses - 1 WHERE n = :n", n=entity_n)
    if rows:
        db.run(
            f"DELETE FROM entities WHERE {among('n', 'ns')} AND uses <= 0",
            ns=int_array(sorted({row[0] for row in rows})),
        )


def find_titled(db: Connection, names: Iterable[str], *, most_each: int) -> dict[str, list[int]]:
    """Return for each name the items that have it as their title."""
    sql = (
        "SELECT m.item_n FROM entities e JOIN mentions m ON m.entity_n = e.n"
        " WHERE e.name = :name AND m.is_title = 1 LIMIT :most"
    )
    titled = {name: db.column(sql, name=name, most=most_each) for name in dict.fromkeys(names)}
    return {name: ns for name, ns in titled.items() if ns}


def mentions_of_items(db: Connection, item_ns: Sequence[int]) -> MentionTable:
    """Return the mentions of items."""
    sql = (
        "SELECT m.item_n, m.entity_n, m.is_title, e.uses FROM mentions m"
        f" JOIN entities e ON e.n = m.entity_n WHERE {among('m.item_n', 'ns')}"
    )
    return _mention_table(db, sql, item_ns)


def mentions_of_entities(db: Connection, entity_ns: Sequence[int]) -> MentionTable:
    """Return the mentions of entities."""
    sql = f"SELECT item_n, entity_n, is_title, 0 FROM mentions WHERE {among('entity_n', 'ns')}"
    return _mention_table(db, sql, entity_ns)


def _mention_table(db: Connection, sql: str, ns: Sequence[int]) -> MentionTable:
    rows = db.rows(sql, ns=int_array(ns)) if len(ns) else []
    return np.array(rows, np.int64).reshape(-1, 4)


def entity_names(db: Connection, entity_ns: Sequence[int]) -> dict[int, str]:
    """Return the names of entities by number."""
    if not len(entity_ns):
        return {}
    sql = f"SELECT n, name FROM entities WHERE {among('n', 'ns')}"
    return dict(db.rows(sql, ns=int_array(entity_ns)))


_THIS_EDGE = "source_n = :source_n AND target_n = :target_n AND kind = :kind"
