"""The keyword index: full-text search over messages, distillations, fragments and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.errors import StoreError
from lore.records import UNASKED_TRUST, ItemType, Role
from lore.store import items
from lore.store.codec import TRUSTED_SQL, pack_role, unpack_parts, unpack_role
from lore.store.sql_connection import Connection, Row, among, bound_values, int_array
from lore.store.sqlite.full_text import stem as stem
from lore.text import message_features, words

_TABLES = {
    "message_words": ("text", "meta"),
    "long_words": ("text", "meta"),
    "log_words": ("text",),
    "fragment_words": ("summary", "content", "kind"),
    "session_words": ("title", "files"),
}

MESSAGE_WEIGHTS = (1.0, 0.5)
LONG_WEIGHTS = (1.0, 0.5)
LOG_WEIGHTS = (1.0,)

HEAD_CHARS = 1_000
"""`message_words` holds this much of a message;

a longer one is also in `long_words`, whole, because BM25 divides by the length of the row.
"""

_CONTEXT_SHARES = {-1: 0.25, 0: 0.5, 1: 0.5}
"""Shares of a message's score for the messages before and after it, and of its session's title
score for itself.
"""

_MAX_TITLES = 50
"""At most this many sessions are matched by title."""


def create(db: Connection) -> None:
    """Create the empty index."""
    for table, columns in _TABLES.items():
        db.words.create(db, table, columns)


def index_messages(db: Connection, ns: Sequence[int]) -> None:
    """Index messages again, replacing their former entries."""
    if not len(ns):
        return
    rows = db.rows(
        "SELECT m.n, m.role, m.speaker, m.parts, i.created_at FROM messages m"
        f" JOIN items i ON i.n = m.n WHERE {among('m.n', 'ns')}",
        ns=int_array(ns),
    )
    remove(db, ns, type="message")
    add_messages(
        db,
        [
            NewMessageText(
                n,
                unpack_role(role),
                speaker,
                message_features.searchable_text(unpack_parts(packed)),
                at,
            )
            for n, role, speaker, packed, at in rows
        ],
    )


class NewMessageText(NamedTuple):
    """The indexed text and metadata of a message."""

    n: int
    role: Role
    speaker: str
    text: str
    created_at: int


def add_messages(db: Connection, new: Sequence[NewMessageText]) -> None:
    """Index new messages."""
    short, long = [], []
    for n, role, speaker, raw, created_at in new:
        text = words.searchable_form(raw)
        meta = f"{speaker} {_date(created_at // _DAY_US)}".lstrip()
        if role not in _UNSPOKEN:
            short.append((n, text[:HEAD_CHARS], meta))
        if role in _UNSPOKEN or len(text) > HEAD_CHARS:
            long.append((n, text, meta))
    _add(db, "message_words", short)
    _add(db, "long_words", long)


def _add(db: Connection, table: str, rows: Sequence[Row]) -> None:
    db.words.add(db, table, _TABLES[table], rows)


_UNSPOKEN: tuple[Role, ...] = ("tool", "system")
_UNSPOKEN_NUMBERS = ", ".join(str(pack_role(role)) for role in _UNSPOKEN)


@lru_cache(maxsize=1_000)
def _date(day: int) -> str:
    return f"{clock.from_us(day * _DAY_US):%d %B %Y}".lstrip("0")


_DAY_US = 86_400_000_000


def add_distillation(db: Connection, n: int, text: str) -> None:
    """Index a distillation."""
    db.words.remove(db, "log_words", [n])
    _add(db, "log_words", [(n, words.searchable_form(text))])


def add_fragment(db: Connection, n: int, summary: str, content: str, kind: str) -> None:
    """Index a fragment, replacing its former entry."""
    texts = words.searchable_form(summary), words.searchable_form(content)
    db.words.remove(db, "fragment_words", [n])
    _add(db, "fragment_words", [(n, *texts, kind.replace("_", " "))])


def index_session(db: Connection, n: int, *, is_new: bool = False) -> None:
    """Index the title and files of a session; replace its former entry unless it is new."""
    if not is_new:
        remove_session(db, n)
    row = db.find("SELECT title, files FROM sessions WHERE n = :n", n=n)
    if row and any(row):
        _add(db, "session_words", [(n, *map(words.searchable_form, row))])


def remove_session(db: Connection, n: int) -> None:
    """Remove a session from the index."""
    db.words.remove(db, "session_words", [n])


def count_rows(db: Connection, table: str, *terms: str) -> list[int]:
    """Return how many rows of a table contain each of some words, in any inflection."""
    return db.words.count_rows(db, table, terms)


def remove(db: Connection, ns: Sequence[int], *, type: ItemType) -> None:
    """Remove items from the index."""
    for table in _TABLES_OF[type]:
        db.words.remove(db, table, ns)


_TABLES_OF: dict[ItemType, tuple[str, ...]] = {
    "message": ("message_words", "long_words"),
    "distillation": ("log_words",),
    "fragment": ("fragment_words",),
}


class SearchScope(NamedTuple):
    """Where to search: one project, one session, these items, or trusted items only.

    Items of the sessions in `without` are excluded. With `ns`, these alone count, whatever their
    session.
    """

    project_n: int | None = None
    session_n: int | None = None
    ns: Sequence[int] | NDArray[np.int64] | None = None
    trusted_only: bool = False
    excluded_sessions: Sequence[int] = ()


def search(
    db: Connection,
    table: str,
    query: str,
    *,
    limit: int,
    weights: Sequence[float],
    within: SearchScope | None = None,
) -> list[tuple[int, float]]:
    """Return the best items of one table for a quoted query, with BM25 scores, best first."""
    within = within or SearchScope()
    project_n, session_n, ns = within.project_n, within.session_n, within.ns
    if not query or (ns is not None and not len(ns)):
        return []
    if ns is not None:
        only = bound_values("ns")
    else:
        only = "SELECT n FROM items WHERE session_n = :session_n" if session_n is not None else ""
    hits = db.words.search(
        db,
        table,
        query,
        unless=_exclusion_query(table, within),
        limit=limit,
        weights=weights,
        only=only,
        session_n=session_n,
        project_n=project_n,
        **({} if ns is None else {"ns": int_array(ns)}),
        **({"without": int_array(within.excluded_sessions)} if within.excluded_sessions else {}),
    )
    if table != "message_words":
        return hits
    hits = _add_context_scores(db, hits, query)
    if ns is not None:
        within_ns = set(ns.tolist() if isinstance(ns, np.ndarray) else ns)
        hits = [hit for hit in hits if hit[0] in within_ns]
    return hits[:limit]


def _add_context_scores(
    db: Connection, hits: list[tuple[int, float]], query: str
) -> list[tuple[int, float]]:
    """Add shares of the scores of neighbouring messages and of the session's title.

    An answer follows its question and often repeats none of its words.
    """
    if not hits:
        return hits
    own, scores = dict(hits), dict(hits)
    titles = dict(
        db.words.search(db, "session_words", query, limit=_MAX_TITLES, weights=(1.0, 0.0))
    )
    rows = db.rows(
        "SELECT m.n, m.session_n, o.n, o.ordinal - m.ordinal FROM messages m JOIN messages o"
        " ON o.session_n = m.session_n AND o.ordinal BETWEEN m.ordinal - 1 AND m.ordinal + 1"
        f" WHERE {among('m.n', 'ns')} AND o.role NOT IN ({_UNSPOKEN_NUMBERS})",
        ns=int_array(list(own)),
    )
    for n, session_n, beside, step in rows:
        share = _CONTEXT_SHARES[step] * (own[n] if step else titles.get(session_n, 0.0))
        scores[beside] = scores.get(beside, 0.0) + share
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


def _exclusion_query(table: str, within: SearchScope) -> str:
    """Return a query that yields a row for an item `n` that is excluded from the search.

    It runs for each matching row: listing all items of a project would take longer.
    """
    reasons = []
    if within.trusted_only and table == "fragment_words":
        reasons.append(f"SELECT 1 FROM fragments WHERE n = {{n}} AND trust < {UNASKED_TRUST}")
    elif within.trusted_only:
        untrusted = f"origin NOT IN ({TRUSTED_SQL})"
        reasons.append(f"SELECT 1 FROM messages WHERE n = {{n}} AND {untrusted}")
    if within.excluded_sessions:
        of_them = among("session_n", "without")
        reasons.append(f"SELECT 1 FROM items WHERE n = {{n}} AND {of_them}")
    if within.project_n is not None and within.session_n is None:
        elsewhere = f"{items.scope_sql('i')} <> :project_n"
        reasons.append(f"SELECT 1 FROM items i WHERE i.n = {{n}} AND {elsewhere}")
    return " UNION ALL ".join(reasons)


def count_at_most(db: Connection, table: str, word: str, most: int) -> int:
    """Count the rows that contain a word, up to `most`."""
    matches = f"{db.words.match_query(table, 'word')} LIMIT :most"
    sql = f"SELECT count(*) FROM ({matches}) AS counted"
    return int(db.value(sql, word=db.words.phrase_query(word), most=most))


def count_indexed(db: Connection) -> int:
    """Return how many entries the index has."""
    queries = (f"SELECT count(*) FROM ({db.words.all_rows_query(t)}) AS held" for t in _TABLES)
    return sum(int(db.value(query)) for query in queries)


def optimize(db: Connection) -> None:
    """Merge the index segments, so that nothing of removed items is left."""
    for table in _TABLES:
        db.words.run_command(db, table, "optimize")


def clear(db: Connection) -> None:
    """Delete all entries."""
    for table in _TABLES:
        db.words.run_command(db, table, "delete-all")


def find_damage(db: Connection) -> list[str]:
    """Return the problems that SQLite's index check reports."""
    problems = []
    for table in _TABLES:
        try:
            db.words.run_command(db, table, "integrity-check")
        except StoreError as error:
            problems.append(f"{table}: {error}")
    return problems
