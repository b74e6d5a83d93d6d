"""The keyword index: which words of an item are searchable, in tables of the engine's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lore import clock
from lore.records import UNASKED_TRUST, ItemType, Role
from lore.store.origins import TRUSTED_SQL
from lore.store.packing import pack_role, unpack_parts, unpack_role
from lore.store.sqlite import Connection, among, listed, numbers, word_tables
from lore.text import parts, words

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
"""So much of a message stands in `message_words`; a longer one is also in `long_words`, whole:
BM25 divides by the length of the row."""

_SHARES = {-1: 0.25, 0: 0.5, 1: 0.5}
"""How much of a message's score the one before it and the one after it take, and how much of
its session's title it takes itself."""

_TITLES = 50
"""So many sessions at most are known by their title."""

stem = word_tables.stem
"""Return a word as the index keeps it."""


def create(db: Connection) -> None:
    """Make the empty index."""
    for table, columns in _TABLES.items():
        word_tables.create(db, table, columns)


def index_messages(db: Connection, ns: Sequence[int]) -> None:
    """Index messages by number, in place of what was indexed for them before."""
    if not len(ns):
        return
    rows = db.rows(
        "SELECT m.n, m.role, m.speaker, m.parts, i.created_at FROM messages m"
        f" JOIN items i ON i.n = m.n WHERE {among('m.n', 'ns')}",
        ns=numbers(ns),
    )
    remove(db, ns, type="message")
    add_messages(
        db,
        [
            NewMessageText(
                n, unpack_role(role), speaker, parts.searchable(unpack_parts(packed)), at
            )
            for n, role, speaker, packed, at in rows
        ],
    )


class NewMessageText(NamedTuple):
    """What the index holds of a message."""

    n: int
    role: Role
    speaker: str
    text: str
    created_at: int


def add_messages(db: Connection, new: Sequence[NewMessageText]) -> None:
    """Index messages that are not in the index yet."""
    short, long = [], []
    for n, role, speaker, said, created_at in new:
        text = words.searchable_form(said)
        meta = _meta(created_at, speaker)
        if role not in _UNSPOKEN:
            short.append((n, text[:HEAD_CHARS], meta))
        if role in _UNSPOKEN or len(text) > HEAD_CHARS:
            long.append((n, text, meta))
    word_tables.add(db, "message_words", _TABLES["message_words"], short)
    word_tables.add(db, "long_words", _TABLES["long_words"], long)


_UNSPOKEN: tuple[Role, ...] = ("tool", "system")
_UNSPOKEN_NUMBERS = ", ".join(str(pack_role(role)) for role in _UNSPOKEN)


def _meta(created_at: int, speaker: str) -> str:
    """Return the words by which a message is known apart from its own."""
    return f"{speaker} {_date(created_at // _DAY_US)}".lstrip()


@lru_cache(maxsize=1_000)
def _date(day: int) -> str:
    return f"{clock.from_us(day * _DAY_US):%d %B %Y}".lstrip("0")


_DAY_US = 86_400_000_000


def add_distillation(db: Connection, n: int, text: str) -> None:
    """Index a distillation."""
    word_tables.remove(db, "log_words", [n])
    word_tables.add(db, "log_words", _TABLES["log_words"], [(n, words.searchable_form(text))])


def add_fragment(db: Connection, n: int, summary: str, content: str, kind: str) -> None:
    """Index a fragment, in place of what was indexed for it before."""
    texts = words.searchable_form(summary), words.searchable_form(content)
    row = (n, *texts, kind.replace("_", " "))
    word_tables.remove(db, "fragment_words", [n])
    word_tables.add(db, "fragment_words", _TABLES["fragment_words"], [row])


def index_session(db: Connection, n: int) -> None:
    """Index the title and the files of a session anew."""
    remove_session(db, n)
    add_session(db, n)


def add_session(db: Connection, n: int) -> None:
    """Index the title and the files of a session that is not in the index yet."""
    row = db.find("SELECT title, files FROM sessions WHERE n = :n", n=n)
    if row and any(row):
        new = (n, *map(words.searchable_form, row))
        word_tables.add(db, "session_words", _TABLES["session_words"], [new])


def remove_session(db: Connection, n: int) -> None:
    """Take the title and the files of a session out of the index."""
    word_tables.remove(db, "session_words", [n])


def count_rows(db: Connection, table: str, word: str) -> int:
    """Return how many rows of a table have a word, in any of its inflections."""
    return word_tables.count_rows(db, table, word)


def remove(
    db: Connection,
    ns: Sequence[int],
    *,
    type: ItemType,
) -> None:
    """Take items out of the index."""
    for table in _TABLES_OF[type]:
        word_tables.remove(db, table, ns)


_TABLES_OF: dict[ItemType, tuple[str, ...]] = {
    "message": ("message_words", "long_words"),
    "distillation": ("log_words",),
    "fragment": ("fragment_words",),
}


class Within(NamedTuple):
    """Where a keyword search may look: one project, one session, these items, the trusted.

    What belongs to the sessions `without` is not found.
    """

    project_n: int | None = None
    session_n: int | None = None
    ns: Sequence[int] | None = None
    trusted_only: bool = False
    without: Sequence[int] = ()


def search(
    db: Connection,
    table: str,
    query: str,
    *,
    limit: int,
    weights: Sequence[float],
    within: Within | None = None,
) -> list[tuple[int, float]]:
    """Return the best items of one table for a quoted query, with their BM25, best first."""
    within = within or Within()
    project_n, session_n, ns = within.project_n, within.session_n, within.ns
    if not query or (ns is not None and not len(ns)):
        return []
    if session_n is not None:
        only = "SELECT n FROM items WHERE session_n = :session_n"
    else:
        only = "" if ns is None else listed("ns")
    found = word_tables.best(
        db,
        table,
        query,
        unless=_barred(table, within),
        limit=limit,
        weights=weights,
        only=only,
        session_n=session_n,
        project_n=project_n,
        **({} if ns is None else {"ns": numbers(ns)}),
        **({"without": numbers(within.without)} if within.without else {}),
    )
    return _in_context(db, found, query)[:limit] if table == "message_words" else found


def _in_context(
    db: Connection, found: list[tuple[int, float]], query: str
) -> list[tuple[int, float]]:
    """Let messages share in the scores of those beside them and of their session's title.

    An answer follows its question, and often repeats none of its words.
    """
    if not found:
        return found
    own, scores = dict(found), dict(found)
    titles = dict(word_tables.best(db, "session_words", query, limit=_TITLES, weights=(1.0, 0.0)))
    rows = db.rows(
        "SELECT m.n, m.session_n, o.n, o.ordinal - m.ordinal FROM messages m JOIN messages o"
        " ON o.session_n = m.session_n AND o.ordinal BETWEEN m.ordinal - 1 AND m.ordinal + 1"
        f" WHERE {among('m.n', 'ns')} AND o.role NOT IN ({_UNSPOKEN_NUMBERS})",
        ns=numbers(list(own)),
    )
    for n, session_n, beside, step in rows:
        share = _SHARES[step] * (own[n] if step else titles.get(session_n, 0.0))
        scores[beside] = scores.get(beside, 0.0) + share
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


def _barred(table: str, within: Within) -> str:
    """Return what finds, for an item `n`, that it may not be found.

    It is asked of each row that has a word: a list of all items of a project would be longer.
    """
    reasons = [_untrusted(table)] if within.trusted_only else []
    if within.without:
        of_them = among("session_n", "without")
        reasons.append(f"SELECT 1 FROM items WHERE n = {{n}} AND {of_them}")
    if within.project_n is not None and within.session_n is None:
        reasons.append("SELECT 1 FROM items WHERE n = {n} AND project_n <> :project_n")
    return " UNION ALL ".join(reasons)


def _untrusted(table: str) -> str:
    """Return what finds, for an item `n`, that it may not be shown unasked."""
    if table == "fragment_words":
        return f"SELECT 1 FROM fragments WHERE n = {{n}} AND trust < {UNASKED_TRUST}"
    return f"SELECT 1 FROM messages WHERE n = {{n}} AND origin NOT IN ({TRUSTED_SQL})"


def count_at_most(db: Connection, table: str, word: str, most: int) -> int:
    """Return how many rows have a word, counting no further than `most`."""
    return int(
        db.value(
            f"SELECT count(*) FROM ({word_tables.holding(table, 'word')} LIMIT :most) AS counted",
            word=word_tables.phrase(word),
            most=most,
        )
    )


def count(db: Connection) -> int:
    """Return how many items the index holds."""
    queries = (f"SELECT count(*) FROM ({word_tables.row_numbers(t)}) AS held" for t in _TABLES)
    return sum(int(db.value(query)) for query in queries)


def optimize(db: Connection) -> None:
    """Merge the index so that nothing of removed items is left in it."""
    for table in _TABLES:
        word_tables.merge(db, table)


def clear(db: Connection) -> None:
    """Empty the index."""
    for table in _TABLES:
        word_tables.clear(db, table)


def damage(db: Connection) -> list[str]:
    """Return what the index's own check finds wrong."""
    found = ((table, word_tables.find_damage(db, table)) for table in _TABLES)
    return [f"{table}: {what}" for table, what in found if what]
