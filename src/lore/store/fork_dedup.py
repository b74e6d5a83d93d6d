"""Deduplicate what forked sessions repeat: copied messages, and echoes of forgotten ones.

A copy has the key, the digest and the time of its original. Forks are linked by their parents, so
only related sessions are searched, and a fork begins with copies, so its head finds them.

An echo is a forgotten message in the history that a client resends under another session's name.
Its gateway key covers its text and what came before. Short texts that many conversations share
count as forgotten only in a run with something distinctive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from lore import clock
from lore.records import Part
from lore.store import history, message_dedup
from lore.store.codec import pack_key, unpack_key, unpack_parts
from lore.store.messages import PreparedMessage
from lore.store.sql_connection import Connection, Row, among, id_text, int_array

_HEAD_MESSAGES = 4
"""This many messages at the head of a session are looked up in other sessions;

an agent's own notes may precede the first copy.
"""

_FILE_CHANNEL = message_dedup.channel_number("file")
_FINGERPRINT_COLUMNS = "m.key, m.digest, i.created_at"


class _Fingerprint(NamedTuple):
    """What identifies a message and its copies."""

    key: int
    digest: int
    at: int


class StoredCopy(NamedTuple):
    """A message that another session holds."""

    n: int
    session_n: int


def _fingerprint(message: PreparedMessage) -> _Fingerprint:
    at = clock.to_us(message.new.created_at)
    return _Fingerprint(pack_key(message.key), message.digest, at)


def find_copies(
    db: Connection, session_n: int, fresh: Sequence[PreparedMessage]
) -> dict[str, StoredCopy]:
    """Return by key the messages of a session that a related session holds already."""
    related = set(_related_sessions(db, session_n))
    head = fresh[: _HEAD_MESSAGES - _count_head(db, session_n)]
    for stored in _stored_matches(db, _candidate_sessions(db, session_n, head), head).values():
        if stored.session_n not in related:
            related |= {stored.session_n, *_related_sessions(db, stored.session_n)}
    return _stored_matches(db, sorted(related), fresh)


def _stored_matches(
    db: Connection, session_ns: Sequence[int], wanted: Sequence[PreparedMessage]
) -> dict[str, StoredCopy]:
    if not session_ns or not wanted:
        return {}
    keys = {_fingerprint(message): message.key for message in wanted}
    rows = db.rows(
        f"SELECT {_FINGERPRINT_COLUMNS}, m.n, m.session_n FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE {among('m.session_n', 'sessions')} AND {among('m.key', 'keys')}"
        " AND m.channel = :channel ORDER BY m.n DESC",
        sessions=int_array(session_ns),
        keys=int_array([mark.key for mark in keys]),
        channel=_FILE_CHANNEL,
    )
    return {
        keys[mark]: StoredCopy(*row[3:]) for row in rows if (mark := _Fingerprint(*row[:3])) in keys
    }


def _related_sessions(db: Connection, session_n: int) -> list[int]:
    """Return the ancestors and descendants of a session."""
    return db.column(
        "WITH RECURSIVE kin (n) AS (SELECT n FROM sessions WHERE n = :n UNION"
        " SELECT CASE WHEN s.parent_n = kin.n THEN s.n ELSE s.parent_n END FROM kin"
        " JOIN sessions s ON s.parent_n = kin.n OR (s.n = kin.n AND s.parent_n IS NOT NULL))"
        " SELECT n FROM kin WHERE n <> :n",
        n=session_n,
    )


def _count_head(db: Connection, session_n: int) -> int:
    """Return how many messages of its head a session has."""
    first = "SELECT 1 FROM messages WHERE session_n = :n LIMIT :most"
    return int(db.value(f"SELECT count(*) FROM ({first}) head", n=session_n, most=_HEAD_MESSAGES))


def _candidate_sessions(
    db: Connection, session_n: int, head: Sequence[PreparedMessage]
) -> list[int]:
    """Return the sessions of the same agent and project that may be the original."""
    if not head:
        return []
    sql = (
        "SELECT s.n FROM sessions own JOIN sessions s ON s.agent = own.agent"
        " AND s.project_n IS NOT DISTINCT FROM own.project_n"
        " WHERE own.n = :n AND s.n <> :n AND s.last_message_at >= :earliest"
    )
    return db.column(sql, n=session_n, earliest=min(_fingerprint(message).at for message in head))


def link_forks(db: Connection, session_n: int, fresh: Sequence[PreparedMessage]) -> None:
    """Link the forks, stored earlier, that begin with a copy of one of these messages."""
    if not fresh:
        return
    moments = [clock.to_us(message.new.created_at) for message in fresh]
    sql = (
        f"SELECT s.n, {_FINGERPRINT_COLUMNS} FROM sessions own JOIN sessions s"
        " ON s.agent = own.agent AND s.project_n IS NOT DISTINCT FROM own.project_n"
        " JOIN messages m ON m.session_n = s.n AND m.channel = :channel"
        " AND m.ordinal = (SELECT min(ordinal) FROM messages WHERE session_n = s.n)"
        " JOIN items i ON i.n = m.n WHERE own.n = :n AND s.n <> :n AND s.parent_n IS NULL"
        " AND s.started_at BETWEEN :first AND :last AND own.started_at < i.created_at"
    )
    rows = db.rows(sql, n=session_n, channel=_FILE_CHANNEL, first=min(moments), last=max(moments))
    begun = {row[-1] for row in rows}
    marks = {
        _fingerprint(message) for message, at in zip(fresh, moments, strict=True) if at in begun
    }
    forks = [n for n, *same in rows if _Fingerprint(*same) in marks]
    kin = set(_related_sessions(db, session_n)) if forks else set()
    for fork in forks:
        if fork not in kin:
            set_parent(db, fork, session_n)


def set_parent(db: Connection, session_n: int, parent_n: int) -> None:
    """Set the session that another one was forked from."""
    db.update("sessions", session_n, parent_n=parent_n)


def descendants(db: Connection, session_n: int) -> set[int]:
    """Return the sessions forked from a session, directly or not."""
    sql = (
        "WITH RECURSIVE below (n) AS (SELECT n FROM sessions WHERE parent_n = :n UNION"
        " SELECT s.n FROM sessions s JOIN below b ON s.parent_n = b.n) SELECT n FROM below"
    )
    return set(db.column(sql, n=session_n))


def move_to_original(db: Connection, session_n: int, ns: Sequence[int], *, now: datetime) -> None:
    """Move messages that a fork brought first to the end of the session they were said in."""
    ordinal = db.value(
        "SELECT coalesce(max(ordinal) + 1, 0) FROM messages WHERE session_n = :n", n=session_n
    )
    for place, n in enumerate(ns, ordinal):
        db.update("messages", n, session_n=session_n, ordinal=place)
        db.update("items", n, session_n=session_n)
    last = db.value(f"SELECT max(created_at) FROM items WHERE {among('n', 'ns')}", ns=int_array(ns))
    db.run(
        "UPDATE sessions SET last_message_at = :at WHERE n = :n AND last_message_at < :at",
        at=last,
        n=session_n,
    )
    history.log_change(db, "change", sorted(ns), now)


def find_forgotten_copies(
    db: Connection, session_n: int, fresh: Iterable[PreparedMessage]
) -> set[str]:
    """Return the keys of messages whose originals were forgotten."""
    if not history.has_source_tombstones(db):
        return set()
    agent = str(db.value("SELECT agent FROM sessions WHERE n = :n", n=session_n))
    sources = {_copy_source(agent, _fingerprint(message)): message.key for message in fresh}
    if not sources:
        return set()
    return {sources[source] for source in history.find_tombstones_by_source(db, list(sources))}


def copy_sources(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return the source digests of copies of messages, in whatever session.

    Their tombstone ids derive from the message ids.
    """
    rows: list[Row] = db.rows(
        f"SELECT {id_text('i.id')}, s.agent, {_FINGERPRINT_COLUMNS} FROM messages m"
        " JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"
        f" WHERE m.channel = :channel AND {among('m.n', 'ns')}",
        channel=_FILE_CHANNEL,
        ns=int_array(ns),
    )
    return {f"{id_}/copy": _copy_source(agent, _Fingerprint(*same)) for id_, agent, *same in rows}


def add_copy_tombstones(
    db: Connection, agent: str, unstored: Sequence[PreparedMessage], *, now: datetime
) -> None:
    """Prevent every session from storing a copy of messages that must not be stored."""
    sources = {f"{one.id}/copy": _copy_source(agent, _fingerprint(one)) for one in unstored}
    buried = history.find_tombstones_by_source(db, list(sources.values())) if sources else {}
    fresh = {id_: source for id_, source in sources.items() if source not in buried}
    history.add_tombstones(db, list(fresh), now, sources=fresh)


def _copy_source(agent: str, mark: _Fingerprint) -> str:
    return history.source_digest(agent, "", f"\0copy\0{unpack_key(mark.key)}\0{mark[1:]}")


def find_copied(
    db: Connection, agent: str, project_n: int | None, fresh: Sequence[PreparedMessage]
) -> set[str]:
    """Return the keys of new messages that other sessions hold or have forgotten."""
    head = fresh[:_HEAD_MESSAGES]
    others = db.rows(
        "SELECT n FROM sessions WHERE agent = :agent AND last_message_at >= :earliest"
        " AND project_n IS NOT DISTINCT FROM :project_n",
        agent=agent,
        earliest=min((_fingerprint(message).at for message in head), default=0),
        project_n=project_n,
    )
    related = {
        stored.session_n
        for stored in _stored_matches(db, [row[0] for row in others], head).values()
    }
    related |= _sessions_starting_with(db, agent, project_n, fresh)
    related |= {kin for n in related for kin in _related_sessions(db, n)}
    sources = {_copy_source(agent, _fingerprint(message)): message.key for message in fresh}
    buried = history.find_tombstones_by_source(db, list(sources))
    return {*_stored_matches(db, sorted(related), fresh), *(sources[source] for source in buried)}


def _sessions_starting_with(
    db: Connection, agent: str, project_n: int | None, fresh: Sequence[PreparedMessage]
) -> set[int]:
    """Return the stored sessions that begin with one of these messages."""
    marks = {_fingerprint(message) for message in fresh}
    rows = db.rows(
        f"SELECT s.n, {_FINGERPRINT_COLUMNS} FROM sessions s"
        " JOIN messages m ON m.session_n = s.n AND m.channel = :channel"
        " AND m.ordinal = (SELECT min(ordinal) FROM messages WHERE session_n = s.n)"
        " JOIN items i ON i.n = m.n WHERE s.agent = :agent AND s.parent_n IS NULL"
        " AND s.project_n IS NOT DISTINCT FROM :project_n"
        " AND s.started_at BETWEEN :first AND :last",
        agent=agent,
        project_n=project_n,
        channel=_FILE_CHANNEL,
        first=min((mark.at for mark in marks), default=0),
        last=max((mark.at for mark in marks), default=0),
    )
    return {n for n, *same in rows if _Fingerprint(*same) in marks}


_MIN_CHARS = 40
"""In a session that is forgotten as a whole: a text this long, in its context, is unique."""

_MIN_FIRST_CHARS = 24
"""For a first message that a user forgot: short greetings begin many conversations."""

_MIN_CALL_ID_CHARS = 16
"""Call ids of providers have at least this length; small models number their calls."""

_MIN_RUN = 4
"""This many short messages in the same order are a history."""

_GATEWAY_CHANNEL = message_dedup.channel_number("gateway")


def echo_sources(db: Connection, ns: Sequence[int], session_ns: Collection[int]) -> dict[str, str]:
    """Return the source digests of messages to forget, as they appear in other histories.

    Their tombstone ids derive from the message ids.
    """
    sql = (
        f"SELECT {id_text('i.id')}, k.key, m.session_n, m.ordinal, m.parts FROM"
        f" (SELECT n, key FROM messages WHERE channel = :channel AND {among('n', 'ns')}"
        " UNION ALL SELECT message_n, key FROM claims"
        f" WHERE channel = :channel AND {among('message_n', 'ns')}) k"
        " JOIN messages m ON m.n = k.n JOIN items i ON i.n = k.n"
    )
    rows = db.rows(sql, channel=_GATEWAY_CHANNEL, ns=int_array(ns))
    sources = {}
    for at, (id_, key, session_n, ordinal, packed) in enumerate(rows):
        parts = unpack_parts(packed)
        is_chosen = session_n not in session_ns
        if any(len(part.call_id) >= _MIN_CALL_ID_CHARS for part in parts):
            is_rare = True
        elif ordinal == 0:
            is_rare = is_chosen and _chars(parts) >= _MIN_FIRST_CHARS
        else:
            is_rare = is_chosen or _chars(parts) >= _MIN_CHARS
        sources[f"{id_}/echo/{at}"] = _echo_source(key, is_rare=is_rare)
    return sources


def drop_forgotten_echoes(
    db: Connection, prepared: Sequence[PreparedMessage]
) -> list[PreparedMessage]:
    """Return the messages of a history that were not forgotten in another session."""
    if not history.has_source_tombstones(db):
        return list(prepared)
    keys = [pack_key(message.key) for message in prepared]
    rare = [_echo_source(key, is_rare=True) for key in keys]
    common = [_echo_source(key, is_rare=False) for key in keys]
    buried = history.find_tombstones_by_source(db, [*rare, *common])
    is_buried = [one in buried or other in buried for one, other in zip(rare, common, strict=True)]
    remaining: list[PreparedMessage] = []
    for is_known, row in groupby(range(len(keys)), key=is_buried.__getitem__):
        places = list(row)
        is_history = len(places) >= _MIN_RUN or any(rare[n] in buried for n in places)
        if not (is_known and is_history):
            remaining += [prepared[n] for n in places]
    return remaining


def _chars(parts: Sequence[Part]) -> int:
    return sum(len(part.text) for part in parts)


def _echo_source(key: int, *, is_rare: bool) -> str:
    return history.source_digest("", "", f"\0echo\0{is_rare}\0{unpack_key(key)}")
