"""Messages: the ground truth, stored whole and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from lore import clock
from lore.records import Message, NewMessage
from lore.store import changes, items, keywords, standing
from lore.store.items import NewItem
from lore.store.packing import (
    moment,
    pack_key,
    pack_parts,
    pack_role,
    unpack_json,
    unpack_key,
    unpack_parts,
    unpack_role,
)
from lore.store.sqlite import Connection, Row, among, id_text, numbers

_COLUMNS = (
    f"{id_text('i.id')}, s.id, m.ordinal, m.role, m.parts, i.tokens, i.created_at, m.origin,"
    " m.speaker, m.model, m.usage"
)
_FROM = "FROM messages m JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message with everything that is derived from it, ready to be written."""

    new: NewMessage
    id: str
    key: str
    tokens: int
    embeds: bool
    traits: int
    standing: tuple[str, ...]


def add(
    db: Connection,
    session_n: int,
    prepared: Sequence[PreparedMessage],
    *,
    now: datetime,
    ordinal: int = 0,
) -> list[str]:
    """Append messages to a session, skipping those it has; return the ids of all of them.

    A message that was forgotten is not stored again: its former id is returned. The first one
    takes the place `ordinal`, if the session has not come so far yet.
    """
    if not prepared:
        return []
    project_n, agent, external_id, following = db.rows(
        "SELECT project_n, agent, external_id, (SELECT coalesce(max(ordinal) + 1, 0)"
        " FROM messages WHERE session_n = :n) FROM sessions WHERE n = :n",
        n=session_n,
    )[0]
    ordinal = max(ordinal, following)
    keys = [pack_key(message.key) for message in prepared]
    known = _known(db, session_n, keys)
    known |= _forgotten(db, agent, external_id, keys)
    ids: list[str] = []
    added: list[tuple[int, PreparedMessage]] = []
    for key, message in zip(keys, prepared, strict=True):
        if key in known:
            ids.append(known[key])
            continue
        n = _insert(db, session_n, project_n, ordinal, message)
        known[key] = message.id
        ids.append(message.id)
        added.append((n, message))
        ordinal += 1
    if added:
        _index(db, project_n, added)
        changes.log(db, "add", [n for n, _ in added], now)
        db.run(
            "UPDATE sessions SET last_message_at = :at WHERE n = :n AND last_message_at < :at",
            at=max(clock.to_us(message.new.created_at) for _, message in added),
            n=session_n,
        )
    return ids


def _known(db: Connection, session_n: int, keys: Sequence[int]) -> dict[int, str]:
    rows = db.rows(
        f"SELECT m.key, {id_text('i.id')} FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE m.session_n = :session_n AND {among('m.key', 'keys')}",
        session_n=session_n,
        keys=numbers(keys),
    )
    return dict(rows)


def _forgotten(db: Connection, agent: str, external_id: str, keys: Sequence[int]) -> dict[int, str]:
    """Return the former ids of messages that a person had forgotten."""
    if not db.find("SELECT 1 FROM tombstones WHERE source <> '' LIMIT 1"):
        return {}
    found = {
        key: changes.find_buried_source(db, changes.source_of(agent, external_id, unpack_key(key)))
        for key in keys
    }
    return {key: id_ for key, id_ in found.items() if id_}


def _insert(
    db: Connection,
    session_n: int,
    project_n: int | None,
    ordinal: int,
    message: PreparedMessage,
) -> int:
    new = message.new
    created_at = clock.to_us(new.created_at)
    n = items.add(
        db,
        NewItem(
            message.id,
            "message",
            project_n,
            session_n,
            created_at,
            message.tokens,
            message.embeds,
        ),
    )
    db.run(
        "INSERT INTO messages (n, session_n, ordinal, key, role, speaker, parts, origin, model,"
        " usage, traits) VALUES (:n, :session_n, :ordinal, :key, :role, :speaker, :parts,"
        " :origin, :model, :usage, :traits)",
        n=n,
        session_n=session_n,
        ordinal=ordinal,
        key=pack_key(message.key),
        role=pack_role(new.role),
        speaker=new.speaker,
        parts=pack_parts(new.parts),
        origin=new.origin,
        model=new.model,
        usage=orjson.dumps(new.usage).decode() if new.usage else "",
        traits=message.traits,
    )
    return n


def _index(
    db: Connection,
    project_n: int | None,
    added: Sequence[tuple[int, PreparedMessage]],
) -> None:
    """Make messages findable."""
    for speaker in {message.new.speaker for _, message in added if message.new.speaker}:
        db.run("INSERT INTO speakers (name) VALUES (:name) ON CONFLICT DO NOTHING", name=speaker)
    keywords.index_messages(db, [n for n, _ in added])
    for n, message in added:
        for text in message.standing:
            standing.add(db, n, project_n, text, clock.to_us(message.new.created_at))


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
