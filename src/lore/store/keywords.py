"""The keyword index: FTS5 tables without content of their own, derived from the items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from lore import clock
from lore.errors import StoreError
from lore.records import UNASKED_TRUST, ItemType
from lore.store.packing import unpack_parts
from lore.store.sqlite import TOKENIZER, Connection, among, numbers, stem
from lore.store.trusting import TRUSTED_SQL
from lore.text import parts, words

_TABLES = {
    "message_words": "text, previous, next, meta",
    "long_words": "text, previous, meta",
    "fragment_words": "summary, content, kind",
    "session_words": "title, files",
}

MESSAGE_WEIGHTS = (1.0, 0.5, 0.25, 0.5)
LONG_WEIGHTS = (1.0, 0.5, 0.5)
FRAGMENT_WEIGHTS = (6.0, 2.0, 3.0)

HEAD_CHARS = 1_000
"""So much of a message stands beside its neighbours; a longer one is also in `long_words`,
whole: BM25 divides by the length of the row."""

NEIGHBOUR_CHARS = 300
"""So much of the message before and after belongs to a message's row."""


def create(db: Connection) -> None:
    """Make the empty index."""
    for table, columns in _TABLES.items():
        db.rows(
            f"CREATE VIRTUAL TABLE {table} USING fts5({columns}, content='',"
            f" contentless_delete=1, tokenize='{TOKENIZER}')"
        )
        db.rows(f"CREATE VIRTUAL TABLE {table}_vocabulary USING fts5vocab({table}, 'row')")


def index_messages(db: Connection, ns: Sequence[int]) -> None:
    """Index messages by number, in place of what was indexed for them before."""
    if not len(ns):
        return
    rows = db.rows(
        "SELECT m.n, m.role, m.speaker, m.parts, i.created_at, s.title, p.parts, x.parts"
        " FROM messages m JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"
        " LEFT JOIN messages p ON p.session_n = m.session_n AND p.ordinal = m.ordinal - 1"
        " LEFT JOIN messages x ON x.session_n = m.session_n AND x.ordinal = m.ordinal + 1"
        f" WHERE {among('m.n', 'ns')}",
        ns=numbers(ns),
    )
    remove(db, ns, type="message")
    neighbour = cache(_neighbour)
    _insert(
        db,
        [
            MessageWords(
                n,
                role,
                words.searchable_form(parts.searchable(unpack_parts(packed))),
                neighbour(before),
                neighbour(after),
                _meta(at, speaker or role, title),
            )
            for n, role, speaker, packed, at, title, before, after in rows
        ],
    )


class NewMessageText(NamedTuple):
    """A message that is indexed for the first time."""

    n: int
    role: str
    speaker: str
    text: str
    created_at: int


class MessageWords(NamedTuple):
    """What the index holds of a message."""

    n: int
    role: str
    text: str
    previous: str
    next: str
    meta: str


def add_messages(
    db: Connection, session_n: int, new: Sequence[NewMessageText], ordinal: int
) -> None:
    """Index messages that were just added one after the other, the first at `ordinal`.

    Gives the same as `index_messages`, without reading back what was written.
    """
    title = str(db.value("SELECT title FROM sessions WHERE n = :n", n=session_n))
    before = db.find(
        "SELECT n, parts FROM messages WHERE session_n = :n AND ordinal = :ordinal",
        n=session_n,
        ordinal=ordinal - 1,
    )
    beside = [_neighbour(before[1]) if before else ""]
    beside += [words.searchable_form(message.text[:NEIGHBOUR_CHARS]) for message in new]
    beside.append("")
    if before:
        index_messages(db, [before[0]])
    _insert(
        db,
        [
            MessageWords(
                message.n,
                message.role,
                _form(message.text, beside[place]),
                beside[place - 1],
                beside[place + 1],
                _meta(message.created_at, message.speaker or message.role, title),
            )
            for place, message in enumerate(new, 1)
        ],
    )


def _form(text: str, head: str) -> str:
    """Return the searchable form of a text, whose head's is known."""
    return head if len(text) <= NEIGHBOUR_CHARS else words.searchable_form(text)


def _insert(db: Connection, rows: Sequence[MessageWords]) -> None:
    db.run_many(
        "INSERT INTO message_words (rowid, text, previous, next, meta)"
        " VALUES (:n, :text, :previous, :next, :meta)",
        (
            {
                "n": row.n,
                "text": row.text[:HEAD_CHARS],
                "previous": row.previous,
                "next": row.next,
                "meta": row.meta,
            }
            for row in rows
            if row.role not in _UNSPOKEN
        ),
    )
    db.run_many(
        "INSERT INTO long_words (rowid, text, previous, meta) VALUES (:n, :text, :previous, :meta)",
        (
            {"n": row.n, "text": row.text, "previous": row.previous, "meta": row.meta}
            for row in rows
            if row.role in _UNSPOKEN or len(row.text) > HEAD_CHARS
        ),
    )


_UNSPOKEN = ("tool", "system")


def _neighbour(packed: str | None) -> str:
    if packed is None:
        return ""
    return words.searchable_form(parts.searchable(unpack_parts(packed))[:NEIGHBOUR_CHARS])


def _meta(created_at: int, speaker: str, title: str) -> str:
    """Return the words by which a message is known apart from its own."""
    date = _date(created_at // _DAY_US)
    return " ".join(word for word in (speaker, date, title) if word)


@lru_cache(maxsize=1_000)
def _date(day: int) -> str:
    return f"{clock.from_us(day * _DAY_US):%d %B %Y}".lstrip("0")


_DAY_US = 86_400_000_000


def add_distillation(db: Connection, n: int, text: str) -> None:
    """Index a distillation."""
    db.run("DELETE FROM long_words WHERE rowid = :n", n=n)
    db.run(
        "INSERT INTO long_words (rowid, text) VALUES (:n, :text)",
        n=n,
        text=words.searchable_form(text),
    )


def add_fragment(db: Connection, n: int, summary: str, content: str, kind: str) -> None:
    """Index a fragment, in place of what was indexed for it before."""
    db.run("DELETE FROM fragment_words WHERE rowid = :n", n=n)
    db.run(
        "INSERT INTO fragment_words (rowid, summary, content, kind)"
        " VALUES (:n, :summary, :content, :kind)",
        n=n,
        summary=words.searchable_form(summary),
        content=words.searchable_form(content),
        kind=kind.replace("_", " "),
    )


def index_session(db: Connection, n: int) -> None:
    """Index the title and the files of a session."""
    db.run("DELETE FROM session_words WHERE rowid = :n", n=n)
    row = db.find("SELECT title, files FROM sessions WHERE n = :n", n=n)
    if row and any(row):
        db.run(
            "INSERT INTO session_words (rowid, title, files) VALUES (:n, :title, :files)",
            n=n,
            title=words.searchable_form(row[0]),
            files=words.searchable_form(row[1]),
        )


def count_rows(db: Connection, table: str, word: str) -> int:
    """Return how many rows of a table have a word, in any of its inflections."""
    found = db.value(f"SELECT doc FROM {table}_vocabulary WHERE term = :term", term=stem(word))
    return int(found or 0)


def remove(
    db: Connection,
    ns: Sequence[int],
    *,
    type: ItemType,
) -> None:
    """Take items out of the index."""
    tables = ("fragment_words",) if type == "fragment" else ("message_words", "long_words")
    for table in tables:
        db.run(f"DELETE FROM {table} WHERE {among('rowid', 'ns')}", ns=numbers(ns))


class Within(NamedTuple):
    """Where a keyword search may look: one project, one session, these items, the trusted."""

    project_n: int | None = None
    session_n: int | None = None
    ns: Sequence[int] | None = None
    trusted_only: bool = False


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
    project_n, session_n, ns, trusted_only = within or Within()
    if not query or (ns is not None and not len(ns)):
        return []
    bounds = f"AND {among('+rowid', 'ns')}" if ns is not None else ""
    if session_n is not None:
        bounds = "AND +rowid IN (SELECT n FROM items WHERE session_n = :session_n)"
    elif project_n is not None:
        bounds = (
            "AND +rowid IN (SELECT n FROM items WHERE project_n IS NULL OR project_n = :project_n)"
        )
    if trusted_only:
        bounds += f" AND {_trusted(table)}"
    # The plus sign keeps FTS5 from running the whole match anew for each of the rows.
    weight_list = ", ".join(f"{weight:g}" for weight in weights)
    rows = db.rows(
        f"SELECT rowid, bm25({table}, {weight_list}) FROM {table}"
        f" WHERE {table} MATCH :query {bounds} ORDER BY 2 LIMIT :limit",
        query=query,
        limit=limit,
        session_n=session_n,
        project_n=project_n,
        **({} if ns is None else {"ns": numbers(ns)}),
    )
    return [(n, -score) for n, score in rows]


def _trusted(table: str) -> str:
    """Return the condition that leaves out, row by row, what may not be shown unasked."""
    if table == "fragment_words":
        return (
            f"EXISTS (SELECT 1 FROM fragments f WHERE f.n = {table}.rowid"
            f" AND f.trust >= {UNASKED_TRUST})"
        )
    return (
        f"NOT EXISTS (SELECT 1 FROM messages m WHERE m.n = {table}.rowid"
        f" AND m.origin NOT IN ({TRUSTED_SQL}))"
    )


def count_at_most(db: Connection, table: str, word: str, most: int) -> int:
    """Return how many rows have a word, counting no further than `most`."""
    return int(
        db.value(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH :match LIMIT :most)",
            match=f'"{word}"',
            most=most,
        )
    )


def count(db: Connection) -> int:
    """Return how many items the index holds."""
    return sum(int(db.value(f"SELECT count(*) FROM {table}_docsize")) for table in _TABLES)


def optimize(db: Connection) -> None:
    """Merge the index so that nothing of removed items is left in it."""
    for table in _TABLES:
        db.run(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def clear(db: Connection) -> None:
    """Empty the index."""
    for table in _TABLES:
        db.run(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")


def damage(db: Connection) -> list[str]:
    """Return what the index's own check finds wrong."""
    found = []
    for table in _TABLES:
        try:
            db.run(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except StoreError as error:
            found.append(f"{table}: {error}")
    return found
