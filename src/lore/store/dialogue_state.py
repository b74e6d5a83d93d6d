"""State of gateway sessions between requests: prompt state, private mode, and injected items.

A session is stored as a hash of its name: often it is not stored yet when it begins, and one in
private mode never is. States that quote memory are deleted whenever anything is forgotten: that
costs a prompt its cache, and leaves no trace.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from lore import clock
from lore.records import NewMessage
from lore.store import database, fragments, replacements
from lore.store.codec import pack_json, unpack_json, unpack_optional_time
from lore.store.messages import PreparedMessage
from lore.store.sql_connection import Connection, Row
from lore.text import memory_tags
from lore.text.message_features import text_fingerprint

STATE_RETENTION_DAYS = 60
"""No session lasts longer."""

StateName = Literal[
    "pins", "measured", "knowledge", "notes", "tiers", "bare", "told", "amnesia", "unsaid",
    "silence", "invited", "task_list", "handoffs", "economics",
]  # fmt: skip

_NEVER_US = 2**62

QUOTING_STATES: tuple[StateName, ...] = ("knowledge", "notes", "tiers", "told", "task_list")
"""States that contain text of memory, or digests of it."""


def put_state(db: Connection, session: str, name: StateName, value: Any, *, now: datetime) -> None:
    """Store a state of a session, replacing the former value."""
    row = {"session": text_fingerprint(session), "name": name, "at": clock.to_us(now)}
    db.upsert("dialogue_states", ("session", "name"), value=pack_json(value), **row)


def find_states(db: Connection, session: str) -> dict[str, Any]:
    """Return the states of a session by name."""
    sql = "SELECT name, value FROM dialogue_states WHERE session = :session"
    rows = db.rows(sql, session=text_fingerprint(session))
    return {name: unpack_json(value) for name, value in rows}


def find_state(db: Connection, session: str, name: StateName) -> Any:
    """Return a state of a session, or None."""
    sql = "SELECT value FROM dialogue_states WHERE session = :session AND name = :name"
    value = db.value(sql, session=text_fingerprint(session), name=name)
    return None if value is None else unpack_json(value)


def remove_state(db: Connection, session: str, name: StateName) -> None:
    """Delete a state of a session."""
    sql = "DELETE FROM dialogue_states WHERE session = :session AND name = :name"
    db.run(sql, session=text_fingerprint(session), name=name)


def add_markers(db: Connection, session: str, markers: Mapping[str, str], *, now: datetime) -> None:
    """Store the texts that recall markers stand for, by marker id."""
    owner, at = text_fingerprint(session), clock.to_us(now)
    for id_, value in markers.items():
        db.insert_unless_exists("recall_markers", id=id_, session=owner, value=value, at=at)


def find_markers(db: Connection, session: str) -> dict[str, str]:
    """Return the texts that a session's recall markers stand for, by marker id."""
    sql = "SELECT id, value FROM recall_markers WHERE session = :session"
    return dict(db.rows(sql, session=text_fingerprint(session)))


def drop_quoting_states(db: Connection) -> None:
    """Delete all states that quote memory, and start a new cache generation."""
    for name in QUOTING_STATES:
        db.run("DELETE FROM dialogue_states WHERE name = :name", name=name)
    db.run("DELETE FROM recall_markers")
    database.set_meta(db, "dialogue_texts", uuid.uuid4().hex)


def cache_generation(db: Connection) -> str:
    """Return the cache generation; processes drop texts that they cached in an older one."""
    return str(database.find_meta(db, "dialogue_texts") or "")


def begin_private_mode(db: Connection, session: str, *, now: datetime) -> None:
    """Store nothing of a session from now on."""
    spans = _spans(db, session)
    if not spans or spans[-1][1] is not None:
        put_state(db, session, "amnesia", [*spans, [clock.to_us(now), None]], now=now)


def end_private_mode(
    db: Connection, session: str, *, excluded: Collection[str] = (), now: datetime
) -> None:
    """Store a session again from now on, except the entries with some keys.

    Clients resend the whole conversation without times, so the keys name what was said in all
    private stretches so far.
    """
    spans = _spans(db, session)
    if spans and spans[-1][1] is None:
        put_state(db, session, "amnesia", [*spans[:-1], [spans[-1][0], clock.to_us(now)]], now=now)
        if excluded:
            put_state(db, session, "unsaid", sorted(excluded), now=now)


def exclude_entries(db: Connection, session: str, keys: Collection[str], *, now: datetime) -> None:
    """Exclude more entries of a session from being stored."""
    put_state(db, session, "unsaid", sorted({*find_excluded_entries(db, session), *keys}), now=now)


def find_excluded_entries(db: Connection, session: str) -> frozenset[str]:
    """Return the keys of the entries that were said in private mode."""
    return frozenset(find_state(db, session, "unsaid") or ())


def is_private(db: Connection, session: str) -> bool:
    """Return whether a session is in private mode."""
    spans = _spans(db, session)
    return bool(spans) and spans[-1][1] is None


def was_ever_private(db: Connection, session: str) -> bool:
    """Return whether a session was ever in private mode."""
    return bool(_all_spans(db, session))


def is_recap(message: NewMessage) -> bool:
    """Return whether a message is an agent's summary of the conversation so far."""
    return any(part.text.lstrip().startswith(memory_tags.RECAP_OPENINGS) for part in message.parts)


def record_private_switches(
    db: Connection, session: str, switches: Sequence[tuple[datetime, bool]], *, now: datetime
) -> None:
    """Record when a user turned private mode on and off, as found in a transcript.

    A fork brings the switches with the messages that it copied. They do not decide whether a
    session is private now: a transcript comes late.
    """
    if not switches:
        return
    stored = list(find_state(db, session, "silence") or ())
    spans = [list(span) for span in stored]
    for at, on in switches:
        us = clock.to_us(at)
        if on and not _covers(spans, us):
            spans.append([us, None])
        elif not on and spans and spans[-1][1] is None:
            spans[-1][1] = us
    if spans != stored:
        put_state(db, session, "silence", spans, now=now)


def drop_private_messages(
    db: Connection, session: str, prepared: Sequence[PreparedMessage], *, parent: str = ""
) -> Sequence[PreparedMessage]:
    """Return the messages that were not said in private mode.

    Messages of subagents in that time are dropped as well, and so are later summaries of the
    conversation, which repeat it.
    """
    spans = _all_spans(db, session)
    if parent and parent != session:
        spans += _all_spans(db, parent)
    if not spans:
        return prepared
    return [
        message
        for message in prepared
        if not is_recap(message.new) and not _covers(spans, clock.to_us(message.new.created_at))
    ]


def _covers(spans: Iterable[Sequence[int | None]], at_us: int) -> bool:
    return any((begin or 0) <= at_us < (end or _NEVER_US) for begin, end in spans)


def _spans(db: Connection, session: str) -> list[list[int | None]]:
    return list(find_state(db, session, "amnesia") or ())


def _all_spans(db: Connection, session: str) -> list[list[int | None]]:
    sql = (
        "SELECT value FROM dialogue_states WHERE session = :session"
        " AND name IN ('amnesia', 'silence')"
    )
    values = db.column(sql, session=text_fingerprint(session))
    return [span for value in values for span in unpack_json(value)]


def delete_old_states(db: Connection, *, now: datetime) -> None:
    """Delete the states of sessions that ended long ago."""
    old = clock.to_us(now - timedelta(days=STATE_RETENTION_DAYS))
    db.run("DELETE FROM dialogue_states WHERE at < :old", old=old)
    db.run("DELETE FROM recall_markers WHERE at < :old", old=old)


INJECTION_RETENTION_DAYS = 60
"""No session lasts longer."""

_CLEANUP_INTERVAL = 200


class InjectedItems(NamedTuple):
    """The items that were injected into a session's prompts, and digests of their texts."""

    items: frozenset[int]
    digests: frozenset[int]


def add_injections(
    db: Connection, session: str, shown: Sequence[tuple[int, int]], *, now: datetime
) -> None:
    """Record the items, each with the digest of its text, that were injected into a session.

    Fragments among them count as used.
    """
    name = text_fingerprint(session)
    fragments.mark_used(db, [item_n for item_n, _ in shown], now=now)
    for item_n, digest in shown:
        n = db.value(
            "INSERT INTO injections (session, item_n, digest, at) SELECT :session, n, :digest, :at"
            " FROM items WHERE n = :item_n RETURNING n",
            session=name,
            item_n=item_n,
            digest=digest,
            at=clock.to_us(now),
        )
        if n is not None and n % _CLEANUP_INTERVAL == 0:
            old = clock.to_us(now - timedelta(days=INJECTION_RETENTION_DAYS))
            db.run("DELETE FROM injections WHERE at < :old", old=old)


def find_injections(db: Connection, session: str) -> InjectedItems:
    """Return what was injected into a session."""
    rows = _injection_rows(db, session)
    return InjectedItems(frozenset(row[0] for row in rows), frozenset(row[1] for row in rows))


def _injection_rows(db: Connection, session: str) -> list[Row]:
    sql = "SELECT item_n, digest FROM injections WHERE session = :session"
    return db.rows(sql, session=text_fingerprint(session))


class OutdatedInjections(NamedTuple):
    """Injected fragments that were changed since, and those that no longer hold."""

    changed: list[int]
    gone: list[int]


GONE_DIGEST = 0
"""The digest that records that a session was informed that an item no longer holds."""


def find_outdated_injections(db: Connection, session: str) -> OutdatedInjections:
    """Return the injected fragments whose later changes the session was not informed of."""
    name = text_fingerprint(session)
    changed = db.column(
        "SELECT i.item_n FROM (SELECT item_n, max(at) AS at FROM injections"
        " WHERE session = :session GROUP BY item_n) i JOIN fragments f ON f.n = i.item_n"
        " WHERE f.deleted_at IS NULL AND f.superseded_by IS NULL AND EXISTS (SELECT 1"
        " FROM fragment_versions v WHERE v.fragment_n = i.item_n AND v.changed_at > i.at)"
        " ORDER BY i.item_n",
        session=name,
    )
    pending = db.rows(
        "SELECT DISTINCT i.item_n, f.deleted_at IS NOT NULL OR f.superseded_by IS NOT NULL"
        " FROM injections i JOIN fragments f ON f.n = i.item_n"
        " WHERE i.session = :session AND NOT EXISTS (SELECT 1 FROM injections t"
        " WHERE t.session = i.session"
        f" AND t.item_n = i.item_n AND t.digest = {GONE_DIGEST})"
        " ORDER BY i.item_n",
        session=name,
    )
    extents = replacements.extents(db, [n for n, is_gone in pending if not is_gone])
    whole = {n for n, extent in extents.items() if extent.is_whole}
    gone = [n for n, is_gone in pending if is_gone or n in whole]
    return OutdatedInjections([n for n in changed if n not in whole], gone)


def first_injection_at(db: Connection, session: str) -> datetime | None:
    """Return the time of a session's first injection, or None."""
    sql = "SELECT min(at) FROM injections WHERE session = :session"
    return unpack_optional_time(db.value(sql, session=text_fingerprint(session)))


def copy_injections(db: Connection, source: str, target: str, *, now: datetime) -> None:
    """Record for a session everything that was injected into another one."""
    rows = _injection_rows(db, source)
    add_injections(db, target, [(item_n, digest) for item_n, digest in rows], now=now)


def undo_injections(db: Connection, session: str, injected: Collection[tuple[int, int]]) -> None:
    """Remove some injected items, each with the digest of its text, from a session's record."""
    sql = (
        "DELETE FROM injections WHERE session = :session AND item_n = :item_n AND digest = :digest"
    )
    owner = text_fingerprint(session)
    db.run_many(sql, [(owner, item_n, digest) for item_n, digest in injected])


def clear_injections(db: Connection, session: str) -> None:
    """Remove all injections of a session: compaction dropped them from its prompt."""
    sql = "DELETE FROM injections WHERE session = :session"
    db.run(sql, session=text_fingerprint(session))
