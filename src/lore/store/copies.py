"""Copies: what a fork took over from another session is stored once, where it was said.

A copy has the key, the digest and the time of its original. Sessions that share messages are
kin by their parents, so that only kin is searched; the way to the first of them is short, too:
a fork begins with copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lore import clock
from lore.store import changes, claims
from lore.store.messages import PreparedMessage
from lore.store.packing import pack_key, unpack_key
from lore.store.sqlite import Connection, Row, among, id_text, numbers

_HEAD_MESSAGES = 4
"""So many messages at the beginning of a session are looked for in others: what an agent notes
for itself may stand before the first copy."""

_CHANNEL = claims.number_of("file")
_SAME = "m.key, m.digest, i.created_at"


class _Mark(NamedTuple):
    """By which a message and its copies are known."""

    key: int
    digest: int
    at: int


class Held(NamedTuple):
    """A message that another session has."""

    n: int
    session_n: int


def _mark_of(message: PreparedMessage) -> _Mark:
    at = clock.to_us(message.new.created_at)
    return _Mark(pack_key(message.key), message.digest, at)


def find(db: Connection, session_n: int, fresh: Sequence[PreparedMessage]) -> dict[str, Held]:
    """Return by key those of a session's messages that its kin has, the first of them found."""
    near = set(_kin(db, session_n))
    head = fresh[: _HEAD_MESSAGES - _count(db, session_n)]
    for held in _held(db, _others(db, session_n, head), head).values():
        if held.session_n not in near:
            near |= {held.session_n, *_kin(db, held.session_n)}
    return _held(db, sorted(near), fresh)


def _held(
    db: Connection, session_ns: Sequence[int], wanted: Sequence[PreparedMessage]
) -> dict[str, Held]:
    if not session_ns or not wanted:
        return {}
    keys = {_mark_of(message): message.key for message in wanted}
    rows = db.rows(
        f"SELECT {_SAME}, m.n, m.session_n FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE {among('m.session_n', 'sessions')} AND {among('m.key', 'keys')}"
        " AND m.channel = :channel ORDER BY m.n DESC",
        sessions=numbers(session_ns),
        keys=numbers([mark.key for mark in keys]),
        channel=_CHANNEL,
    )
    return {keys[mark]: Held(*row[3:]) for row in rows if (mark := _Mark(*row[:3])) in keys}


def _kin(db: Connection, session_n: int) -> list[int]:
    """Return the other sessions that a session is linked with, up and down."""
    rows = db.rows(
        "WITH RECURSIVE kin (n) AS (SELECT n FROM sessions WHERE n = :n UNION"
        " SELECT CASE WHEN s.parent_n = kin.n THEN s.n ELSE s.parent_n END FROM kin"
        " JOIN sessions s ON s.parent_n = kin.n OR (s.n = kin.n AND s.parent_n IS NOT NULL))"
        " SELECT n FROM kin WHERE n <> :n",
        n=session_n,
    )
    return [row[0] for row in rows]


def _count(db: Connection, session_n: int) -> int:
    """Return how many messages a session has, as far as they belong to its head."""
    first = "SELECT 1 FROM messages WHERE session_n = :n LIMIT :most"
    return int(db.value(f"SELECT count(*) FROM ({first}) head", n=session_n, most=_HEAD_MESSAGES))


def _others(db: Connection, session_n: int, head: Sequence[PreparedMessage]) -> list[int]:
    """Return the sessions of the same agent and project that were not over before."""
    if not head:
        return []
    rows = db.rows(
        "SELECT s.n FROM sessions own JOIN sessions s ON s.agent = own.agent"
        " AND s.project_n IS NOT DISTINCT FROM own.project_n"
        " WHERE own.n = :n AND s.n <> :n AND s.last_message_at >= :earliest",
        n=session_n,
        earliest=min(_mark_of(message).at for message in head),
    )
    return [row[0] for row in rows]


def adopt_forks(db: Connection, session_n: int, fresh: Sequence[PreparedMessage]) -> None:
    """Link sessions that began with a copy of one of these messages, and were read before it."""
    if not fresh:
        return
    moments = [clock.to_us(message.new.created_at) for message in fresh]
    rows = db.rows(
        f"SELECT s.n, own.started_at, {_SAME} FROM sessions own JOIN sessions s"
        " ON s.agent = own.agent AND s.project_n IS NOT DISTINCT FROM own.project_n"
        " JOIN messages m ON m.session_n = s.n AND m.channel = :channel"
        " AND m.ordinal = (SELECT min(ordinal) FROM messages WHERE session_n = s.n)"
        " JOIN items i ON i.n = m.n WHERE own.n = :n AND s.n <> :n AND s.parent_n IS NULL"
        " AND s.started_at BETWEEN :first AND :last",
        n=session_n,
        channel=_CHANNEL,
        first=min(moments),
        last=max(moments),
    )
    begun = {row[-1] for row in rows}
    marks = {_mark_of(message) for message, at in zip(fresh, moments, strict=True) if at in begun}
    forks = [n for n, began, *same in rows if _began_before(began, _Mark(*same), marks)]
    kin = set(_kin(db, session_n)) if forks else set()
    for fork in forks:
        if fork not in kin:
            link(db, fork, session_n)


def _began_before(began: int, first: _Mark, marks: set[_Mark]) -> bool:
    """Tell whether a session had begun when that was said which another one begins with."""
    return first in marks and began < first.at


def link(db: Connection, session_n: int, parent_n: int) -> None:
    """Write down which session another one comes from."""
    db.run("UPDATE sessions SET parent_n = :parent WHERE n = :n", parent=parent_n, n=session_n)


def below(db: Connection, session_n: int) -> set[int]:
    """Return the sessions that come from a session, at whatever remove."""
    rows = db.rows(
        "WITH RECURSIVE below (n) AS (SELECT n FROM sessions WHERE parent_n = :n UNION"
        " SELECT s.n FROM sessions s JOIN below b ON s.parent_n = b.n) SELECT n FROM below",
        n=session_n,
    )
    return {row[0] for row in rows}


def take_back(db: Connection, session_n: int, ns: Sequence[int], *, now: datetime) -> None:
    """Put messages that a fork brought first behind those of the session they were said in."""
    ordinal = db.value(
        "SELECT coalesce(max(ordinal) + 1, 0) FROM messages WHERE session_n = :n", n=session_n
    )
    for place, n in enumerate(ns, ordinal):
        db.run(
            "UPDATE messages SET session_n = :session_n, ordinal = :place WHERE n = :n",
            session_n=session_n,
            place=place,
            n=n,
        )
    db.run(
        f"UPDATE items SET session_n = :session_n WHERE {among('n', 'ns')}",
        session_n=session_n,
        ns=numbers(ns),
    )
    last = db.value(f"SELECT max(created_at) FROM items WHERE {among('n', 'ns')}", ns=numbers(ns))
    db.run(
        "UPDATE sessions SET last_message_at = :at WHERE n = :n AND last_message_at < :at",
        at=last,
        n=session_n,
    )
    changes.log(db, "change", sorted(ns), now)


def forgotten(db: Connection, session_n: int, fresh: Iterable[PreparedMessage]) -> set[str]:
    """Return the keys of messages whose originals someone had forgotten."""
    if not changes.are_any_buried(db):
        return set()
    agent = str(db.value("SELECT agent FROM sessions WHERE n = :n", n=session_n))
    sources = {_source(agent, _mark_of(message)): message.key for message in fresh}
    if not sources:
        return set()
    return {sources[source] for source in changes.buried_sources(db, list(sources))}


def sources(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return sources by which copies of messages are known, whatever session has them.

    The ids are made of the message's own, as those of other channels are.
    """
    rows: list[Row] = db.rows(
        f"SELECT {id_text('i.id')}, s.agent, {_SAME} FROM messages m JOIN items i ON i.n = m.n"
        " JOIN sessions s ON s.n = m.session_n"
        f" WHERE m.channel = :channel AND {among('m.n', 'ns')}",
        channel=_CHANNEL,
        ns=numbers(ns),
    )
    return {f"{id_}/copy": _source(agent, _Mark(*same)) for id_, agent, *same in rows}


def bury(db: Connection, agent: str, unstored: Sequence[PreparedMessage], *, now: datetime) -> None:
    """Let no session store a copy of messages that were not to be stored."""
    sources = {f"{one.id}/copy": _source(agent, _mark_of(one)) for one in unstored}
    known = changes.buried_sources(db, list(sources.values())) if sources else {}
    fresh = {id_: source for id_, source in sources.items() if source not in known}
    changes.bury(db, list(fresh), now, sources=fresh)


def _source(agent: str, mark: _Mark) -> str:
    return changes.source_of(agent, "", f"\0copy\0{unpack_key(mark.key)}\0{mark[1:]}")


def copied_unstored(
    db: Connection, agent: str, project_n: int | None, fresh: Sequence[PreparedMessage]
) -> set[str]:
    """Return the keys of what other sessions have, or had forgotten, of messages not stored yet."""
    head = fresh[:_HEAD_MESSAGES]
    others = db.rows(
        "SELECT n FROM sessions WHERE agent = :agent AND last_message_at >= :earliest"
        " AND project_n IS NOT DISTINCT FROM :project_n",
        agent=agent,
        earliest=min((_mark_of(message).at for message in head), default=0),
        project_n=project_n,
    )
    near = {held.session_n for held in _held(db, [row[0] for row in others], head).values()}
    near |= _begun_with(db, agent, project_n, fresh)
    near |= {kin for n in near for kin in _kin(db, n)}
    sources = {_source(agent, _mark_of(message)): message.key for message in fresh}
    gone = changes.buried_sources(db, list(sources))
    return {*_held(db, sorted(near), fresh), *(sources[source] for source in gone)}


def _begun_with(
    db: Connection, agent: str, project_n: int | None, fresh: Sequence[PreparedMessage]
) -> set[int]:
    """Return the sessions that were read before, and begin with one of these messages."""
    marks = {_mark_of(message) for message in fresh}
    rows = db.rows(
        f"SELECT s.n, {_SAME} FROM sessions s"
        " JOIN messages m ON m.session_n = s.n AND m.channel = :channel"
        " AND m.ordinal = (SELECT min(ordinal) FROM messages WHERE session_n = s.n)"
        " JOIN items i ON i.n = m.n WHERE s.agent = :agent AND s.parent_n IS NULL"
        " AND s.project_n IS NOT DISTINCT FROM :project_n"
        " AND s.started_at BETWEEN :first AND :last",
        agent=agent,
        project_n=project_n,
        channel=_CHANNEL,
        first=min((mark.at for mark in marks), default=0),
        last=max((mark.at for mark in marks), default=0),
    )
    return {n for n, *same in rows if _Mark(*same) in marks}
