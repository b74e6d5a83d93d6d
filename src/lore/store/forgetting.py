"""Forgetting on a person's request: rows, indexes, versions and logs, without a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from lore.records import ITEM_TYPES
from lore.store import changes, items, keywords, mentions, sessions
from lore.store.sqlite import Connection, among, numbers

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to be forgotten: items, and the sessions and projects that go with them."""

    item_ns: tuple[int, ...] = ()
    session_ns: tuple[int, ...] = ()
    project_ns: tuple[int, ...] = ()


def collect(db: Connection, id_: str, session: str, project: str, text: str) -> Doomed:
    """Collect what one of four ways of naming it means."""
    if id_:
        return Doomed((items.resolve(db, id_).n,))
    if session:
        return of_session(db, sessions.get_number(db, session))
    if project:
        return of_project(db, sessions.get_project(db, project))
    return of_text(db, text) if text.strip() else Doomed()


def of_session(db: Connection, session_n: int) -> Doomed:
    """Collect a session with its subagents' sessions and everything in them."""
    rows = db.rows(
        "WITH RECURSIVE family (n) AS (SELECT :n UNION"
        " SELECT s.n FROM sessions s JOIN family f ON s.parent_n = f.n) SELECT n FROM family",
        n=session_n,
    )
    sessions = [row[0] for row in rows]
    found = db.rows(
        f"SELECT n FROM items WHERE {among('session_n', 'ns')}", ns=numbers(sessions)
    )
    return Doomed(tuple(row[0] for row in found), tuple(sessions))


def of_project(db: Connection, project_n: int) -> Doomed:
    """Collect a project with all its sessions and knowledge."""
    sessions = [
        row[0] for row in db.rows("SELECT n FROM sessions WHERE project_n = :n", n=project_n)
    ]
    found = db.rows("SELECT n FROM items WHERE project_n = :n", n=project_n)
    return Doomed(tuple(row[0] for row in found), tuple(sessions), (project_n,))


def of_text(db: Connection, text: str) -> Doomed:
    """Collect every item that contains a text, in any spelling of upper and lower case."""
    needle = text.casefold()
    return Doomed(tuple(n for n, content in _contents(db) if needle in content.casefold()))


def _contents(db: Connection) -> Iterator[tuple[int, str]]:
    """Walk through all texts in batches, so that a large memory does not fill the machine's."""
    last = 0
    while True:
        rows = db.rows(
            "SELECT i.n, m.parts, m.speaker, d.text, f.content, f.summary, f.payload, f.metadata,"
            " (SELECT group_concat(v.content || ' ' || v.summary, ' ') FROM fragment_versions v"
            " WHERE v.fragment_n = i.n) FROM items i LEFT JOIN messages m ON m.n = i.n"
            " LEFT JOIN distillations d ON d.n = i.n LEFT JOIN fragments f ON f.n = i.n"
            " WHERE i.n > :last ORDER BY i.n LIMIT :batch",
            last=last,
            batch=_BATCH,
        )
        if not rows:
            return
        for n, parts, *texts in rows:
            said = [str(value) for p in orjson.loads(parts or "[]") for value in p.values()]
            yield n, "\n".join([*said, *(text for text in texts if text)])
        last = rows[-1][0]


def with_derived(db: Connection, doomed: Doomed) -> Doomed:
    """Add what was derived from the items: fragments, and distillations that cover them."""
    known = set(doomed.item_ns)
    frontier = list(known)
    while frontier:
        found = set(_derived(db, frontier)) - known
        known |= found
        frontier = list(found)
    return Doomed(tuple(sorted(known)), doomed.session_ns, doomed.project_ns)


def _derived(db: Connection, ns: Sequence[int]) -> Iterator[int]:
    ids = set(items.ids_of(db, ns).values())
    for n, sources in db.rows("SELECT n, source_messages FROM fragments"):
        if sources != "[]" and not ids.isdisjoint(orjson.loads(sources)):
            yield n
    rows = db.rows(
        "SELECT DISTINCT d.n FROM distillations d JOIN items a ON a.id = d.from_message"
        " JOIN items b ON b.id = d.to_message JOIN messages first ON first.n = a.n"
        " JOIN messages last ON last.n = b.n JOIN messages m ON m.session_n = d.session_n"
        f" WHERE m.ordinal BETWEEN first.ordinal AND last.ordinal AND {among('m.n', 'ns')}",
        ns=numbers(ns),
    )
    yield from (row[0] for row in rows)


def forget(db: Connection, doomed: Doomed, *, text: str = "", now: datetime) -> list[str]:
    """Delete what is doomed, and mentions of `text` in logs; return the ids that are gone."""
    ids = list(items.ids_of(db, doomed.item_ns).values()) if doomed.item_ns else []
    for type_ in ITEM_TYPES if doomed.item_ns else ():
        keywords.remove(db, doomed.item_ns, type=type_)
    _clean_logs(db, set(ids), text)
    if doomed.item_ns:
        beside = _neighbours(db, doomed.item_ns)
        mentions.remove(db, doomed.item_ns)
        db.run(
            "UPDATE fragments SET superseded_by = NULL WHERE superseded_by IN"
            f" (SELECT id FROM items WHERE {among('n', 'ns')})",
            ns=numbers(doomed.item_ns),
        )
        db.run(f"DELETE FROM changes WHERE {among('item_n', 'ns')}", ns=numbers(doomed.item_ns))
        db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=numbers(doomed.item_ns))
        keywords.index_messages(db, beside)
    for table, ns in (("sessions", doomed.session_ns), ("projects", doomed.project_ns)):
        for n in reversed(ns):
            ids.append(db.value(f"DELETE FROM {table} WHERE n = :n RETURNING id", n=n))
    keywords.optimize(db)
    changes.bury(db, ids, now)
    return ids


def _neighbours(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return the messages that stay, beside those that go: their index rows hold both."""
    rows = db.rows(
        "SELECT DISTINCT o.n FROM messages m JOIN messages o ON o.session_n = m.session_n"
        f" AND o.ordinal IN (m.ordinal - 1, m.ordinal + 1) WHERE {among('m.n', 'ns')}",
        ns=numbers(ns),
    )
    gone = set(ns)
    return [row[0] for row in rows if row[0] not in gone]


def _clean_logs(db: Connection, ids: set[str], text: str) -> None:
    """Drop retrieval log entries and receipts that name what is forgotten."""
    needle = text.casefold()
    for n, query, hits in db.rows("SELECT n, query, hits FROM retrievals"):
        if (needle and needle in query.casefold()) or not ids.isdisjoint(orjson.loads(hits)):
            db.run("DELETE FROM retrievals WHERE n = :n", n=n)
    if needle:
        for n, title in db.rows("SELECT n, title FROM sessions"):
            if needle in title.casefold():
                db.run("UPDATE sessions SET title = '' WHERE n = :n", n=n)
        db.run("UPDATE jobs SET last_error = ''")


def apply_tombstones(db: Connection, ids: Sequence[str], *, now: datetime) -> list[str]:
    """Forget again what a restored copy brought back."""
    found = [
        row[0] for id_ in ids for row in db.rows("SELECT n FROM items WHERE id = :id", id=id_)
    ]
    sessions = [
        row[0] for id_ in ids for row in db.rows("SELECT n FROM sessions WHERE id = :id", id=id_)
    ]
    projects = [
        row[0] for id_ in ids for row in db.rows("SELECT n FROM projects WHERE id = :id", id=id_)
    ]
    doomed = Doomed(tuple(found), tuple(sessions), tuple(projects))
    changes.bury(db, ids, now)
    return forget(db, doomed, now=now) if found or sessions or projects else []
