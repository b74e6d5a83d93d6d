"""Messages: the ground truth, stored whole and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson

from lore import clock
from lore.records import Channel, Message, NewMessage
from lore.store import changes, claims, items, keywords, standing
from lore.store.items import NewItem
from lore.store.packing import (
    moment,
    pack_key,
    pack_parts,
    pack_role,
    unpack_json,
    unpack_parts,
    unpack_role,
)
from lore.store.sqlite import Connection, Row, among, id_text, numbers

_COLUMNS = (
    f"{id_text('i.id')}, s.id, m.ordinal, m.role, m.parts, i.tokens, i.created_at, m.origin,"
    " m.speaker, m.model, m.usage"
)
_FROM = "FROM messages m JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"


class PreparedMessage(NamedTuple):
    """A message with everything that is derived from it, ready to be written."""

    new: NewMessage
    id: str
    key: str
    tokens: int
    embeds: bool
    traits: int
    standing: tuple[str, ...]
    digest: int
    searchable: str


def add(
    db: Connection,
    session_n: int,
    prepared: Sequence[PreparedMessage],
    *,
    now: datetime,
    ordinal: int = 0,
    channel: Channel = "push",
    unindexed: list[keywords.NewMessageText] | None = None,
) -> list[str]:
    """Append messages to a session, skipping those it has; return the ids of all of them.

    A message that was forgotten is not stored again: its former id is returned. One that came
    in by another channel is claimed. The first one takes the place `ordinal`, if the session
    has not come so far yet. Who gives a list `unindexed` finds there what is new, and adds it to
    the keyword index in the same transaction.
    """
    if not prepared:
        return []
    project_n, agent, external_id, following = db.rows(
        "SELECT project_n, agent, external_id, (SELECT coalesce(max(ordinal) + 1, 0)"
        " FROM messages WHERE session_n = :n) FROM sessions WHERE n = :n",
        n=session_n,
    )[0]
    ordinal = max(ordinal, following)
    keys = [message.key for message in prepared]
    known = claims.known(db, session_n, channel, keys) if following else {}
    known |= _recognised(db, session_n, (agent, external_id), channel, _fresh(prepared, known))
    ids: list[str] = []
    added: list[PreparedMessage] = []
    for message in prepared:
        if message.key not in known:
            known[message.key] = message.id
            added.append(message)
        ids.append(known[message.key])
    if added:
        place = _Place(session_n, project_n, ordinal, channel)
        moments = [clock.to_us(message.new.created_at) for message in added]
        ns = _insert(db, place, added, moments)
        texts = _index(db, place, ns, added, moments)
        if unindexed is None:
            keywords.add_messages(db, texts)
        else:
            unindexed += texts
        changes.log(db, "add", ns, now)
        db.run(
            "UPDATE sessions SET last_message_at = :at WHERE n = :n AND last_message_at < :at",
            at=max(moments),
            n=session_n,
        )
    return ids


class _Place(NamedTuple):
    """Where new messages go, and by which way they came."""

    session_n: int
    project_n: int | None
    ordinal: int
    channel: Channel


def _fresh(prepared: Sequence[PreparedMessage], known: dict[str, str]) -> list[PreparedMessage]:
    return [message for message in prepared if message.key not in known]


def _recognised(
    db: Connection,
    session_n: int,
    place: tuple[str, str],
    channel: Channel,
    fresh: Sequence[PreparedMessage],
) -> dict[str, str]:
    """Return the ids of new keys' messages that are here, or were until they were forgotten."""
    if not changes.are_any_buried(db):
        return claims.claim(db, session_n, channel, [(m.key, m.digest) for m in fresh])
    known = _forgotten(db, place, {message.key: message.key for message in fresh})
    fresh = _fresh(fresh, known)
    known |= claims.claim(db, session_n, channel, [(m.key, m.digest) for m in fresh])
    contents = {m.key: claims.content_key(channel, m.digest) for m in _fresh(fresh, known)}
    return known | _forgotten(db, place, contents)


def not_forgotten(
    db: Connection, place: tuple[str, str], channel: Channel, prepared: Sequence[PreparedMessage]
) -> list[PreparedMessage]:
    """Return the messages that nobody had forgotten, of an agent's session by its own name."""
    if not changes.are_any_buried(db):
        return list(prepared)
    gone = _forgotten(db, place, {message.key: message.key for message in prepared})
    contents = {m.key: claims.content_key(channel, m.digest) for m in _fresh(prepared, gone)}
    gone |= _forgotten(db, place, contents)
    return [message for message in prepared if message.key not in gone]


def _forgotten(db: Connection, place: tuple[str, str], wanted: dict[str, str]) -> dict[str, str]:
    """Return by key the former ids of what was forgotten, known by the values of `wanted`."""
    if not wanted:
        return {}
    sources = {key: changes.source_of(*place, name) for key, name in wanted.items()}
    buried = changes.buried_sources(db, list(sources.values()))
    return {
        key: claims.own_id(buried[source]) for key, source in sources.items() if source in buried
    }


def _insert(
    db: Connection, place: _Place, added: Sequence[PreparedMessage], moments: Sequence[int]
) -> list[int]:
    ns = items.add_all(
        db,
        [
            NewItem(
                message.id,
                "message",
                place.project_n,
                place.session_n,
                at,
                message.tokens,
                message.embeds,
            )
            for message, at in zip(added, moments, strict=True)
        ],
    )
    channel = claims.number_of(place.channel)
    db.run_many(
        "INSERT INTO messages (n, session_n, ordinal, channel, digest, key, role, speaker, parts,"
        " origin, model, usage, traits) VALUES (:n, :session_n, :ordinal, :channel, :digest,"
        " :key, :role, :speaker, :parts, :origin, :model, :usage, :traits)",
        [
            (
                n,
                place.session_n,
                ordinal,
                channel,
                message.digest,
                pack_key(message.key),
                pack_role(new.role),
                new.speaker,
                pack_parts(new.parts),
                new.origin,
                new.model,
                orjson.dumps(new.usage).decode() if new.usage else "",
                message.traits,
            )
            for ordinal, (n, message) in enumerate(zip(ns, added, strict=True), place.ordinal)
            for new in (message.new,)
        ],
    )
    return ns


def _index(
    db: Connection,
    place: _Place,
    ns: Sequence[int],
    added: Sequence[PreparedMessage],
    moments: Sequence[int],
) -> list[keywords.NewMessageText]:
    """Note speakers and standing instructions; return the texts for the keyword index."""
    for speaker in {message.new.speaker for message in added if message.new.speaker}:
        db.run("INSERT INTO speakers (name) VALUES (:name) ON CONFLICT DO NOTHING", name=speaker)
    new = []
    for n, message, at in zip(ns, added, moments, strict=True):
        said = (message.new.role, message.new.speaker, message.searchable)
        new.append(keywords.NewMessageText(n, *said, at))
        for text in message.standing:
            standing.add(db, n, place.project_n, text, at)
    return new


def get(db: Connection, n: int) -> Message:
    """Return a message by number."""
    return _message(db.rows(f"SELECT {_COLUMNS} {_FROM} WHERE m.n = :n", n=n)[0])


def by_number(db: Connection, ns: Sequence[int]) -> dict[int, Message]:
    """Return messages by number."""
    if not len(ns):
        return {}
    rows = db.rows(f"SELECT m.n, {_COLUMNS} {_FROM} WHERE {among('m.n', 'ns')}", ns=numbers(ns))
    return {row[0]: _message(row[1:]) for row in rows}


def of_session(
    db: Connection, session_n: int, *, first: int = 0, limit: int = 10_000
) -> list[Message]:
    """Return the messages of a session in order, from an ordinal on."""
    rows = db.rows(
        f"SELECT {_COLUMNS} {_FROM} WHERE m.session_n = :n AND m.ordinal >= :first"
        " ORDER BY m.ordinal LIMIT :limit",
        n=session_n,
        first=first,
        limit=limit,
    )
    return [_message(row) for row in rows]


def said_in(db: Connection, ns: Sequence[int], session_ns: Sequence[int]) -> set[int]:
    """Return those of the messages that say what was said in one of the sessions, too."""
    if not len(ns) or not len(session_ns):
        return set()
    digests = db.rows(f"SELECT n, digest FROM messages WHERE {among('n', 'ns')}", ns=numbers(ns))
    rows = db.rows(
        f"SELECT digest FROM messages WHERE {among('session_n', 'session_ns')}"
        f" AND {among('digest', 'digests')}",
        session_ns=numbers(session_ns),
        digests=numbers([digest for _, digest in digests]),
    )
    known = {row[0] for row in rows}
    return {n for n, digest in digests if digest in known}


def last_ordinal(db: Connection, session_n: int) -> int:
    """Return the ordinal of a session's last message, -1 if it has none."""
    last = db.value("SELECT max(ordinal) FROM messages WHERE session_n = :n", n=session_n)
    return -1 if last is None else int(last)


def find_speakers(db: Connection, names: Iterable[str]) -> list[str]:
    """Return those of the names that belong to people who spoke."""
    return [
        name
        for name in dict.fromkeys(names)
        if db.find("SELECT 1 FROM speakers WHERE name = :name", name=name)
    ]


def _message(row: Row) -> Message:
    id_, session_id, ordinal, role, parts, tokens, at, origin, speaker, model, usage = row
    return Message(
        id=id_,
        session_id=session_id,
        ordinal=ordinal,
        role=unpack_role(role),
        parts=unpack_parts(parts),
        tokens=tokens,
        created_at=moment(at),
        origin=origin,
        speaker=speaker,
        model=model,
        usage=unpack_json(usage) if usage else {},
    )
