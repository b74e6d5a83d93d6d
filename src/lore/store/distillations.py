"""Digested sessions: distillations, episodes, and how far sessions have been curated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from lore import clock
from lore.records import TRUST, Distillation, Origin
from lore.store import history, items, keywords, sessions
from lore.store.codec import pack_json, pack_role, unpack_json, unpack_record
from lore.store.fragments import CURRENT_FRAGMENT
from lore.store.items import MESSAGE_RANGE, NewItem
from lore.store.overview import is_known_empty
from lore.store.sql_connection import (
    Connection,
    Row,
    among,
    id_text,
    int_array,
    json_field,
    json_list_overlaps,
    text_array,
)
from lore.text import tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_COLUMNS = (
    f"{id_text('i.id')}, s.id, d.generation, d.text, d.from_message, d.to_message, i.tokens,"
    " d.source_tokens, d.archived, i.created_at, d.sources"
)
_FROM = "FROM distillations d JOIN items i ON i.n = d.n JOIN sessions s ON s.n = d.session_n"


def add_distillation(
    db: Connection, session_n: int, distillation: Distillation, *, now: datetime
) -> int:
    """Store a distillation of a session and index it."""
    project_n = sessions.project_of_session(db, session_n)
    at = clock.to_us(distillation.created_at)
    size = tokens.count(distillation.text)
    n = items.add(
        db,
        NewItem(distillation.id, "distillation", project_n, session_n, at, size, embeds=True),
    )
    db.insert(
        "distillations",
        n=n,
        session_n=session_n,
        generation=distillation.generation,
        text=distillation.text,
        from_message=distillation.from_message,
        to_message=distillation.to_message,
        source_tokens=distillation.source_tokens,
        sources=pack_json(distillation.sources),
        archived=int(distillation.archived),
    )
    keywords.add_distillation(db, n, distillation.text)
    history.log_change(db, "add", [n], now)
    return n


def get_distillations(db: Connection, ns: Sequence[int]) -> dict[int, Distillation]:
    """Return distillations by number."""
    if not len(ns):
        return {}
    rows = db.rows(f"SELECT d.n, {_COLUMNS} {_FROM} WHERE {among('d.n', 'ns')}", ns=int_array(ns))
    return {row[0]: _distillation(row[1:]) for row in rows}


def distillations_of_session(db: Connection, session_n: int) -> list[Distillation]:
    """Return the distillations of a session, oldest first."""
    rows = db.rows(
        f"SELECT {_COLUMNS} {_FROM} WHERE d.session_n = :n ORDER BY i.created_at, d.n",
        n=session_n,
    )
    return [_distillation(row) for row in rows]


def current_log(db: Connection, session_n: int) -> tuple[list[Distillation], int]:
    """Return the distillations that were not condensed, in the order of their messages.

    The number says how many messages are newer than the last one.
    """
    rows = db.rows(
        f"SELECT last.ordinal, {_COLUMNS} {_FROM} {MESSAGE_RANGE}"
        " WHERE d.session_n = :n AND d.archived = 0 ORDER BY first.ordinal, d.n",
        n=session_n,
    )
    end = max((row[0] for row in rows), default=-1)
    newer = "SELECT count(*) FROM messages WHERE session_n = :n AND ordinal > :end"
    return [_distillation(row[1:]) for row in rows], int(db.value(newer, n=session_n, end=end))


def has_distillations(db: Connection) -> bool:
    """Return whether any distillation exists."""
    if db.has_snapshot:
        return not is_known_empty(db, "distillations")
    return db.find("SELECT 1 FROM distillations LIMIT 1") is not None


def distillations_among(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return those of the items that are distillations."""
    if not len(ns) or not has_distillations(db):
        return []
    return db.column(
        f"SELECT n FROM distillations WHERE {among('n', 'ns')} ORDER BY n", ns=int_array(ns)
    )


class Span(NamedTuple):
    """The ordinals of the first and last message that a distillation covers, both included."""

    n: int
    first: int
    last: int


def message_ranges(db: Connection, session_n: int) -> dict[str, tuple[int, str, int, str]]:
    """Return the first and last message of each distillation of a session, with ordinals."""
    sql = (
        f"SELECT {id_text('i.id')}, first.ordinal, d.from_message, last.ordinal, d.to_message"
        f" FROM distillations d JOIN items i ON i.n = d.n {MESSAGE_RANGE}"
        " WHERE d.session_n = :session_n"
    )
    return {row[0]: row[1:] for row in db.rows(sql, session_n=session_n)}


def covered_spans(db: Connection, session_n: int) -> list[Span]:
    """Return what the distillations of generation 0 cover, in message order."""
    sql = (
        f"SELECT d.n, first.ordinal, last.ordinal FROM distillations d {MESSAGE_RANGE}"
        " WHERE d.session_n = :session_n AND d.generation = 0 ORDER BY first.ordinal, d.n"
    )
    return [Span(*row) for row in db.rows(sql, session_n=session_n)]


def source_messages_by_line(
    db: Connection, ns: Sequence[int]
) -> dict[int, tuple[tuple[int, ...], ...]]:
    """Return for each line of distillations the numbers of its source messages."""
    if not len(ns):
        return {}
    sources = {
        n: (session_n, unpack_json(packed))
        for n, session_n, packed in db.rows(
            f"SELECT n, session_n, sources FROM distillations WHERE {among('n', 'ns')}",
            ns=int_array(ns),
        )
    }
    wanted: dict[int, set[int]] = {}
    for session_n, lines in sources.values():
        wanted.setdefault(session_n, set()).update(o for line in lines for o in line)
    numbers: dict[tuple[int, int], int] = {}
    for session_n, ordinals in wanted.items():
        rows = db.rows(
            "SELECT ordinal, n FROM messages WHERE session_n = :session_n"
            f" AND {among('ordinal', 'ordinals')}",
            session_n=session_n,
            ordinals=int_array(sorted(ordinals)),
        )
        numbers |= {(session_n, ordinal): n for ordinal, n in rows}
    return {
        n: tuple(
            tuple(numbers[session_n, o] for o in line if (session_n, o) in numbers)
            for line in lines
        )
        for n, (session_n, lines) in sources.items()
    }


def archive_distillations(db: Connection, ns: Sequence[int], *, archived: bool = True) -> None:
    """Mark distillations as merged into a newer one, or remove that mark."""
    db.run(
        f"UPDATE distillations SET archived = :archived WHERE {among('n', 'ns')}",
        archived=int(archived),
        ns=int_array(ns),
    )


class Extent(NamedTuple):
    """The size of a session: its last ordinal, its messages, its distillations."""

    last: int
    messages: int
    distillations: int


def get_extent(db: Connection, session_n: int) -> Extent:
    """Return the size of a session."""
    sql = (
        "SELECT coalesce(max(m.ordinal), -1), count(*), (SELECT count(*) FROM distillations d"
        " WHERE d.session_n = :session_n AND d.generation = 0)"
        " FROM messages m WHERE m.session_n = :session_n"
    )
    return Extent(*db.rows(sql, session_n=session_n)[0])


def mark_distilled(db: Connection, session_n: int, at: Extent, *, now: datetime) -> None:
    """Record that a session was distilled at this size; it is due again when its size differs."""
    sessions.put_session_state(db, session_n, "distilled", list(at), now=now)


def sessions_to_distill(db: Connection, *, now: datetime, idle_s: float, limit: int) -> list[str]:
    """Return the ids of quiet sessions that changed since they were last distilled."""
    rows = db.rows(
        "WITH grown AS (SELECT session_n, max(ordinal) AS last, count(*) AS messages"
        " FROM messages GROUP BY session_n) SELECT s.id, g.last, g.messages,"
        " (SELECT count(*) FROM distillations d WHERE d.session_n = s.n AND d.generation = 0),"
        " t.value FROM sessions s JOIN grown g ON g.session_n = s.n LEFT JOIN session_states t"
        " ON t.session_n = s.n AND t.name = 'distilled'"
        " WHERE s.last_message_at <= :quiet ORDER BY s.last_message_at DESC",
        quiet=clock.to_us(now) - round(idle_s * 1e6),
    )
    changed = (
        id_ for id_, *at, distilled in rows if distilled is None or unpack_json(distilled) != at
    )
    return list(islice(changed, limit))


def remove_distillations(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Delete distillations; they can be derived again from the messages."""
    ids = items.ids_of(db, ns)
    keywords.remove(db, ns, type="distillation")
    db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=int_array(ns))
    history.add_tombstones(db, list(ids.values()), now)


def _distillation(row: Row) -> Distillation:
    return unpack_record(
        Distillation, row, sources=lambda packed: tuple(map(tuple, unpack_json(packed)))
    )


NOT_CURATED = -1
"""The mark of a session of which nothing was curated."""


def curated_up_to(db: Connection, session_n: int) -> int:
    """Return the ordinal up to which a session was curated."""
    ordinal = db.value("SELECT ordinal FROM curations WHERE session_n = :n", n=session_n)
    return NOT_CURATED if ordinal is None else int(ordinal)


def mark_curated(db: Connection, session_n: int, ordinal: int, *, now: datetime) -> None:
    """Mark a session as curated up to an ordinal; the mark never goes back."""
    sql = (
        "INSERT INTO curations (session_n, ordinal, at) VALUES (:n, :ordinal, :at)"
        " ON CONFLICT (session_n) DO UPDATE SET ordinal = excluded.ordinal, at = excluded.at"
        " WHERE excluded.ordinal > curations.ordinal"
    )
    db.run(sql, n=session_n, ordinal=ordinal, at=clock.to_us(now))


def sessions_to_curate(db: Connection, *, idle_since: datetime, turns: int) -> list[str]:
    """Return the ids of sessions to curate: idle since a moment, or with many new user messages."""
    return db.column(
        "SELECT s.id FROM sessions s"
        " LEFT JOIN curations c ON c.session_n = s.n"
        " WHERE EXISTS (SELECT 1 FROM messages m WHERE m.session_n = s.n"
        " AND m.ordinal > coalesce(c.ordinal, :nothing))"
        " AND (s.last_message_at <= :line OR (SELECT count(*) FROM messages m"
        " WHERE m.session_n = s.n AND m.ordinal > coalesce(c.ordinal, :nothing)"
        " AND m.role = :user) > :turns) ORDER BY s.last_message_at, s.n",
        line=clock.to_us(idle_since),
        nothing=NOT_CURATED,
        user=pack_role("user"),
        turns=turns,
    )


def deleted_fragments_of(
    db: Connection, message_ids: Sequence[str]
) -> list[tuple[str, frozenset[str]]]:
    """Return the deleted fragments derived from messages, each with all its source messages.

    Fragments that a cycle pruned are left out: they may be learned again.
    """
    if not message_ids:
        return []
    rows = db.rows(
        "SELECT f.content, f.source_messages FROM fragments f"
        " WHERE f.deleted_at IS NOT NULL AND f.source_messages <> '[]'"
        f" AND {json_list_overlaps('f.source_messages', 'ids')}"
        " AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.fragment_n = f.n AND s.verb = 'hidden'"
        " AND s.at = f.deleted_at)",
        ids=text_array(message_ids),
    )
    return [(text, frozenset(unpack_json(sources))) for text, sources in rows]


def find_same_text(db: Connection, content: str, *, scope: int | None, kind: str) -> int | None:
    """Return the visible fragment with exactly this text that applies to a scope, or to all."""
    sql = (
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.content = :content"
        f" AND f.kind = :kind AND {CURRENT_FRAGMENT}"
        f" AND coalesce({items.scope_sql('i')}, :scope, -1) = coalesce(:scope, -1)"
        " ORDER BY f.n LIMIT 1"
    )
    return db.number(sql, content=content, kind=kind, scope=scope)


def find_config_fragments(db: Connection, name: str, *, scope: int) -> list[int]:
    """Return the live fragments of a project, or of none, that hold the value of a setting."""
    sql = (
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.kind = 'config'"
        f" AND {json_field('f.payload', 'setting')} = :name AND {CURRENT_FRAGMENT}"
        f" AND {items.scope_sql('i')} = :scope ORDER BY f.n"
    )
    return db.column(sql, name=name, scope=scope)


def fragments_embedded_since(db: Connection, seq: int, embedder_n: int) -> list[int]:
    """Return the fragments that were embedded after a change number, by any process."""
    sql = (
        "SELECT v.n FROM vectors v JOIN fragments f ON f.n = v.n"
        " WHERE v.seq > :seq AND v.embedder_n = :embedder_n ORDER BY v.seq"
    )
    return db.column(sql, seq=seq, embedder_n=embedder_n)


SESSION_EPISODE = {"told": "session"}
"""The metadata of an episode that was derived from a whole session."""


def find_episode(db: Connection, session_n: int) -> int | None:
    """Return the number of a session's episode, deleted or not."""
    rows = db.rows(
        "SELECT f.n, f.metadata FROM items i JOIN fragments f ON f.n = i.n"
        " WHERE i.session_n = :n AND f.kind = 'episode' ORDER BY f.n",
        n=session_n,
    )
    return next((n for n, metadata in rows if unpack_json(metadata) == SESSION_EPISODE), None)


def update_episode(
    db: Connection,
    n: int,
    *,
    payload: Mapping[str, Any],
    source_messages: Sequence[str],
    origin: Origin,
) -> None:
    """Replace the payload, sources and origin of an episode; its trust never rises."""
    values = {"payload": pack_json(payload), "source_messages": pack_json(source_messages)}
    trust = min(db.value("SELECT trust FROM fragments WHERE n = :n", n=n), TRUST[origin])
    db.update("fragments", n, **values, origin=origin, trust=trust, archived_at=None)


def episodes_without_calls(db: Connection, ns: Sequence[int] | NDArray[np.int64]) -> set[int]:
    """Return the episodes of sessions in which no tool was called."""
    if not len(ns):
        return set()
    rows = db.rows(
        f"SELECT n, metadata, payload FROM fragments WHERE kind = 'episode' AND {among('n', 'ns')}",
        ns=int_array(ns),
    )
    return {
        n
        for n, metadata, payload in rows
        if unpack_json(metadata) == SESSION_EPISODE and not unpack_json(payload).get("calls")
    }


class QuietSession(NamedTuple):
    """A session that is idle, and how many messages it has."""

    id: str
    messages: int


def quiet_sessions(
    db: Connection, kind: str, *, now: datetime, idle_s: float, limit: int
) -> list[QuietSession]:
    """Return idle sessions that had no job of a kind since their last message.

    A job's total is the session's size at that time. A last message dated in the future was dated
    by a wrong clock and is not waited for.
    """
    rows = db.rows(
        f"SELECT q.id, q.size {_IDLE} AND (j.n IS NULL OR {_HAS_GROWN})"
        " ORDER BY q.at DESC LIMIT :limit",
        limit=limit,
        **_idle_bounds(kind, now, idle_s),
    )
    return [QuietSession(*row) for row in rows]


def count_awaiting(
    db: Connection, kind: str, project_n: int, *, now: datetime, idle_s: float
) -> int:
    """Return how many idle sessions of a project await a job of a kind, queued or not."""
    sql = (
        f"SELECT count(*) {_IDLE} AND q.project_n = :project_n"
        f" AND (j.n IS NULL OR j.state = 'pending' OR {_HAS_GROWN})"
    )
    return int(db.value(sql, project_n=project_n, **_idle_bounds(kind, now, idle_s)))


_IDLE = (
    "FROM (SELECT s.id, s.project_n, s.last_message_at AS at,"
    " (SELECT max(ordinal) + 1 FROM messages WHERE session_n = s.n) AS size FROM sessions s"
    " WHERE s.last_message_at NOT BETWEEN :quiet AND :now) q"
    " LEFT JOIN jobs j ON j.kind = :kind AND j.subject = q.id WHERE q.size > 0"
)
_HAS_GROWN = "(j.state = 'done' AND j.total <> q.size)"


def _idle_bounds(kind: str, now: datetime, idle_s: float) -> dict[str, object]:
    quiet = clock.to_us(now - timedelta(seconds=idle_s))
    return {"kind": kind, "quiet": quiet, "now": clock.to_us(now)}
