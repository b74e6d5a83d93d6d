"""Replacements: which statements a newer one replaced, and which items wait to be judged.

A link says that a sentence of one item was replaced by a sentence of a newer item. Links are
derived from messages and fragments, and are deleted with either end, and with a message that they
quote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from lore.store import items
from lore.store.codec import unpack_json
from lore.store.overview import is_known_empty
from lore.store.sql_connection import (
    Connection,
    among,
    id_text,
    int_array,
    json_list_overlaps,
    text_array,
)
from lore.text import words

Relation = Literal["replaces", "partly", "may_replace", "dismissed", "possible"]
"""Replaced as a whole, replaced for some of its cases, doubtful, dismissed by a person or a chat,
or so unlikely that only a chat is asked about it: no reader sees what is only possible."""

SAME_STATEMENT = 0.6
"""Two sentences with this share of words in common are the same statement: a fragment or a standing
instruction is a sentence of its message with few changes."""

STATEMENT_BYTES = 1_000
"""A replaced statement is stored up to here: PostgreSQL's keys, of which it is one, are short."""

_MOST_CHARACTER_BYTES = 4
_DAY_US = 86_400_000_000
_MOST_STEPS = 16
"""A value that was replaced more often than this is followed no further."""


class Replacement(NamedTuple):
    """A sentence of an older item, and the newer sentence that replaced it or may have.

    `at` is the time of the newer one in microseconds; `statements` counts those of the older item.
    `newer_asked_n` and `older_asked_n` are the messages whose question or request a sentence begins
    with.
    """

    older_n: int
    older_text: str
    newer_n: int
    newer_text: str
    relation: Relation
    certainty: float
    at: int
    statements: int = 1
    newer_asked_n: int | None = None
    older_asked_n: int | None = None

    @property
    def item_ns(self) -> set[int]:
        """Return all items whose words the link has."""
        asked_ns = {n for n in (self.newer_asked_n, self.older_asked_n) if n is not None}
        return {self.older_n, self.newer_n, *asked_ns}


class Successor(NamedTuple):
    """What holds in place of an item: the newest sentence, its item and its time.

    `is_whole` is False if the item says something else that still holds, or holds in other cases.
    `older_text` is the sentence of the item that was replaced, if the item says more than that.
    """

    n: int
    text: str
    at: int
    relation: Relation
    is_whole: bool
    older_text: str


def queue(db: Connection, ns: Iterable[int]) -> None:
    """Queue items to be judged."""
    sql = "INSERT INTO replacement_queue (n) VALUES (:n) ON CONFLICT DO NOTHING"
    db.run_many(sql, [(n,) for n in ns])


def waiting_items(db: Connection, *, limit: int, without: Collection[int] = ()) -> list[int]:
    """Return items that wait to be judged, in the order of their times, but those `without`.

    A pair is judged when its newer item is; so the newer one waits until the older one is done.
    """
    return db.column(
        "SELECT q.n FROM replacement_queue q JOIN items i ON i.n = q.n"
        f" WHERE NOT {among('q.n', 'without')} ORDER BY i.created_at, q.n LIMIT :limit",
        limit=limit,
        without=int_array(sorted(without)),
    )


def count_waiting(db: Connection) -> int:
    """Return how many items wait to be judged."""
    count: int = db.value("SELECT count(*) FROM replacement_queue")
    return count


def still_waiting(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return those of the items that wait to be judged."""
    sql = f"SELECT n FROM replacement_queue WHERE {among('n', 'ns')}"
    return set(db.column(sql, ns=int_array(ns)))


def record(db: Connection, judged_ns: Sequence[int], links: Sequence[Replacement]) -> int:
    """Store links between items that still exist, take the judged items off the queue.

    Return how many links are new. A link that is known keeps the more certain relation. What was
    judged with a question or a request that is gone is queued again.
    """
    named = {n for link in links for n in link.item_ns}
    there = set(
        db.column(f"SELECT n FROM items WHERE {among('n', 'ns')}", ns=int_array(sorted(named)))
    )
    stored = [link for link in links if link.item_ns <= there and _put(db, link)]
    db.run_many("DELETE FROM replacement_queue WHERE n = :n", [(n,) for n in judged_ns])
    queue(db, {one.newer_n for one in links if not one.item_ns <= there} & there)
    if any(link.relation != "possible" for link in stored):
        count_change(db)
    return len(stored)


def _put(db: Connection, link: Replacement) -> int:
    return db.run(
        "INSERT INTO replacements (older_n, older_text, newer_n, newer_text, relation, certainty,"
        " at, statements, newer_asked_n, older_asked_n) VALUES (:older_n, :older_text, :newer_n,"
        " :newer_text, :relation, :certainty, :at, :statements, :newer_asked_n, :older_asked_n)"
        " ON CONFLICT (older_n, older_text, newer_n) DO UPDATE SET newer_text ="
        " excluded.newer_text, newer_asked_n = excluded.newer_asked_n, relation ="
        " excluded.relation, certainty = excluded.certainty"
        " WHERE excluded.certainty > replacements.certainty",
        **link._asdict() | {"older_text": statement_key(link.older_text)},
    )


def statement_key(statement: str) -> str:
    """Return what is stored of a replaced statement, and compared with other stored ones."""
    return statement.encode()[:STATEMENT_BYTES].decode(errors="ignore")


def find_whole(stored: str, texts: Iterable[str]) -> str | None:
    """Return a statement of which a link may have the beginning; None if the rest is gone.

    `texts` are what its item states now.
    """
    whole = next((text for text in texts if statement_key(text) == stored), None)
    is_cut = len(stored.encode()) > STATEMENT_BYTES - _MOST_CHARACTER_BYTES
    return whole if whole is not None or is_cut else stored


_OF_ITEMS = f"({among('older_n', 'ns')} OR {among('newer_n', 'ns')})"


def remove(db: Connection, ns: Sequence[int]) -> None:
    """Delete the links of items, older or newer."""
    if db.run(f"DELETE FROM replacements WHERE {_OF_ITEMS}", ns=int_array(ns)):
        count_change(db)


def remove_forgotten(db: Connection, ns: Sequence[int]) -> list[int]:
    """Delete the links of items that are forgotten, and all others that quote them.

    The newer items of the others are queued, to be judged without the words that go; return them.
    """
    remove(db, ns)
    sql = (
        f"DELETE FROM replacements WHERE {among('newer_asked_n', 'ns')}"
        f" OR {among('older_asked_n', 'ns')} RETURNING newer_n"
    )
    quoting = sorted(set(db.column(sql, ns=int_array(ns))))
    if quoting:
        queue(db, quoting)
        count_change(db)
    return quoting


def count_change_of(db: Connection, n: int) -> None:
    """Count a change if an item that was deleted, superseded or restored has links."""
    if db.value(f"SELECT 1 FROM replacements WHERE {_OF_ITEMS} LIMIT 1", ns=int_array([n])):
        count_change(db)


def count_change(db: Connection) -> None:
    """Count a change: what was computed of instructions depends on them and on the links.

    An edited instruction keeps its number and time.
    """
    db.run(
        "INSERT INTO meta (key, value) VALUES ('standing_changes', '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(meta.value AS INTEGER) + 1"
    )


_COLUMNS = (
    "r.older_n, r.older_text, r.newer_n, r.newer_text, r.relation, r.certainty, r.at, r.statements,"
    " r.newer_asked_n, r.older_asked_n"
)
_LIVE = (
    "FROM replacements r JOIN items older ON older.n = r.older_n"
    " JOIN items newer ON newer.n = r.newer_n LEFT JOIN fragments o ON o.n = r.older_n"
    " LEFT JOIN fragments f ON f.n = r.newer_n WHERE f.deleted_at IS NULL"
    " AND o.deleted_at IS NULL AND r.relation NOT IN ('dismissed', 'possible')"
    " AND (f.superseded_by IS NULL"
    f" OR f.superseded_by <> {id_text('older.id')})"
    f" AND coalesce({items.scope_sql('newer')}, {items.scope_sql('older')}, -1)"
    f" = coalesce({items.scope_sql('older')}, -1)"
)
"""Links that hold where the older item applies, and whose fragments, if any, are not deleted. A
newer one that was superseded, for example merged with a duplicate, still replaces the older, unless
that one superseded it."""


def links_of(db: Connection, ns: Sequence[int]) -> dict[int, list[Replacement]]:
    """Return the links of older items by their number: the clearest relation first.

    Of one relation, the newest comes first; of one day, the most certain.
    """
    if not len(ns) or is_known_empty(db, "replacements"):
        return {}
    rows = db.rows(
        f"SELECT {_COLUMNS} {_LIVE} AND {among('r.older_n', 'ns')} ORDER BY r.relation ="
        " 'replaces' DESC, r.relation = 'partly' DESC, r.at / :day DESC, r.certainty DESC,"
        " r.n DESC",
        day=_DAY_US,
        ns=int_array(ns),
    )
    links: dict[int, list[Replacement]] = {}
    for row in rows:
        links.setdefault(row[0], []).append(Replacement._make(row))
    return links


def doubtful_links(db: Connection, *, project_n: int | None, limit: int) -> list[Replacement]:
    """Return the pairs of which the newer may replace the older, newest first."""
    rows = db.rows(
        f"SELECT {_COLUMNS} {_LIVE} AND r.relation = 'may_replace' AND (:project_n IS NULL"
        " OR r.older_n IN (SELECT n FROM items WHERE project_n = :project_n))"
        " ORDER BY r.at DESC, r.n DESC LIMIT :limit",
        project_n=project_n,
        limit=limit,
    )
    return [Replacement._make(row) for row in rows]


CHAT_CERTAINTY = 0.99
"""Of what a chat settled: it outweighs the pair model, and a person (1.0) outweighs both."""

MODEL_CERTAINTY = 0.98
"""The most of what the pair model or a rule thinks, and of what follows from links: a chat may be
asked about it."""

_UNDECIDED = f"r.n > :after AND r.certainty < {CHAT_CERTAINTY} AND r.relation <> 'dismissed'"


def links_to_judge(db: Connection, *, after: int, limit: int) -> list[tuple[int, Replacement]]:
    """Return links that nobody settled yet, with their numbers, from the one after a number on."""
    rows = db.rows(
        f"SELECT r.n, {_COLUMNS} FROM replacements r WHERE {_UNDECIDED} ORDER BY r.n LIMIT :limit",
        after=after,
        limit=limit,
    )
    return [(row[0], Replacement._make(row[1:])) for row in rows]


def count_to_judge(db: Connection, *, after: int) -> int:
    """Return how many links nobody settled yet, from the one after a number on."""
    sql = f"SELECT count(*) FROM replacements r WHERE {_UNDECIDED}"
    return int(db.value(sql, after=after))


def find_pair(db: Connection, link: Replacement) -> PairState | None:
    """Return the state of the link between the same sentence and the same item, if there is one."""
    row = db.find(
        f"SELECT {_PAIR_COLUMNS} FROM replacements WHERE older_n = :older_n"
        " AND older_text = :older_text AND newer_n = :newer_n",
        older_n=link.older_n,
        older_text=statement_key(link.older_text),
        newer_n=link.newer_n,
    )
    return PairState(*row) if row else None


def drop_link(db: Connection, n: int) -> bool:
    """Delete a link by its number; return whether it was there."""
    is_there = bool(db.run("DELETE FROM replacements WHERE n = :n", n=n))
    if is_there:
        count_change(db)
    return is_there


def links_to(db: Connection, newer_n: int) -> list[Replacement]:
    """Return the links of what an item replaces, or may replace."""
    sql = f"SELECT {_COLUMNS} {_LIVE} AND r.newer_n = :newer_n"
    return [Replacement._make(row) for row in db.rows(sql, newer_n=newer_n)]


def fragments_linked_to(
    db: Connection, newer_n: int, message_ids: Collection[str]
) -> list[tuple[int, Relation]]:
    """Return the fragments made of messages that an item replaces, or may replace, with how."""
    rows = db.rows(
        "SELECT r.older_n, r.relation FROM replacements r JOIN fragments f ON f.n = r.older_n"
        " WHERE r.newer_n = :newer_n AND r.relation <> 'dismissed'"
        f" AND {json_list_overlaps('f.source_messages', 'ids')}",
        newer_n=newer_n,
        ids=text_array(sorted(message_ids)),
    )
    return [(n, relation) for n, relation in rows]


def settle(db: Connection, older_n: int, newer_n: int, relation: Relation) -> bool:
    """Set the relation of a linked pair by a person's decision; return whether there is one."""
    is_there = bool(
        db.run(
            "UPDATE replacements SET relation = :relation, certainty = 1 WHERE older_n = :older_n"
            " AND newer_n = :newer_n AND relation <> 'dismissed'",
            older_n=older_n,
            newer_n=newer_n,
            relation=relation,
        )
    )
    if is_there:
        count_change(db)
    return is_there


class PairState(NamedTuple):
    """The number of a link, its relation, how certain that is, and what it links."""

    n: int
    relation: Relation
    certainty: float
    older_n: int
    newer_n: int


_PAIR_COLUMNS = "n, relation, certainty, older_n, newer_n"

RELATIONS: tuple[Relation, ...] = get_args(Relation)


def doubtful_states(db: Connection) -> dict[int, PairState]:
    """Return the links that wait for a person's decision, by number."""
    sql = f"SELECT {_PAIR_COLUMNS} FROM replacements WHERE relation = 'may_replace'"
    return {row[0]: PairState(*row) for row in db.rows(sql)}


def pair_states(db: Connection, ns: Collection[int]) -> dict[int, PairState]:
    """Return links by number."""
    sql = f"SELECT {_PAIR_COLUMNS} FROM replacements WHERE {among('n', 'ns')}"
    return {row[0]: PairState(*row) for row in db.rows(sql, ns=int_array(sorted(ns)))}


def set_pair_states(db: Connection, states: Sequence[PairState]) -> None:
    """Set the relations of links: an earlier decision is undone."""
    for state in states:
        db.update("replacements", state.n, relation=state.relation, certainty=state.certainty)
    if states:
        count_change(db)


def successors(db: Connection, ns: Sequence[int]) -> dict[int, Successor]:
    """Return what replaced items, or may have, by their numbers; the last of a chain holds."""
    by_n = {}
    for n, links in links_of(db, ns).items():
        last = follow(db, links[0])
        extent = _extent(links)
        says_more = links[0].statements > 1 and not extent.is_whole
        older_text = links[0].older_text if says_more else ""
        by_n[n] = Successor(last.newer_n, last.newer_text, last.at, *extent, older_text)
    return by_n


class Extent(NamedTuple):
    """The clearest relation of an item's links, and whether all of the item is replaced."""

    relation: Relation
    is_whole: bool


def extents(db: Connection, ns: Sequence[int]) -> dict[int, Extent]:
    """Return how far items are replaced, or may be, by their numbers; one query for all."""
    return {n: _extent(links) for n, links in links_of(db, ns).items()}


def _extent(links: Sequence[Replacement]) -> Extent:
    replaced = {link.older_text for link in links if link.relation == "replaces"}
    return Extent(links[0].relation, len(replaced) >= links[0].statements)


def holding(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return those of the fragments that a list without marks shows as what holds now.

    What is replaced, also in part, is left out; and what may be: a person settles it.
    """
    replaced = extents(db, ns)
    return [n for n in ns if n not in replaced]


def follow(db: Connection, link: Replacement) -> Replacement:
    """Return the last link of the chain that begins with a link.

    What may have replaced a successor says nothing about what that one certainly replaced.
    """
    for _ in range(_MOST_STEPS):
        link = _with_superseding(db, link)
        further = [
            one
            for one in links_of(db, [link.newer_n]).get(link.newer_n, ())
            if one.at > link.at and is_same_statement(one.older_text, link.newer_text)
            if link.relation == "may_replace" or one.relation != "may_replace"
        ]
        if not further:
            break
        link = further[0]
    return link


def _with_superseding(db: Connection, link: Replacement) -> Replacement:
    """Return a link to what superseded its newer fragment in the end, if anything did."""
    for _ in range(_MOST_STEPS):
        id_ = db.value("SELECT superseded_by FROM fragments WHERE n = :n", n=link.newer_n)
        n = items.find_number(db, id_) if id_ else None
        sql = "SELECT content FROM fragments WHERE n = :n AND deleted_at IS NULL"
        content = db.value(sql, n=n) if n is not None else None
        if n is None or content is None:
            break
        link = link._replace(newer_n=n, newer_text=content)
    return link


def replaced_texts(db: Connection, ns: Sequence[int]) -> dict[int, list[str]]:
    """Return the replaced sentences of items by their numbers."""
    return {
        n: [link.older_text for link in links if link.relation == "replaces"]
        for n, links in links_of(db, ns).items()
    }


class Place(NamedTuple):
    """The id, project, session and time of an item."""

    id: str
    project_n: int | None
    session_n: int | None
    at: int = 0


def place_of(db: Connection, n: int) -> Place:
    """Return where an item belongs; nowhere if it is gone."""
    columns = f"{id_text('id')}, project_n, session_n, created_at"
    row = db.find(f"SELECT {columns} FROM items WHERE n = :n", n=n)
    return Place._make(row) if row else Place("", None, None)


def has_newer(db: Connection, place: Place) -> bool:
    """Return whether a session of the project went on after an item was said."""
    sql = "SELECT 1 FROM sessions WHERE project_n IS :project_n AND last_message_at > :at LIMIT 1"
    return bool(db.value(sql, project_n=place.project_n, at=place.at))


def derived_fragments(db: Connection, message_ids: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the contents of the fragments made of messages, by message and number: one scan."""
    derived: dict[str, dict[int, str]] = {id_: {} for id_ in message_ids if id_}
    if not derived:
        return {}
    rows = db.rows(
        "SELECT n, content, source_messages FROM fragments WHERE source_messages <> '[]'"
        " AND deleted_at IS NULL AND kind <> 'episode'"
        f" AND {json_list_overlaps('source_messages', 'ids')}",
        ids=text_array(list(derived)),
    )
    for n, content, sources in rows:
        for id_ in derived.keys() & set(unpack_json(sources)):
            derived[id_][n] = content
    return derived


def episodes_of(db: Connection, session_n: int | None) -> Mapping[int, str]:
    """Return the contents of the episodes of a session, by number."""
    rows = db.rows(
        "SELECT f.n, f.content FROM items i JOIN fragments f ON f.n = i.n"
        " WHERE i.session_n = :session_n AND f.kind = 'episode' AND f.deleted_at IS NULL",
        session_n=session_n,
    )
    return dict(rows)


def links_of_session(db: Connection, session_n: int | None) -> list[Replacement]:
    """Return the links of the messages of a session."""
    rows = db.rows(
        f"SELECT {_COLUMNS} {_LIVE} AND o.n IS NULL"
        " AND r.older_n IN (SELECT n FROM items WHERE session_n = :session_n)",
        session_n=session_n,
    )
    return [Replacement._make(row) for row in rows]


def is_same_statement(one: str, other: str) -> bool:
    """Return whether two sentences say the same in nearly the same words."""
    a, b = frozenset(words.split(one)), frozenset(words.split(other))
    if not a or not b:
        return False
    return len(a & b) >= SAME_STATEMENT * min(len(a), len(b)) and (
        len(a & b) >= SAME_STATEMENT * SAME_STATEMENT * max(len(a), len(b))
    )
