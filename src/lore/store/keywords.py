"""The keyword index: full-text search over messages, distillations, fragments and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lore import clock
from lore.records import UNASKED_TRUST, ItemType, Role
from lore.store.codec import TRUSTED_SQL, pack_role, unpack_parts, unpack_role
from lore.store.sqlite import Connection, among, bound_values, full_text, int_array
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

stem = full_text.stem
"""Return the stem of a word, as the index stores it."""


def create(db: Connection) -> None:
    """Create the empty index."""
    for table, columns in _TABLES.items():
        full_text.create(db, table, columns)


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
        meta = _meta(created_at, speaker)
        if role not in _UNSPOKEN:
            short.append((n, text[:HEAD_CHARS], meta))
        if role in _UNSPOKEN or len(text) > HEAD_CHARS:
            long.append((n, text, meta))
    full_text.add(db, "message_words", _TABLES["message_words"], short)
    full_text.add(db, "long_words", _TABLES["long_words"], long)


_UNSPOKEN: tuple[Role, ...] = ("tool", "system")
_UNSPOKEN_NUMBERS = ", ".join(str(pack_role(role)) for role in _UNSPOKEN)


def _meta(created_at: int, speaker: str) -> str:
    """Return the speaker and the date of a message as searchable words."""
    return f"{speaker} {_date(created_at // _DAY_US)}".lstrip()


@lru_cache(maxsize=1_000)
def _date(day: int) -> str:
    return f"{clock.from_us(day * _DAY_US):%d %B %Y}".lstrip("0")


_DAY_US = 86_400_000_000


def add_distillation(db: Connection, n: int, text: str) -> None:
    """Index a distillation."""
    full_text.remove(db, "log_words", [n])
    full_text.add(db, "log_words", _TABLES["log_words"], [(n, words.searchable_form(text))])


def add_fragment(db: Connection, n: int, summary: str, content: str, kind: str) -> None:
    """Index a fragment, replacing its former entry."""
    texts = words.searchable_form(summary), words.searchable_form(content)
    row = (n, *texts, kind.replace("_", " "))
    full_text.remove(db, "fragment_words", [n])
    full_text.add(db, "fragment_words", _TABLES["fragment_words"], [row])


def index_session(db: Connection, n: int) -> None:
    """Index the title and files of a session, replacing its former entry."""
    remove_session(db, n)
    add_session(db, n)


def add_session(db: Connection, n: int) -> None:
    """Index the title and files of a new session."""
    row = db.find("SELECT title, files FROM sessions WHERE n = :n", n=n)
    if row and any(row):
        new = (n, *map(words.searchable_form, row))
        full_text.add(db, "session_words", _TABLES["session_words"], [new])


def remove_session(db: Connection, n: int) -> None:
    """Remove a session from the index."""
    full_text.remove(db, "session_words", [n])


def count_rows(db: Connection, table: str, word: str) -> int:
    """Return how many rows of a table contain a word, in any inflection."""
    return full_text.count_rows(db, table, word)


def remove(
    db: Connection,
    ns: Sequence[int],
    *,
    type: ItemType,
) -> None:
    """Remove items from the index."""
    for table in _TABLES_OF[type]:
        full_text.remove(db, table, ns)


_TABLES_OF: dict[ItemType, tuple[str, ...]] = {
    "message": ("message_words", "long_words"),
    "distillation": ("log_words",),
    "fragment": ("fragment_words",),
}


class SearchScope(NamedTuple):
    """Where to search: one project, one session, these items, or trusted items only.

    Items of the sessions in `without` are excluded.
    """

    project_n: int | None = None
    session_n: int | None = None
    ns: Sequence[int] | None = None
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
    if session_n is not None:
        only = "SELECT n FROM items WHERE session_n = :session_n"
    else:
        only = "" if ns is None else bound_values("ns")
    hits = full_text.search(
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
    return _add_context_scores(db, hits, query)[:limit] if table == "message_words" else hits


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
        full_text.search(db, "session_words", query, limit=_MAX_TITLES, weights=(1.0, 0.0))
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
    reasons = [_untrusted_query(table)] if within.trusted_only else []
    if within.excluded_sessions:
        of_them = among("session_n", "without")
        reasons.append(f"SELECT 1 FROM items WHERE n = {{n}} AND {of_them}")
    if within.project_n is not None and within.session_n is None:
        reasons.append("SELECT 1 FROM items WHERE n = {n} AND project_n <> :project_n")
    return " UNION ALL ".join(reasons)


def _untrusted_query(table: str) -> str:
    """Return a query that yields a row for an untrusted item `n`."""
    if table == "fragment_words":
        return f"SELECT 1 FROM fragments WHERE n = {{n}} AND trust < {UNASKED_TRUST}"
    return f"SELECT 1 FROM messages WHERE n = {{n}} AND origin NOT IN ({TRUSTED_SQL})"


def count_at_most(db: Connection, table: str, word: str, most: int) -> int:
    """Count the rows that contain a word, up to `most`."""
    return int(
        db.value(
            f"SELECT count(*) FROM ({full_text.match_query(table, 'word')} LIMIT :most) AS counted",
            word=full_text.phrase_query(word),
            most=most,
        )
    )


def count_indexed(db: Connection) -> int:
    """Return how many entries the index has."""
    queries = (f"SELECT count(*) FROM ({full_text.all_rows_query(t)}) AS held" for t in _TABLES)
    return sum(int(db.value(query)) for query in queries)


def optimize(db: Connection) -> None:
    """Merge the index segments, so that nothing of removed items is left."""
    for table in _TABLES:
        full_text.optimize(db, table)


def clear(db: Connection) -> None:
    """Delete all entries."""
    for table in _TABLES:
        full_text.clear(db, table)


def find_damage(db: Connection) -> list[str]:
    """Return the problems that SQLite's index check reports."""
    problems = ((table, full_text.find_damage(db, table)) for table in _TABLES)
    return [f"{table}: {what}" for table, what in problems if what]
