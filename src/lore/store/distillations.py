"""Distillations: condensed logs of segments, searchable like what they condense."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import orjson

from lore import clock
from lore.records import Distillation
from lore.store import changes, items, keywords, session_states
from lore.store.items import NewItem
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection, Row, among, id_of, id_text, numbers
from lore.text import tokens

_COLUMNS = (
    f"{id_text('i.id')}, s.id, d.generation, d.text, d.from_message, d.to_message, i.tokens,"
    " d.source_tokens, d.archived, i.created_at, d.sources"
)
_FROM = "FROM distillations d JOIN items i ON i.n = d.n JOIN sessions s ON s.n = d.session_n"


def add(db: Connection, session_n: int, distillation: Distillation, *, now: datetime) -> int:
    """Store a distillation of a session and make it findable."""
    project_n = db.value("SELECT project_n FROM sessions WHERE n = :n", n=session_n)
    at = clock.to_us(distillation.created_at)
    size = tokens.count(distillation.text)
    n = items.add(
        db,
        NewItem(distillation.id, "distillation", project_n, session_n, at, size, embeds=True),
    )
    db.run(
        "INSERT INTO distillations (n, session_n, generation, text, from_message, to_message,"
        " source_tokens, sources, archived) VALUES (:n, :session_n, :generation, :text,"
        " :from_message, :to_message, :source_tokens, :sources, :archived)",
        n=n,
        session_n=session_n,
        generation=distillation.generation,
        text=distillation.text,
        from_message=distillation.from_message,
        to_message=distillation.to_message,
        source_tokens=distillation.source_tokens,
        sources=orjson.dumps(distillation.sources).decode(),
        archived=int(distillation.archived),
    )
    keywords.add_distillation(db, n, distillation.text)
    changes.log(db, "add", [n], now)
    return n


def by_number(db: Connection, ns: Sequence[int]) -> dict[int, Distillation]:
    """Return distillations by number."""
    if not len(ns):
        return {}
    rows = db.rows(f"SELECT d.n, {_COLUMNS} {_FROM} WHERE {among('d.n', 'ns')}", ns=numbers(ns))
    return {row[0]: _distillation(row[1:]) for row in rows}


def of_session(db: Connection, session_n: int) -> list[Distillation]:
    """Return the distillations of a session, oldest first."""
    rows = db.rows(
        f"SELECT {_COLUMNS} {_FROM} WHERE d.session_n = :n ORDER BY i.created_at, d.n",
        n=session_n,
    )
    return [_distillation(row) for row in rows]


def exist(db: Connection) -> bool:
    """Tell whether there are distillations at all."""
    return db.find("SELECT 1 FROM distillations LIMIT 1") is not None


def among_items(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return those of the items that are distillations."""
    if not len(ns) or not exist(db):
        return []
    rows = db.rows(
        f"SELECT n FROM distillations WHERE {among('n', 'ns')} ORDER BY n", ns=numbers(ns)
    )
    return [row[0] for row in rows]


class Span(NamedTuple):
    """The messages that one distillation covers, by their ordinals; both ends belong to it."""

    n: int
    first: int
    last: int


def extents(db: Connection, session_n: int) -> dict[str, tuple[int, str, int, str]]:
    """Return for each distillation of a session its first and last message, with ordinals."""
    rows = db.rows(
        f"SELECT {id_text('i.id')}, first.ordinal, d.from_message, last.ordinal, d.to_message"
        " FROM distillations d JOIN items i ON i.n = d.n"
        f" JOIN items a ON a.id = {id_of('d.from_message')}"
        f" JOIN items b ON b.id = {id_of('d.to_message')}"
        " JOIN messages first ON first.n = a.n JOIN messages last ON last.n = b.n"
        " WHERE d.session_n = :session_n",
        session_n=session_n,
    )
    return {row[0]: row[1:] for row in rows}


def spans(db: Connection, session_n: int) -> list[Span]:
    """Return what the distillations of generation 0 cover, in the order of the talk."""
    rows = db.rows(_SPANS, session_n=session_n)
    return [Span(*row) for row in rows]


_SPANS = (
    "SELECT d.n, first.ordinal, last.ordinal FROM distillations d"
    f" JOIN items a ON a.id = {id_of('d.from_message')}"
    f" JOIN items b ON b.id = {id_of('d.to_message')}"
    " JOIN messages first ON first.n = a.n JOIN messages last ON last.n = b.n"
    " WHERE d.session_n = :session_n AND d.generation = 0 ORDER BY first.ordinal, d.n"
)


def told_by(db: Connection, ns: Sequence[int]) -> dict[int, tuple[tuple[int, ...], ...]]:
    """Return for each line of distillations the numbers of the messages that it tells."""
    if not len(ns):
        return {}
    sources = {
        n: (session_n, unpack_json(packed))
        for n, session_n, packed in db.rows(
            f"SELECT n, session_n, sources FROM distillations WHERE {among('n', 'ns')}",
            ns=numbers(ns),
        )
    }
    wanted: dict[int, set[int]] = {}
    for session_n, lines in sources.values():
        wanted.setdefault(session_n, set()).update(o for line in lines for o in line)
    known: dict[tuple[int, int], int] = {}
    for session_n, ordinals in wanted.items():
        rows = db.rows(
            "SELECT ordinal, n FROM messages WHERE session_n = :session_n"
            f" AND {among('ordinal', 'ordinals')}",
            session_n=session_n,
            ordinals=numbers(sorted(ordinals)),
        )
        known |= {(session_n, ordinal): n for ordinal, n in rows}
    return {
        n: tuple(
            tuple(known[session_n, o] for o in line if (session_n, o) in known) for line in lines
        )
        for n, (session_n, lines) in sources.items()
    }


def archive(db: Connection, ns: Sequence[int], *, archived: bool = True) -> None:
    """Mark distillations as told by a newer one, or take that mark away."""
    db.run(
        f"UPDATE distillations SET archived = :archived WHERE {among('n', 'ns')}",
        archived=int(archived),
        ns=numbers(ns),
    )


class Extent(NamedTuple):
    """How far a session has come: its last ordinal, its messages, its distillations."""

    last: int
    messages: int
    distillations: int


def extent_of(db: Connection, session_n: int) -> Extent:
    """Return how far a session has come."""
    return Extent(*db.rows(_EXTENT, session_n=session_n)[0])


_EXTENT = (
    "SELECT coalesce(max(m.ordinal), -1), count(*), (SELECT count(*) FROM distillations d"
    " WHERE d.session_n = :session_n AND d.generation = 0)"
    " FROM messages m WHERE m.session_n = :session_n"
)


def mark_done(db: Connection, session_n: int, at: Extent, *, now: datetime) -> None:
    """Note that a session was distilled as far as it had come; it is due again once it differs."""
    session_states.put(db, session_n, "distilled", list(at), now=now)


def due(db: Connection, *, now: datetime, idle_s: float, limit: int) -> list[str]:
    """Return the ids of quiet sessions that differ from when they were last distilled."""
    rows = db.rows(
        "WITH grown AS (SELECT session_n, max(ordinal) AS last, count(*) AS messages"
        " FROM messages GROUP BY session_n) SELECT s.id, g.last, g.messages,"
        " (SELECT count(*) FROM distillations d WHERE d.session_n = s.n AND d.generation = 0),"
        " t.value FROM sessions s JOIN grown g ON g.session_n = s.n LEFT JOIN session_states t"
        " ON t.session_n = s.n AND t.name = 'distilled'"
        " WHERE s.last_message_at <= :quiet ORDER BY s.last_message_at DESC",
        quiet=clock.to_us(now) - round(idle_s * 1e6),
    )
    found = (id_ for id_, *at, done in rows if done is None or unpack_json(done) != at)
    return list(islice(found, limit))


def remove(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Delete distillations; they can be made anew from the messages."""
    ids = items.ids_of(db, ns)
    keywords.remove(db, ns, type="distillation")
    db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=numbers(ns))
    changes.bury(db, list(ids.values()), now)


def _distillation(row: Row) -> Distillation:
    values = dict(zip(Distillation.__dataclass_fields__, row, strict=True))
    sources = tuple(tuple(line) for line in unpack_json(row[10]))
    values |= {"archived": bool(row[8]), "created_at": moment(row[9]), "sources": sources}
    return Distillation(**values)
