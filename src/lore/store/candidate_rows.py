"""Rows that recall ranks: candidates, their neighbours, session scores, and the retrieval log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.errors import StoreDamaged
from lore.lazy_dataclass import dataclass
from lore.records import ItemType
from lore.store import fragments, graph, items, messages
from lore.store.codec import (
    pack_json,
    pack_role,
    unpack_json,
    unpack_record,
    unpack_text,
    unpack_time,
)
from lore.store.fragments import LIVING_FRAGMENT, VISIBLE_FRAGMENT
from lore.store.items import type_number
from lore.store.overview import is_known_empty
from lore.store.sql_connection import Connection, among, id_blob, int_array
from lore.text.message_features import FROM_USER

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CandidateRows:
    """Items as columns, ordered by number; 0 stands for "none"."""

    ns: Numbers
    types: Numbers
    sessions: Numbers
    projects: Numbers
    created_at: Numbers
    tokens: Numbers
    ordinals: Numbers
    traits: Numbers
    before: Numbers
    before_that: Numbers
    after: Numbers
    before_traits: Numbers
    is_episode: Numbers
    relevance: NDArray[np.float64]
    importance: NDArray[np.float64]
    confidence: NDArray[np.float64]
    speakers: list[str]
    before_speakers: list[str]


def load_candidates(
    db: Connection,
    ns: Numbers,
    *,
    project_n: int | None,
    session_n: int | None,
    trusted_only: bool,
    excluded_sessions: Sequence[int] = (),
) -> CandidateRows:
    """Load the items that may be shown: not deleted, superseded, faded or out of scope."""
    has_messages = not is_known_empty(db, "messages")
    sql = _ROWS_AMONG_MESSAGES if has_messages else _ROWS_WITHOUT_MESSAGES
    rows = db.rows(sql, **_bound(ns, project_n, session_n)) if len(ns) else []
    if excluded_sessions:
        rows = [row for row in rows if row[2] not in excluded_sessions]
    if trusted_only:
        trusted = messages.trusted_items(db, [row[0] for row in rows])
        rows = [row for row in rows if row[0] in trusted]
    rows.sort()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(CandidateRows.__annotations__)
    try:
        whole = [np.array(column, np.int64) for column in columns[:13]]
        fractions = [np.array(column, np.float64) for column in columns[13:16]]
    except (OverflowError, TypeError, ValueError) as error:
        msg = "The database is damaged: a row contains text instead of a number."
        raise StoreDamaged(msg, hint="Run 'lore doctor' for details.") from error
    columns_by_name: dict[str, Any] = dict(
        zip(
            CandidateRows.__annotations__,
            (*whole, *fractions, *map(list, columns[16:])),
            strict=True,
        )
    )
    return CandidateRows(**columns_by_name)


def _bound(ns: Numbers, project_n: int | None, session_n: int | None) -> dict[str, object]:
    return {"ns": int_array(ns), "project_n": project_n, "session_n": session_n}


_FRAGMENT, _MESSAGE = type_number("fragment"), type_number("message")

_OF_MESSAGE = """coalesce(m.ordinal, 0), coalesce(m.traits, 0), coalesce(b.n, 0),
    coalesce((SELECT o.n FROM messages o WHERE o.session_n = m.session_n
        AND o.ordinal = m.ordinal - 2), 0),
    coalesce((SELECT o.n FROM messages o WHERE o.session_n = m.session_n
        AND o.ordinal = m.ordinal + 1), 0),
    coalesce(b.traits, 0)"""

_MESSAGES = """LEFT JOIN messages m ON m.n = i.n
    LEFT JOIN messages b ON b.session_n = m.session_n AND b.ordinal = m.ordinal - 1"""

_ROWS = f"""
SELECT i.n, i.type, coalesce(i.session_n, 0), coalesce(i.project_n, 0), i.created_at, i.tokens,
    {{of_message}}, CASE WHEN f.kind = 'episode' THEN 1 ELSE 0 END,
    coalesce(f.relevance, 0), coalesce(f.importance, 0), coalesce(f.confidence, 0), {{speakers}}
FROM items i LEFT JOIN fragments f ON f.n = i.n
    {{messages}}
WHERE {among("i.n", "ns")}
    AND (i.type <> {_FRAGMENT} OR ({VISIBLE_FRAGMENT}))
    AND {items.applies_sql("i")}
    AND (:session_n IS NULL OR i.session_n = :session_n)
"""

_ROWS_AMONG_MESSAGES = _ROWS.format(
    of_message=_OF_MESSAGE,
    speakers="coalesce(m.speaker, ''), coalesce(b.speaker, '')",
    messages=_MESSAGES,
)

_ROWS_WITHOUT_MESSAGES = _ROWS.format(of_message="0, 0, 0, 0, 0, 0", speakers="'', ''", messages="")
"""For a memory that has no messages: five lookups less for each item."""


def searchable_texts(db: Connection, ns: Sequence[int], most_chars: int) -> dict[int, str]:
    """Return the beginning of the searchable text of each item."""
    if not len(ns):
        return {}
    rows = db.rows(
        "SELECT i.n, m.parts, d.text, f.summary || ' ' || f.content FROM items i"
        " LEFT JOIN messages m ON m.n = i.n LEFT JOIN distillations d ON d.n = i.n"
        f" LEFT JOIN fragments f ON f.n = i.n WHERE {among('i.n', 'ns')}",
        ns=int_array(ns),
    )
    return {
        n: (unpack_text(packed) if packed is not None else distilled or content or "")[:most_chars]
        for n, packed, distilled, content in rows
    }


def items_between(
    db: Connection, start_us: int, end_us: int, types: list[int], *, limit: int
) -> list[int]:
    """Return the newest items of some types within a time range.

    A message id begins with its time, so messages need no index by time.
    """
    bounds = {"start": start_us, "end": end_us, "limit": limit}
    rows: list[tuple[int, int]] = []
    if _MESSAGE in types:
        first, last = clock.id_bounds(start_us, end_us)
        rows += db.rows(_MESSAGES_OF_TIME, first=first, last=last, **bounds)
    others = [number for number in types if number != _MESSAGE]
    rows += db.rows(_OTHERS_OF_TIME, types=int_array(others), **bounds)
    return [n for _, n in sorted(rows, reverse=True)[:limit]]


_MESSAGES_OF_TIME = (
    f"SELECT created_at, n FROM items WHERE id >= {id_blob(':first')} AND id <= {id_blob(':last')}"
    f" AND type = {_MESSAGE} AND created_at >= :start AND created_at < :end"
    " ORDER BY id DESC LIMIT :limit"
)
_OTHERS_OF_TIME = (
    f"SELECT created_at, n FROM items WHERE type <> {_MESSAGE} AND created_at >= :start"
    f" AND created_at < :end AND {among('type', 'types')} ORDER BY created_at DESC LIMIT :limit"
)


def items_of_session(db: Connection, session_n: int) -> Numbers:
    """Return the numbers of all items of a session."""
    ns = db.column("SELECT n FROM items WHERE session_n = :n ORDER BY n", n=session_n)
    return np.array(ns, np.int64)


class ItemFilter(NamedTuple):
    """Limits of a search to a time (`until_us` is excluded), an agent, a kind of fragment, an
    origin, or a fragment with all below it.

    An agent is meant by a part of its name.
    """

    since_us: int | None = None
    until_us: int | None = None
    agent: str = ""
    kind: str = ""
    origin: str = ""
    top_n: int | None = None


def filter_items(
    db: Connection, criteria: ItemFilter, *, project_n: int | None, session_n: int | None
) -> Numbers:
    """Return the numbers of the items that pass a filter, in order."""
    below = None
    if criteria.top_n is not None:
        below = [n for n, _ in graph.subtree(db, criteria.top_n)]
    ns = db.column(
        "SELECT i.n FROM items i"
        + (" JOIN fragments f ON f.n = i.n AND f.kind = :kind" if criteria.kind else "")
        + (" JOIN sessions s ON s.n = i.session_n" if criteria.agent else "")
        + (_ORIGIN_JOINS if criteria.origin else "")
        + " WHERE (:since IS NULL OR i.created_at >= :since)"
        " AND (:until IS NULL OR i.created_at < :until)"
        f" AND {items.applies_sql('i')}"
        " AND (:session_n IS NULL OR i.session_n = :session_n)"
        + (" AND instr(lower(s.agent), :agent) > 0" if criteria.agent else "")
        + (f" AND {_ORIGIN} = :origin" if criteria.origin else "")
        + (f" AND {among('i.n', 'below')}" if below is not None else "")
        + " ORDER BY i.n",
        since=criteria.since_us,
        until=criteria.until_us,
        project_n=project_n,
        session_n=session_n,
        **({"kind": criteria.kind} if criteria.kind else {}),
        **({"agent": criteria.agent.lower()} if criteria.agent else {}),
        **({"origin": criteria.origin} if criteria.origin else {}),
        **({"below": int_array(below)} if below is not None else {}),
    )
    return np.array(ns, np.int64)


_ORIGIN_JOINS = (
    " LEFT JOIN messages said ON said.n = i.n LEFT JOIN fragments known ON known.n = i.n"
)
_ORIGIN = "coalesce(known.origin, said.origin, 'assistant')"
"""The origin of an item; distillations are the assistant's."""


@dataclass(frozen=True, slots=True)
class NearbyQuery:
    """A moment, the direction to look in, and the session or project to stay within."""

    at_us: int
    later: bool
    limit: int
    session_n: int | None = None
    ordinal: int | None = None
    project_n: int | None = None

    @property
    def order(self) -> str:
        """The SQL order that puts the nearest rows first."""
        return "ASC" if self.later else "DESC"


def nearest_messages(db: Connection, around: NearbyQuery) -> list[int]:
    """Return the user and assistant messages nearest to a moment, nearest first.

    Within a session they are ordered by ordinal, otherwise by the time in their ids.
    """
    spoken = {"user": pack_role("user"), "assistant": pack_role("assistant")}
    if around.session_n is not None:
        side = ">" if around.later else "<"
        return db.column(
            "SELECT m.n FROM messages m JOIN items i ON i.n = m.n WHERE m.session_n = :session_n"
            f" AND (m.ordinal {side} :ordinal OR (:ordinal IS NULL AND i.created_at {side} :at))"
            " AND m.role IN (:user, :assistant)"
            f" ORDER BY m.ordinal {around.order} LIMIT :limit",
            session_n=around.session_n,
            ordinal=around.ordinal,
            at=around.at_us,
            limit=around.limit,
            **spoken,
        )
    side = ">=" if around.later else "<"
    low, _ = clock.id_bounds(around.at_us, around.at_us)
    return db.column(
        "SELECT i.n FROM items i JOIN messages m ON m.n = i.n"
        f" WHERE i.id {side} {id_blob(':low')} AND i.type = :message"
        " AND m.role IN (:user, :assistant)"
        " AND (:project_n IS NULL OR i.project_n = :project_n)"
        f" ORDER BY i.id {around.order} LIMIT :limit",
        low=low,
        message=type_number("message"),
        project_n=around.project_n,
        limit=around.limit,
        **spoken,
    )


def nearest_fragments(db: Connection, around: NearbyQuery) -> list[int]:
    """Return the live fragments that were learned nearest to a moment."""
    side = ">=" if around.later else "<"
    return db.column(
        "SELECT i.n FROM items i JOIN fragments f ON f.n = i.n"
        f" WHERE i.created_at {side} :at AND i.type <> :message AND {LIVING_FRAGMENT}"
        " AND (:session_n IS NULL OR i.session_n = :session_n)"
        " AND (:project_n IS NULL OR i.project_n = :project_n)"
        f" ORDER BY i.created_at {around.order}, i.n {around.order} LIMIT :limit",
        at=around.at_us,
        message=type_number("message"),
        session_n=around.session_n,
        project_n=around.project_n,
        limit=around.limit,
    )


_BM25_K1, _BM25_B = 1.2, 0.75
"""The usual BM25 constants, with a session as the document and its messages as terms."""


class SessionMessages(NamedTuple):
    """The messages of one session."""

    ns: NDArray[np.int64]
    from_user: NDArray[np.bool_]
    started_at: int


_SESSION_TABLES: dict[ItemType, tuple[str, ...]] = {
    "message": ("message_words", "long_words"),
    "distillation": ("log_words",),
}


def session_term_scores(
    db: Connection,
    terms: Sequence[str],
    project_n: int | None = None,
    counted: ItemType = "message",
) -> dict[int, float]:
    """Return the BM25 score of each session: the number of its items that contain each term."""
    sizes: dict[int, int] = dict(
        db.rows(
            "SELECT m.session_n, max(m.ordinal) + 1 FROM messages m"
            " JOIN sessions s ON s.n = m.session_n"
            " WHERE :project_n IS NULL OR s.project_n = :project_n GROUP BY m.session_n",
            project_n=project_n,
        )
    )
    if not sizes:
        return {}
    average = sum(sizes.values()) / len(sizes)
    scores: defaultdict[int, float] = defaultdict(float)
    for term in terms:
        counts: defaultdict[int, int] = defaultdict(int)
        for table in _SESSION_TABLES[counted]:
            for session_n, count in db.rows(
                "SELECT i.session_n, count(*) FROM items i"
                f" JOIN ({db.words.match_query(table, 'term')}) w ON w.n = i.n GROUP BY 1",
                term=db.words.phrase_query(term, column="text"),
            ):
                if session_n in sizes:
                    counts[session_n] += count
        rarity = log(1 + (len(sizes) - len(counts) + 0.5) / (len(counts) + 0.5))
        for session_n, count in counts.items():
            length = 1 - _BM25_B + _BM25_B * sizes.get(session_n, 1) / average
            scores[session_n] += rarity * count * (_BM25_K1 + 1) / (count + _BM25_K1 * length)
    return dict(scores)


def load_session_messages(
    db: Connection, session_ns: NDArray[np.int64], counted: ItemType = "message"
) -> list[SessionMessages]:
    """Load the messages or distillations of sessions, in the order of the sessions.

    A distillation counts as said by the user.
    """
    started: dict[int, int] = dict(
        db.rows(
            f"SELECT n, started_at FROM sessions WHERE {among('n', 'ns')}",
            ns=int_array(session_ns),
        )
    )
    members: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    columns = "traits FROM messages" if counted == "message" else f"{FROM_USER} FROM distillations"
    for session_n, n, traits in db.rows(
        f"SELECT session_n, n, {columns} WHERE {among('session_n', 'ns')}",
        ns=int_array(session_ns),
    ):
        members[session_n].append((n, traits))
    return [
        SessionMessages(
            np.array([n for n, _ in members[int(s)]], np.int64),
            np.array([bool(t & FROM_USER) for _, t in members[int(s)]], np.bool_),
            started.get(int(s), 0),
        )
        for s in session_ns
    ]


_MOST_CANDIDATES = 60
"""Ids of candidates that are logged: the best of those that were compared."""

MAX_RETRIEVALS = 10_000
"""Older entries are deleted."""


class Retrieval(NamedTuple):
    """One query with the ids of its hits; what is known of its task, its strategy and its outcome.

    `profile` is the strategy: the profile of a task, else the recipe of a recall. `candidates` are
    the ids that were compared, best first. `outcome` is that of the task, once it is known.
    """

    at: datetime
    verb: str
    query: str
    hits: tuple[str, ...]
    took_ms: float
    session_n: int | None = None
    task_n: int | None = None
    task_type: str = ""
    profile: str = ""
    candidates: tuple[str, ...] = ()
    tokens: int = 0
    outcome: str = ""


def log_retrieval(db: Connection, entry: Retrieval) -> None:
    """Add an entry to the retrieval log; fragments that were recalled count as used."""
    n = db.insert_numbered(
        "retrievals",
        at=clock.to_us(entry.at),
        verb=entry.verb,
        query=entry.query[:2_000],
        hits=pack_json(entry.hits),
        took_ms=entry.took_ms,
        session_n=entry.session_n,
        task_n=entry.task_n,
        task_type=entry.task_type,
        profile=entry.profile,
        candidates=pack_json(entry.candidates[:_MOST_CANDIDATES]),
        tokens=entry.tokens,
        outcome=entry.outcome,
    )
    if entry.verb == "recall":
        fragments.mark_used(db, list(items.numbers_of(db, entry.hits).values()), now=entry.at)
    if n % 500 == 0:
        db.run("DELETE FROM retrievals WHERE n <= :n", n=n - MAX_RETRIEVALS)


def recent_retrievals(db: Connection, *, limit: int = 20) -> list[Retrieval]:
    """Return the latest entries of the retrieval log, newest first."""
    columns = ", ".join(Retrieval._fields)
    return [
        unpack_record(
            Retrieval,
            row,
            hits=lambda packed: tuple(unpack_json(packed)),
            candidates=lambda packed: tuple(unpack_json(packed)),
        )
        for row in db.rows(
            f"SELECT {columns} FROM retrievals ORDER BY n DESC LIMIT :limit", limit=limit
        )
    ]


def recall_times(db: Connection, id_: str) -> list[datetime]:
    """Return when the retrieval log lists an item among its hits, newest first."""
    # Ids are quoted in the stored JSON, so that none is part of another.
    sql = "SELECT at FROM retrievals WHERE instr(hits, :id) > 0 ORDER BY n DESC"
    return [unpack_time(at) for at in db.column(sql, id=f'"{id_}"')]


def count_recalls(db: Connection, id_: str) -> int:
    """Return how often the retrieval log lists an item among its hits."""
    sql = "SELECT count(*) FROM retrievals WHERE instr(hits, :id) > 0"
    return int(db.value(sql, id=f'"{id_}"'))
