"""Dialogues: what the gateway holds on to between the requests of a session.

A session is kept as a number made of its name: it is often not stored yet when it begins, and one
that is not to be remembered never is. Whatever quotes memory here goes when anything is forgotten:
that costs a prompt its cache, and leaves no trace.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import orjson

from lore import clock
from lore.records import NewMessage
from lore.store.messages import PreparedMessage
from lore.store.packing import unpack_json
from lore.store.sqlite import Connection
from lore.text import digests, fences

KEPT_DAYS = 60
"""No session goes on for longer."""

Name = Literal[
    "pins",
    "measured",
    "knowledge",
    "notes",
    "tiers",
    "bare",
    "told",
    "amnesia",
    "unsaid",
    "silence",
]

_FOR_EVER = 2**62

QUOTING: tuple[Name, ...] = ("knowledge", "notes", "tiers", "told")
"""States that hold words of memory, or digests of them."""


def put(db: Connection, session: str, name: Name, value: Any, *, now: datetime) -> None:
    """Keep a state of a session in the place of the former one."""
    db.run(
        "INSERT INTO dialogue_states (session, name, value, at)"
        " VALUES (:session, :name, :value, :at)"
        " ON CONFLICT (session, name) DO UPDATE SET value = excluded.value, at = excluded.at",
        session=digests.of_text(session),
        name=name,
        value=orjson.dumps(value).decode(),
        at=clock.to_us(now),
    )


def find_all(db: Connection, session: str) -> dict[str, Any]:
    """Return the states of a session by their names."""
    rows = db.rows(
        "SELECT name, value FROM dialogue_states WHERE session = :session",
        session=digests.of_text(session),
    )
    return {name: unpack_json(value) for name, value in rows}


def find(db: Connection, session: str, name: Name) -> Any:
    """Return a state of a session, or None."""
    found = db.value(
        "SELECT value FROM dialogue_states WHERE session = :session AND name = :name",
        session=digests.of_text(session),
        name=name,
    )
    return None if found is None else unpack_json(found)


def remove(db: Connection, session: str, name: Name) -> None:
    """Drop a state of a session."""
    db.run(
        "DELETE FROM dialogue_states WHERE session = :session AND name = :name",
        session=digests.of_text(session),
        name=name,
    )


def add_markers(db: Connection, session: str, markers: Mapping[str, str], *, now: datetime) -> None:
    """Keep what markers stand for, by their ids."""
    for id_, value in markers.items():
        db.run(
            "INSERT INTO recall_markers (id, session, value, at)"
            " VALUES (:id, :session, :value, :at) ON CONFLICT (id) DO NOTHING",
            id=id_,
            session=digests.of_text(session),
            value=value,
            at=clock.to_us(now),
        )


def markers(db: Connection, session: str) -> dict[str, str]:
    """Return what the markers of a session stand for, by their ids."""
    rows = db.rows(
        "SELECT id, value FROM recall_markers WHERE session = :session",
        session=digests.of_text(session),
    )
    return dict(rows)


def drop_texts(db: Connection) -> None:
    """Delete all that quotes memory; prompts are made without it from then on."""
    for name in QUOTING:
        db.run("DELETE FROM dialogue_states WHERE name = :name", name=name)
    db.run("DELETE FROM recall_markers")
    db.run(
        "INSERT INTO meta (key, value) VALUES ('dialogue_texts', :era)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        era=uuid.uuid4().hex,
    )


def era(db: Connection) -> str:
    """Return a name of the time since texts were dropped last: older ones may quote what is gone.

    Processes keep texts in mind, and look here whether they still may.
    """
    return str(db.value("SELECT value FROM meta WHERE key = 'dialogue_texts'") or "")


def forget_from(db: Connection, session: str, *, now: datetime) -> None:
    """Let nothing of a session be stored from now on."""
    spans = _spans(db, session)
    if not spans or spans[-1][1] is not None:
        put(db, session, "amnesia", [*spans, [clock.to_us(now), None]], now=now)


def remember_from(
    db: Connection, session: str, *, unsaid: Collection[str] = (), now: datetime
) -> None:
    """Let what a session says from now on be stored again, but never the entries of some keys.

    Clients send all that was said with every request, without telling when it was. The keys are
    those of all its former stretches too.
    """
    spans = _spans(db, session)
    if spans and spans[-1][1] is None:
        put(db, session, "amnesia", [*spans[:-1], [spans[-1][0], clock.to_us(now)]], now=now)
        if unsaid:
            put(db, session, "unsaid", sorted(unsaid), now=now)


def leave_unsaid(db: Connection, session: str, keys: Collection[str], *, now: datetime) -> None:
    """Let more entries never be stored."""
    put(db, session, "unsaid", sorted({*find_unsaid(db, session), *keys}), now=now)


def find_unsaid(db: Connection, session: str) -> frozenset[str]:
    """Return the keys of the entries that were said while a session was not to be stored."""
    return frozenset(find(db, session, "unsaid") or ())


def is_amnesic(db: Connection, session: str) -> bool:
    """Tell whether nothing of a session is to be stored now."""
    spans = _spans(db, session)
    return bool(spans) and spans[-1][1] is None


def was_amnesic(db: Connection, session: str) -> bool:
    """Tell whether anything of a session was not to be stored, at any time."""
    return bool(_all_spans(db, session))


def is_retelling(message: NewMessage) -> bool:
    """Tell whether an agent tells its model in a message what was said before."""
    return any(part.text.lstrip().startswith(fences.RETELLINGS) for part in message.parts)


def note_switches(
    db: Connection, session: str, switches: Sequence[tuple[datetime, bool]], *, now: datetime
) -> None:
    """Note when a person turned amnesia on and off, as a transcript tells.

    A fork brings that with the copies of what was said in between. Whether a session is amnesic
    now is not decided by it: a transcript comes late.
    """
    if not switches:
        return
    known = list(find(db, session, "silence") or ())
    spans = [list(span) for span in known]
    for at, on in switches:
        us = clock.to_us(at)
        if on and not _covers(spans, us):
            spans.append([us, None])
        elif not on and spans and spans[-1][1] is None:
            spans[-1][1] = us
    if spans != known:
        put(db, session, "silence", spans, now=now)


def to_be_stored(
    db: Connection, session: str, prepared: Sequence[PreparedMessage], *, parent: str = ""
) -> Sequence[PreparedMessage]:
    """Return the messages that were not said while a session was not to be stored.

    Neither is what its helpers do meanwhile. An agent that sums up its conversation afterwards
    tells all of it again: that is not stored either.
    """
    spans = _all_spans(db, session)
    if parent and parent != session:
        spans += _all_spans(db, parent)
    if not spans:
        return prepared
    return [
        message
        for message in prepared
        if not is_retelling(message.new) and not _covers(spans, clock.to_us(message.new.created_at))
    ]


def _covers(spans: Iterable[Sequence[int | None]], at_us: int) -> bool:
    return any((begin or 0) <= at_us < (end or _FOR_EVER) for begin, end in spans)


def _spans(db: Connection, session: str) -> list[list[int | None]]:
    return list(find(db, session, "amnesia") or ())


def _all_spans(db: Connection, session: str) -> list[list[int | None]]:
    rows = db.rows(
        "SELECT value FROM dialogue_states WHERE session = :session"
        " AND name IN ('amnesia', 'silence')",
        session=digests.of_text(session),
    )
    return [span for (value,) in rows for span in unpack_json(value)]


def tidy(db: Connection, *, now: datetime) -> None:
    """Delete what belongs to sessions that have ended long ago."""
    old = clock.to_us(now - timedelta(days=KEPT_DAYS))
    db.run("DELETE FROM dialogue_states WHERE at < :old", old=old)
    db.run("DELETE FROM recall_markers WHERE at < :old", old=old)
