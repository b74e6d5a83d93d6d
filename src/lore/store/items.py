"""Items: the catalogue of all searchable records, and the resolution of ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple

from lore import clock
from lore.errors import AmbiguousId, InvalidInput, NotFound, StoreDamaged
from lore.records import ITEM_TYPES, ItemType, Origin
from lore.store.codec import unpack_parts
from lore.store.overview import find_overview
from lore.store.sql_connection import Connection, Row, among, id_blob, id_text, int_array

NEVER_EMBEDDED = 0
"""`embedder_n` of an item that never gets a vector; NULL means that it is pending."""

SHORTEST_PREFIX = 8

_TYPE_NUMBERS: dict[ItemType, int] = {name: i + 1 for i, name in enumerate(ITEM_TYPES)}
_TYPE_NAMES = {number: name for name, number in _TYPE_NUMBERS.items()}
_HEX = frozenset("0123456789abcdef-")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGITS = 32
_CANDIDATES = 5
"""Items that are named if a prefix matches several."""

_TEXT_READ, _TEXT_SHOWN = 400, 80
"""Characters of their texts that are read, and that are shown without line breaks."""

_TEXTS: dict[ItemType, tuple[str, str]] = {
    "message": ("parts", "messages"),
    "distillation": ("text", "distillations"),
    "fragment": ("content", "fragments"),
}
"""The column and the table of the text of each type of item."""
_SHOWN_BY = "{search} and {recall} show ids."


NO_PROJECT = 0
"""The scope of what comes from sessions without a project."""

UNKNOWN_PROJECT = -1
"""The scope of a project that is not stored yet: only what applies to all projects is in it."""


MESSAGE_RANGE = (
    f"JOIN items a ON a.id = {id_blob('d.from_message')}"
    f" JOIN items b ON b.id = {id_blob('d.to_message')}"
    " JOIN messages first ON first.n = a.n JOIN messages last ON last.n = b.n"
)
"""Joins the first and last message of a distillation `d`."""


class Item(NamedTuple):
    """One row of the catalogue."""

    n: int
    id: str
    type: ItemType
    project_n: int | None
    session_n: int | None
    created_at: int
    tokens: int


class NewItem(NamedTuple):
    """A row to be added to the catalogue."""

    id: str
    type: ItemType
    project_n: int | None
    session_n: int | None
    created_at: int
    tokens: int
    embeds: bool


def scope_sql(item: str) -> str:
    """Return the SQL expression for the scope of an item: where it applies.

    That is the number of its project, or of its session's, `NO_PROJECT` if the session has none,
    and NULL, for all projects, if it is of no session: only a person stores or promotes such items,
    or keeps them in their own files.
    """
    return (
        f"coalesce({item}.project_n, (SELECT coalesce(scope_session.project_n, {NO_PROJECT})"
        f" FROM sessions scope_session WHERE scope_session.n = {item}.session_n))"
    )


def applies_sql(item: str) -> str:
    """Return the SQL condition that an item applies to the scope `:project_n`; to any if NULL."""
    return f"(:project_n IS NULL OR coalesce({scope_sql(item)}, :project_n) = :project_n)"


def scopes_of(db: Connection, ns: Sequence[int]) -> dict[int, int | None]:
    """Return the scopes of items by number."""
    sql = f"SELECT i.n, {scope_sql('i')} FROM items i WHERE {among('i.n', 'ns')}"
    return dict(db.rows(sql, ns=int_array(ns)))


class Home(NamedTuple):
    """The project, or the session without one, that something derived from items belongs to."""

    project_n: int | None
    session_n: int | None


def find_home(db: Connection, ns: Sequence[int]) -> Home:
    """Return where that belongs which is derived from items of one scope."""
    scopes = scopes_of(db, ns)
    project_n = next((scope for scope in scopes.values() if scope), None)
    loose = [n for n, scope in scopes.items() if scope == NO_PROJECT]
    if project_n is not None or not loose:
        return Home(project_n, None)
    return Home(None, db.number("SELECT session_n FROM items WHERE n = :n", n=min(loose)))


def for_all_projects(db: Connection) -> list[int]:
    """Return the items that apply to all projects, in order."""
    # The plus sign keeps SQLite on the index by session: few items are of none.
    return db.column(
        "SELECT n FROM items WHERE session_n IS NULL AND +project_n IS NULL ORDER BY n"
    )


def type_number(name: ItemType) -> int:
    """Return the stored number of an item type."""
    return _TYPE_NUMBERS[name]


def type_name(number: int) -> ItemType:
    """Return the item type of a stored number."""
    if number not in _TYPE_NAMES:
        msg = f"The database is damaged: {number!r} is not an item type."
        raise StoreDamaged(msg, hint="Run 'lore doctor' to see what can be saved.")
    return _TYPE_NAMES[number]


def add(db: Connection, item: NewItem) -> int:
    """Add an item to the catalogue and return its number."""
    if not _UUID.fullmatch(item.id):
        msg = f"'{item.id[:60]}' is not an id: an item id is a UUID."
        raise InvalidInput(msg)
    sql = f"INSERT INTO items ({', '.join(_COLUMNS)}) VALUES ({_VALUES}) RETURNING n"
    return int(db.value(sql, **dict(zip(_COLUMNS, _packed(item), strict=True))))


def add_all(db: Connection, new: Sequence[NewItem]) -> list[int]:
    """Add items to the catalogue and return their consecutive numbers."""
    first = db.next_number("items")
    ns = list(range(first, first + len(new)))
    db.run_many(
        f"INSERT INTO items (n, {', '.join(_COLUMNS)}) VALUES (:n, {_VALUES})",
        [(n, *_packed(item)) for n, item in zip(ns, new, strict=True)],
    )
    return ns


def _packed(item: NewItem) -> Row:
    id_, type_, project_n, session_n, at, tokens, embeds = item
    embedder_n = None if embeds else NEVER_EMBEDDED
    return id_, _TYPE_NUMBERS[type_], project_n, session_n, at, tokens, embedder_n


def resolve(db: Connection, id_or_prefix: str, *, type: ItemType | None = None) -> Item:
    """Return the item with this id or id prefix of at least 8 characters."""
    prefix = id_or_prefix.strip().lower()
    if len(prefix) < SHORTEST_PREFIX or not _HEX.issuperset(prefix):
        shown = id_or_prefix[:60]
        msg = f"'{shown}' is not an id: give at least {SHORTEST_PREFIX} of its characters."
        if not _HEX.issuperset(prefix):
            msg = f"'{shown}' is not an id: ids consist of digits, dashes and the letters a to f."
        raise InvalidInput(msg, hint=_SHOWN_BY, calls=("search", "recall"))
    digits = prefix.replace("-", "")
    rows = db.rows(
        f"SELECT n, {id_text('id')}, type, project_n, session_n, created_at, tokens FROM items"
        f" WHERE id >= {id_blob(':low')} AND id <= {id_blob(':high')}"
        f" AND (:type IS NULL OR type = :type) ORDER BY id LIMIT {_CANDIDATES + 1}",
        low=digits.ljust(_DIGITS, "0"),
        high=digits.ljust(_DIGITS, "f"),
        type=type_number(type) if type else None,
    )
    rows = [row for row in rows if row[1].startswith(prefix)]
    if not rows:
        what = type or "item"
        msg = f"No {what} starts with '{prefix}'."
        raise NotFound(msg, hint=_SHOWN_BY, calls=("search", "recall"))
    if len(rows) > 1:
        some = ", ".join(row[1] for row in rows[:_CANDIDATES])
        msg = f"'{prefix}' matches several ids: {some}{' …' if len(rows) > _CANDIDATES else ''}"
        hint = "Give more characters of the one you mean."
        raise AmbiguousId(msg, hint=hint, candidates=_beginnings(db, rows[:_CANDIDATES]))
    n, id_, number, *rest = rows[0]
    return Item(n, id_, type_name(number), *rest)


def _beginnings(db: Connection, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return ids with how the texts of their items begin."""
    beginnings = []
    for n, id_, type_, *_ in rows:
        column, table = _TEXTS[type_name(type_)]
        text = db.value(f"SELECT {column} FROM {table} WHERE n = :n", n=n) or ""
        if table == "messages":
            text = " ".join(part.text for part in unpack_parts(text))
        beginnings.append((id_, " ".join(text[:_TEXT_READ].split())[:_TEXT_SHOWN]))
    return beginnings


def find_number(db: Connection, id_: str) -> int | None:
    """Return the number of the item with this id, or None."""
    return db.number(f"SELECT n FROM items WHERE id = {id_blob(':id')}", id=id_)


def numbers_of(db: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the numbers of the ids that exist."""
    numbers = ((id_, find_number(db, id_)) for id_ in ids)
    return {id_: n for id_, n in numbers if n is not None}


def ids_of(db: Connection, ns: Sequence[int]) -> dict[int, str]:
    """Return the ids of item numbers."""
    if not len(ns):
        return {}
    sql = f"SELECT n, {id_text('id')} FROM items WHERE {among('n', 'ns')}"
    return dict(db.rows(sql, ns=int_array(ns)))


def times_of(db: Connection, ns: Sequence[int]) -> dict[int, datetime]:
    """Return when items were created, by number."""
    sql = f"SELECT n, created_at FROM items WHERE {among('n', 'ns')}"
    return {n: clock.from_us(at) for n, at in db.rows(sql, ns=int_array(ns))}


def count_types(db: Connection, ns: Sequence[int]) -> dict[str, int]:
    """Return how many of the items are of each type."""
    sql = f"SELECT type, count(*) FROM items WHERE {among('n', 'ns')} GROUP BY type"
    return {type_name(type_): count for type_, count in db.rows(sql, ns=int_array(ns))}


class ItemSource(NamedTuple):
    """The type of an item, whose words it is, and where it was said."""

    type: ItemType
    origin: Origin
    session_id: str
    project_id: str | None


def find_sources(db: Connection, ids: Sequence[str]) -> dict[str, ItemSource]:
    """Return where messages and fragments come from, by id."""
    ns = int_array(list(numbers_of(db, ids).values()))
    sources = {}
    for table in ("messages", "fragments"):
        rows = db.rows(
            f"SELECT {id_text('i.id')}, i.type, t.origin, coalesce(s.id, ''), p.id"
            f" FROM {table} t JOIN items i ON i.n = t.n LEFT JOIN sessions s ON s.n = i.session_n"
            " LEFT JOIN projects p ON p.n = coalesce(i.project_n, s.project_n)"
            f" WHERE {among('t.n', 'ns')}",
            ns=ns,
        )
        for id_, type_, origin, session, project in rows:
            sources[id_] = ItemSource(type_name(type_), origin, session, project)
    return sources


def tokens_of(db: Connection, ns: Sequence[int]) -> dict[int, int]:
    """Return the tokens of items by number."""
    sql = f"SELECT n, tokens FROM items WHERE {among('n', 'ns')}"
    return dict(db.rows(sql, ns=int_array(ns)))


def of_sessions(db: Connection, ns: Sequence[int], session_ns: Sequence[int]) -> list[int]:
    """Return those of the items that belong to one of the sessions."""
    sql = f"SELECT n FROM items WHERE {among('n', 'ns')} AND {among('session_n', 'session_ns')}"
    return db.column(sql, ns=int_array(ns), session_ns=int_array(session_ns))


def short_ids(db: Connection, ids: Sequence[str], shortest: int = 13) -> dict[str, str]:
    """Return for each id its shortest unique prefix: in a prompt, each character costs."""
    short = {}
    for id_ in ids:
        beside = [db.value(sql, id=id_) for sql in _NEIGHBOUR_IDS]
        shared = max((_common_prefix_length(id_, other) for other in beside if other), default=0)
        short[id_] = _cut(id_, max(shortest, shared + 1))
    return short


def listed_ids(db: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return for each id a unique prefix for a list: all of the same length."""
    short = short_ids(db, ids)
    length = max(map(len, short.values()), default=0)
    return {id_: id_[:length] for id_ in ids}


def _cut(id_: str, length: int) -> str:
    """Return the beginning of an id, not ending in a dash."""
    return id_[: length + 1] if id_[length - 1 : length] == "-" else id_[:length]


_NEIGHBOUR_IDS = (
    f"SELECT {id_text('id')} FROM items WHERE id < {id_blob(':id')} ORDER BY id DESC LIMIT 1",
    f"SELECT {id_text('id')} FROM items WHERE id > {id_blob(':id')} ORDER BY id LIMIT 1",
)
"""Queries for the ids before and after one."""


def _common_prefix_length(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def highest_number(db: Connection) -> int:
    """Return the highest number so far: about how many items exist."""
    if (overview := find_overview(db)) is not None:
        return overview.highest_number
    return int(db.value("SELECT coalesce(max(n), 0) FROM items"))


def looks_like_id(text: str) -> bool:
    """Return whether a text may be an id or a prefix of one."""
    prefix = text.strip().lower()
    return len(prefix) >= SHORTEST_PREFIX and _HEX.issuperset(prefix)


def count_by_type(db: Connection) -> dict[ItemType, int]:
    """Return how many items of each type there are."""
    rows = db.rows("SELECT type, count(*) FROM items GROUP BY type")
    counts = {type_name(number): count for number, count in rows}
    return {name: counts.get(name, 0) for name in ITEM_TYPES}


_COLUMNS = ("id", "type", "project_n", "session_n", "created_at", "tokens", "embedder_n")


_VALUES = ", ".join(id_blob(":id") if name == "id" else f":{name}" for name in _COLUMNS)
