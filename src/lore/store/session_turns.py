"""Sessions in lists, and the turns of one session: boundaries, requests, injections, recalls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lore import clock
from lore.records import Spend
from lore.store import dialogue_state, items, messages
from lore.store.codec import has_part_kind, pack_role, unpack_json, unpack_time
from lore.store.pages import BEFORE_NEWEST
from lore.store.spend import ENTRY_COLUMNS, ENTRY_TABLES, unpack_entry
from lore.store.sql_connection import Connection, Row, among, count_if, id_text, int_array
from lore.text.message_features import EMPTY, text_fingerprint

_MESSAGE, _FRAGMENT = items.type_number("message"), items.type_number("fragment")


class SessionFilter(NamedTuple):
    """Which sessions are listed: by a text in their names or files, agent, project and time."""

    query: str = ""
    agent: str = ""
    project_n: int | None = None
    since_us: int | None = None


def page_of_sessions(
    db: Connection, after: Sequence[int], criteria: SessionFilter, *, limit: int
) -> list[Row]:
    """Return (time of the last message, number) of sessions, newest first."""
    at, n = after or (BEFORE_NEWEST, 0)
    return db.rows(
        "SELECT last_message_at, n FROM sessions WHERE (last_message_at, n) < (:at, :n)"
        " AND (:project_n IS NULL OR project_n = :project_n)"
        " AND (:since IS NULL OR last_message_at >= :since)"
        " AND (:agent = '' OR instr(lower(agent), :agent) > 0)"
        " AND (:query = '' OR instr(lower(title), :query) > 0 OR instr(lower(files), :query) > 0"
        " OR instr(lower(external_id), :query) > 0 OR instr(id, :query) = 1)"
        " ORDER BY last_message_at DESC, n DESC LIMIT :limit",
        at=at,
        n=n,
        project_n=criteria.project_n,
        since=criteria.since_us,
        agent=criteria.agent.lower(),
        query=criteria.query.lower(),
        limit=limit,
    )


class SessionFigures(NamedTuple):
    """What a session holds and what its requests cost."""

    messages: int = 0
    tokens: int = 0
    fragments: int = 0
    requests: int = 0
    usd: float = 0.0
    without_usd: float = 0.0


def session_figures(db: Connection, ns: Sequence[int]) -> dict[int, SessionFigures]:
    """Return the figures of sessions by number."""
    stored = {
        row[0]: row[1:]
        for row in db.rows(
            f"SELECT session_n, {count_if(f'type = {_MESSAGE}')},"
            f" sum(CASE WHEN type = {_MESSAGE} THEN tokens ELSE 0 END),"
            f" {count_if(f'type = {_FRAGMENT}')}"
            f" FROM items WHERE {among('session_n', 'ns')} GROUP BY session_n",
            ns=int_array(ns),
        )
    }
    spent = {
        row[0]: row[1:]
        for row in db.rows(
            "SELECT session_n, count(*), sum(usd), sum(without_usd) FROM spend"
            f" WHERE {among('session_n', 'ns')} GROUP BY session_n",
            ns=int_array(ns),
        )
    }
    nothing, unpaid = (0, 0, 0), (0, 0.0, 0.0)
    return {n: SessionFigures(*stored.get(n, nothing), *spent.get(n, unpaid)) for n in ns}


_BEGINS_TURN = f"m.role = :role AND m.traits & {EMPTY} = 0"
"""A message in which a person says something; results of tools come in messages without text."""


_OPENING_CHARS = 200
"""As long as titles of agents are."""


def find_opening(db: Connection, session_n: int) -> str:
    """Return the first words of the person in a session, or an empty text."""
    ordinal = db.value(
        f"SELECT min(m.ordinal) FROM messages m WHERE m.session_n = :n AND {_BEGINS_TURN}",
        n=session_n,
        role=pack_role("user"),
    )
    if ordinal is None:
        return ""
    (message,) = messages.messages_of_session(db, session_n, first=int(ordinal), limit=1)
    texts = (part.text.strip() for part in message.parts if part.kind == "text")
    return " ".join(next(filter(None, texts), "").split())[:_OPENING_CHARS]


def turn_starts(db: Connection, session_n: int, *, after: int, limit: int) -> list[int]:
    """Return the ordinals after one at which turns begin; what comes first begins one, too."""
    return db.column(
        "SELECT m.ordinal FROM messages m WHERE m.session_n = :n AND m.ordinal > :after"
        f" AND ({_BEGINS_TURN} OR m.ordinal = (SELECT min(ordinal) FROM messages"
        " WHERE session_n = :n)) ORDER BY m.ordinal LIMIT :limit",
        n=session_n,
        after=after,
        role=pack_role("user"),
        limit=limit,
    )


def count_turns(db: Connection, session_n: int, *, until: int = BEFORE_NEWEST) -> int:
    """Return how many turns begin before an ordinal."""
    return int(
        db.value(
            "SELECT count(*) FROM messages m WHERE m.session_n = :n AND m.ordinal < :until"
            f" AND ({_BEGINS_TURN} OR m.ordinal = (SELECT min(ordinal) FROM messages"
            " WHERE session_n = :n))",
            n=session_n,
            until=until,
            role=pack_role("user"),
        )
    )


class TurnMessage(NamedTuple):
    """What a turn shows of a message, without its text."""

    n: int
    ordinal: int
    id: str
    at: datetime
    model: str
    usage: dict[str, int]
    has_call: bool
    has_failed: bool


def messages_between(
    db: Connection, session_n: int, *, first: int, last: int, limit: int
) -> list[TurnMessage]:
    """Return the messages of a session between two ordinals, both included."""
    rows = db.rows(
        f"SELECT m.n, m.ordinal, {id_text('i.id')}, i.created_at, m.model, m.usage,"
        f" {has_part_kind('m.parts', 'tool_call')}, m.parts LIKE '[%\"failed\":true%'"
        " FROM messages m JOIN items i ON i.n = m.n WHERE m.session_n = :n"
        " AND m.ordinal BETWEEN :first AND :last ORDER BY m.ordinal LIMIT :limit",
        n=session_n,
        first=first,
        last=last,
        limit=limit,
    )
    return [
        TurnMessage(
            n, ordinal, id_, unpack_time(at), model, unpack_json(usage) if usage else {},
            bool(calls), bool(failed),
        )
        for n, ordinal, id_, at, model, usage, calls, failed in rows
    ]  # fmt: skip


def requests_between(
    db: Connection, session_n: int, *, since: datetime, until: datetime | None
) -> list[Spend]:
    """Return the ledger entries of a session's requests in a time, in order."""
    rows = db.rows(
        f"SELECT {ENTRY_COLUMNS} FROM {ENTRY_TABLES} WHERE e.session_n = :n AND e.at >= :since"
        " AND (:until IS NULL OR e.at < :until) AND e.purpose LIKE 'request:%' ORDER BY e.at, e.n",
        n=session_n,
        **_time_span(since, until),
    )
    return [unpack_entry(row) for row in rows]


class Injected(NamedTuple):
    """An item that was put into a prompt, and when."""

    at: datetime
    item_n: int


def injections_between(
    db: Connection, name: str, *, since: datetime, until: datetime | None
) -> list[Injected]:
    """Return what was put into the prompts of a session, by the agent's name for it, in a time."""
    rows = db.rows(
        "SELECT at, item_n FROM injections WHERE session = :session AND at >= :since"
        f" AND digest <> {dialogue_state.GONE_DIGEST}"
        " AND (:until IS NULL OR at < :until) ORDER BY at, n",
        session=text_fingerprint(name),
        **_time_span(since, until),
    )
    return [Injected(unpack_time(at), item_n) for at, item_n in rows]


class Recalled(NamedTuple):
    """A question to memory, and the ids that were found."""

    at: datetime
    verb: str
    query: str
    profile: str
    took_ms: float
    tokens: int
    hits: tuple[str, ...]


def recalls_between(
    db: Connection, session_n: int, *, since: datetime, until: datetime | None
) -> list[Recalled]:
    """Return the questions of a session to memory in a time, in order."""
    rows = db.rows(
        "SELECT at, verb, query, profile, took_ms, tokens, hits FROM retrievals"
        " WHERE session_n = :n AND at >= :since AND (:until IS NULL OR at < :until) ORDER BY n",
        n=session_n,
        **_time_span(since, until),
    )
    return [
        Recalled(unpack_time(at), verb, query, profile, took_ms, tokens, tuple(unpack_json(hits)))
        for at, verb, query, profile, took_ms, tokens, hits in rows
    ]


def fragments_of_session(db: Connection, session_n: int) -> list[tuple[int, tuple[str, ...]]]:
    """Return the living fragments of a session, each with its source messages."""
    rows = db.rows(
        "SELECT f.n, f.source_messages FROM items i JOIN fragments f ON f.n = i.n"
        " WHERE i.session_n = :n AND f.deleted_at IS NULL AND f.kind <> 'episode'",
        n=session_n,
    )
    return [(n, tuple(unpack_json(packed))) for n, packed in rows]


def _time_span(since: datetime, until: datetime | None) -> dict[str, Any]:
    return {
        "since": clock.to_us(since),
        "until": None if until is None else clock.to_us(until),
    }
