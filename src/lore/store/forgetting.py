"""Forgetting on a person's request: rows, indexes, versions and logs, without a trace."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lore.records import ITEM_TYPES, Names, Part
from lore.store import (
    changes,
    claims,
    copies,
    cycles,
    dialogues,
    echoes,
    fragments,
    items,
    keywords,
    mentions,
    names,
    overviews,
    sessions,
    trees,
)
from lore.store.names import Named
from lore.store.packing import unpack_json, unpack_key, unpack_parts
from lore.store.sqlite import Connection, among, id_of, id_text, numbers, texts
from lore.text.quoting import quoting

_BATCH = 500

_TITLE_WORDS = 12
"""So many words of a title are compared with what goes: a long request is cut for a title."""

_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Characters that nobody sees: a word with one of them inside is still that word."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to be forgotten: items, and the sessions and projects that go with them."""

    item_ns: tuple[int, ...] = ()
    session_ns: tuple[int, ...] = ()
    project_ns: tuple[int, ...] = ()


def collect(db: Connection, id_: str, session: str, project: str, text: str) -> Doomed:
    """Collect what one of four ways of naming it means."""
    if id_:
        if changes.buried(db, [id_.strip().lower()]):
            return Doomed()
        return Doomed((items.resolve(db, id_).n,))
    if session:
        return of_session(db, sessions.get_number(db, session))
    if project:
        return of_project(db, sessions.get_project(db, project))
    return of_text(db, text) if text.strip() else Doomed()


def of_session(db: Connection, session_n: int) -> Doomed:
    """Collect a session with those of its subagents and forks, and everything in them."""
    return complete(db, Doomed(session_ns=(session_n,)))


def of_project(db: Connection, project_n: int) -> Doomed:
    """Collect a project with all its sessions and knowledge."""
    return complete(db, Doomed(project_ns=(project_n,)))


def complete(db: Connection, doomed: Doomed) -> Doomed:
    """Add the sessions of the projects, of subagents and forks, and all that is in them."""
    families = [
        row[0]
        for row in db.rows(
            "WITH RECURSIVE family (n) AS (SELECT n FROM sessions"
            f" WHERE {among('n', 'sessions')} OR {among('project_n', 'projects')}"
            " UNION SELECT s.n FROM sessions s JOIN family f ON s.parent_n = f.n)"
            " SELECT n FROM family ORDER BY n",
            sessions=numbers(doomed.session_ns),
            projects=numbers(doomed.project_ns),
        )
    ]
    found = db.rows(
        f"SELECT n FROM items WHERE {among('session_n', 'sessions')}"
        f" OR {among('project_n', 'projects')}",
        sessions=numbers(families),
        projects=numbers(doomed.project_ns),
    )
    item_ns = {*doomed.item_ns, *(row[0] for row in found)}
    return Doomed(tuple(sorted(item_ns)), tuple(families), doomed.project_ns)


def of_text(db: Connection, text: str) -> Doomed:
    """Collect every item that says a text, whatever its case, accents' form and line breaks."""
    needle = levelled(text)
    if not needle:
        return Doomed()
    return Doomed(tuple(n for n, content in _contents(db) if needle in levelled(content)))


def names_with(db: Connection, text: str) -> Names:
    """Return the sessions and projects that have a text in their names."""
    needle = levelled(text)
    if not needle:
        return Names()
    named = [
        n
        for n, *called in db.rows("SELECT n, title, files, branch, external_id FROM sessions")
        if _says(needle, called)
    ]
    projects = [
        project
        for project in sessions.projects(db).values()
        if _says(needle, (project.path, project.remote, project.name))
    ]
    return Names(tuple(sessions.by_number(db, named).values()), tuple(projects))


def _says(needle: str, called: Iterable[str]) -> bool:
    return any(needle in levelled(text) for text in called)


def levelled(text: str) -> str:
    """Return a text in the form in which it is compared: composed, one space, no case."""
    shown = _HIDDEN.sub("", unicodedata.normalize("NFC", text))
    return " ".join(shown.casefold().split())


def _contents(db: Connection, ns: Sequence[int] | None = None) -> Iterator[tuple[int, str]]:
    """Walk through texts in batches, so that a large memory does not fill the machine's."""
    last = 0
    wanted = f" AND {among('i.n', 'ns')}" if ns is not None else ""
    chosen = {"ns": numbers(ns)} if ns is not None else {}
    while True:
        rows = db.rows(
            "SELECT i.n, m.parts, f.payload, f.metadata, m.speaker, m.model, d.text, f.content,"
            " f.summary FROM items i LEFT JOIN messages m ON m.n = i.n"
            " LEFT JOIN distillations d ON d.n = i.n LEFT JOIN fragments f ON f.n = i.n"
            f" WHERE i.n > :last{wanted} ORDER BY i.n LIMIT :batch",
            last=last,
            batch=_BATCH,
            **chosen,
        )
        if not rows:
            return
        for n, parts, payload, metadata, *plain in rows:
            said = [text for part in unpack_parts(parts or "[]") for text in _spoken(part)]
            kept = [*_texts(unpack_json(payload or "{}")), *_texts(unpack_json(metadata or "{}"))]
            former = _former(db, n) if parts is None else []
            yield n, "\n".join([*said, *kept, *former, *(text for text in plain if text)])
        last = rows[-1][0]


def _spoken(part: Part) -> Iterator[str]:
    yield from (text for text in (part.text, part.name, part.call_id) if text)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, names and values alike."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _former(db: Connection, n: int) -> list[str]:
    """Return what a fragment said before, in its versions and in what can be undone."""
    versions = db.rows(
        "SELECT content, summary, reason FROM fragment_versions WHERE fragment_n = :n", n=n
    )
    before = db.rows("SELECT before FROM actions WHERE fragment_n = :n AND before <> '{}'", n=n)
    undoable = [
        text
        for (packed,) in before
        for value in unpack_json(packed).values()
        for text in _texts(value)
    ]
    return [*(text for row in versions for text in row), *undoable]


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
    for n, sources in db.rows(
        "SELECT n, source_messages FROM fragments WHERE source_messages <> '[]'"
    ):
        if not ids.isdisjoint(unpack_json(sources)):
            yield n
    insights = db.rows(
        "SELECT e.source_n FROM edges e JOIN fragments f ON f.n = e.source_n"
        f" WHERE e.kind = 'derived_from' AND f.kind = 'insight' AND {among('e.target_n', 'ns')}",
        ns=numbers(ns),
    )
    yield from (row[0] for row in insights)
    rows = db.rows(
        "SELECT DISTINCT d.n FROM distillations d"
        f" JOIN items a ON a.id = {id_of('d.from_message')}"
        f" JOIN items b ON b.id = {id_of('d.to_message')} JOIN messages first ON first.n = a.n"
        " JOIN messages last ON last.n = b.n JOIN messages m ON m.session_n = d.session_n"
        f" WHERE m.ordinal BETWEEN first.ordinal AND last.ordinal AND {among('m.n', 'ns')}",
        ns=numbers(ns),
    )
    yield from (row[0] for row in rows)


def forget(db: Connection, doomed: Doomed, *, text: str = "", now: datetime) -> list[str]:
    """Delete what is doomed, and mentions of `text` in logs; return the ids that are gone."""
    doomed = with_derived(db, complete(db, doomed))
    gone = items.ids_of(db, doomed.item_ns)
    sources = _sources(db, doomed.item_ns)
    elsewhere = claims.sources_elsewhere(db, doomed.item_ns)
    elsewhere |= copies.sources(db, doomed.item_ns)
    elsewhere |= echoes.sources(db, doomed.item_ns, set(doomed.session_ns))
    _clean_logs(db, gone)
    overviews.withdraw(db, doomed.item_ns, now=now)
    _clean_titles(db, doomed, now)
    if text:
        _clean_text(db, levelled(text), now)
    if gone:
        _delete_items(db, doomed.item_ns)
    ids = [*gone.values(), *_delete_places(db, doomed)]
    cycles.drop_lines(db, ids, levelled(text))
    _drop_silent_speakers(db)
    dialogues.drop_texts(db)
    keywords.optimize(db)
    if ids:
        db.run(
            f"DELETE FROM receipts WHERE {among('result', 'results')}",
            results=texts([f'"{id_}"' for id_ in ids]),
        )
    changes.bury(db, ids, now, sources=sources)
    changes.bury(db, list(elsewhere), now, sources=elsewhere)
    return ids


def _sources(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return for each message the digest that keeps it from being captured once more."""
    rows = db.rows(
        f"SELECT {id_text('i.id')}, s.agent, s.external_id, m.key FROM messages m"
        " JOIN items i ON i.n = m.n"
        f" JOIN sessions s ON s.n = m.session_n WHERE {among('m.n', 'ns')}",
        ns=numbers(ns),
    )
    return {id_: changes.source_of(agent, name, unpack_key(key)) for id_, agent, name, key in rows}


def _delete_items(db: Connection, ns: Sequence[int]) -> None:
    for type_ in ITEM_TYPES:
        keywords.remove(db, ns, type=type_)
    mentions.remove(db, ns)
    revived = db.rows(
        "UPDATE fragments SET superseded_by = NULL, valid_to = NULL WHERE superseded_by IN"
        f" (SELECT {id_text('id')} FROM items WHERE {among('n', 'ns')}) RETURNING n",
        ns=numbers(ns),
    )
    for (n,) in revived:
        fragments.reindex(db, n)
    _lift_orphans(db, ns)
    db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=numbers(ns))


def _lift_orphans(db: Connection, ns: Sequence[int]) -> None:
    """Make children of what goes into roots; what hangs below them moves up with them."""
    gone = set(ns)
    orphans = db.rows(
        "SELECT target_n FROM edges WHERE kind = 'hierarchical'"
        f" AND {among('source_n', 'ns')} ORDER BY target_n",
        ns=numbers(ns),
    )
    for (orphan,) in orphans:
        if orphan not in gone:
            trees.set_depths(db, orphan, 0)


def _delete_places(db: Connection, doomed: Doomed) -> list[str]:
    """Delete sessions and projects and return their ids."""
    ids = []
    for n in doomed.session_ns:
        keywords.remove_session(db, n)
    for table, ns in (("sessions", doomed.session_ns), ("projects", doomed.project_ns)):
        for n in reversed(ns):
            row = db.find(f"DELETE FROM {table} WHERE n = :n RETURNING id", n=n)
            ids += [row[0]] if row else []
    return ids


def _clean_logs(db: Connection, gone: Mapping[int, str]) -> None:
    """Drop questions that were answered with what is forgotten, or quote it, and errors."""
    ids = set(gone.values())
    queries: dict[int, str] = {}
    named: set[int] = set()
    for n, query, hits in db.rows("SELECT n, query, hits FROM retrievals"):
        if ids.isdisjoint(unpack_json(hits)):
            queries[n] = levelled(query)
        else:
            named.add(n)
    for n in named | quoting(queries, _texts_of(db, list(gone))):
        db.run("DELETE FROM retrievals WHERE n = :n", n=n)
    db.run("UPDATE jobs SET last_error = '' WHERE last_error <> ''")


def _texts_of(db: Connection, ns: Sequence[int]) -> Iterator[str]:
    for start in range(0, len(ns), _BATCH):
        for _, text in _contents(db, ns[start : start + _BATCH]):
            yield levelled(text)


def _clean_titles(db: Connection, doomed: Doomed, now: datetime) -> None:
    """Take away the titles of sessions that go, or whose title is taken from what goes."""
    rows = db.rows(
        "SELECT n, id, agent, external_id, title, files, branch FROM sessions"
        f" WHERE {among('n', 'ns')}",
        ns=numbers(doomed.session_ns),
    )
    for _, id_, agent, name, title, _, branch in rows:
        session = Named(id_, agent, name)
        names.bury(db, session, "title", title, now=now)
        names.bury(db, session, "branch", branch, now=now)
    rows = db.rows(
        "SELECT DISTINCT s.n, s.id, s.agent, s.external_id, s.title, s.files FROM messages m"
        f" JOIN sessions s ON s.n = m.session_n WHERE s.title <> '' AND {among('m.n', 'ns')}",
        ns=numbers(doomed.item_ns),
    )
    if not rows:
        return
    said = [set(text.split()) for text in _texts_of(db, doomed.item_ns)]
    for n, id_, agent, name, title, files in rows:
        needle = levelled(title)
        told = set(needle.rstrip("…").split()[:_TITLE_WORDS])
        if any(told <= words for words in said):
            names.bury(db, Named(id_, agent, name), "title", title, now=now)
            _clean_session(db, n, title, files, needle)


def _clean_text(db: Connection, needle: str, now: datetime) -> None:
    """Drop a text wherever it stands beside the items themselves."""
    for table, key, column in _BESIDE:
        for place in _places(db, table, key, column, needle):
            db.run(f"DELETE FROM {table} WHERE {_equal(key)}", **place)
    for place in _places(db, "edges", _EDGE, "note", needle):
        db.run(f"UPDATE edges SET note = '' WHERE {_equal(_EDGE)}", **place)
    for n, title, files, branch, name, id_, agent in db.rows(
        "SELECT n, title, files, branch, external_id, id, agent FROM sessions"
    ):
        session = Named(id_, agent, name)
        if _says(needle, (branch,)):
            names.bury(db, session, "branch", branch, now=now)
            db.run("UPDATE sessions SET branch = '' WHERE n = :n", n=n)
        if _says(needle, (title, files)):
            if needle in levelled(title):
                names.bury(db, session, "title", title, now=now)
            _clean_session(db, n, title, files, needle)
        if _says(needle, (name,)):
            _rename(db, n, session, now)


def _rename(db: Connection, n: int, session: Named, now: datetime) -> None:
    """Agents know a session by its name: one that must go is replaced by the id."""
    names.bury(db, session, "session", session.name, now=now)
    db.run("UPDATE sessions SET external_id = :id WHERE n = :n", id=session.id, n=n)


def _clean_names(db: Connection, now: datetime) -> None:
    """Take away the names of sessions that were forgotten before."""
    for n, title, files, branch, name, id_, agent in db.rows(
        "SELECT n, title, files, branch, external_id, id, agent FROM sessions"
    ):
        if not names.kept(db, agent, name, "branch", branch):
            db.run("UPDATE sessions SET branch = '' WHERE n = :n", n=n)
        if title and not names.kept(db, agent, name, "title", title):
            _clean_session(db, n, title, files, levelled(title))
        if names.find_renamed(db, agent, name):
            _rename(db, n, Named(id_, agent, name), now)


_EDGE = ("source_n", "target_n", "kind")

_BESIDE = (
    ("retrievals", ("n",), "query"),
    ("steps", ("n",), "note"),
    ("jobs", ("n",), "subject"),
    ("staged_turns", ("n",), "body"),
    ("session_states", ("session_n", "name"), "value"),
    ("watermarks", ("source",), "source"),
    ("watermarks", ("source",), "context"),
    ("watermarks", ("source",), "problem"),
    ("aliases", ("id",), "id"),
)
"""Tables whose rows go when they hold a text that is to be forgotten, with their keys."""


def _places(
    db: Connection, table: str, key: Sequence[str], column: str, needle: str
) -> list[dict[str, Any]]:
    """Return the keys of the rows that hold a text."""
    rows = db.rows(f"SELECT {column}, {', '.join(key)} FROM {table} WHERE {column} <> ''")
    return [dict(zip(key, place, strict=True)) for text, *place in rows if needle in levelled(text)]


def _equal(key: Sequence[str]) -> str:
    return " AND ".join(f"{name} = :{name}" for name in key)


def _clean_session(db: Connection, n: int, title: str, files: str, needle: str) -> None:
    """Take a text out of a session's title and files."""
    db.run(
        "UPDATE sessions SET title = :title, files = :files WHERE n = :n",
        title="" if needle in levelled(title) else title,
        files="\n".join(name for name in files.split("\n") if needle not in levelled(name)),
        n=n,
    )
    keywords.index_session(db, n)


def _drop_silent_speakers(db: Connection) -> None:
    """Drop the names of people of whom no message is left."""
    db.run("DELETE FROM speakers WHERE name NOT IN (SELECT speaker FROM messages)")


def apply_tombstones(db: Connection, tombstones: Mapping[str, str], *, now: datetime) -> list[str]:
    """Forget again what a copy brings back: ids, each with the digest of its source."""
    ids = list(tombstones)
    ns = {table: _numbers(db, table, ids) for table in ("sessions", "projects")}
    found = (items.find_number(db, id_) for id_ in ids)
    item_ns = tuple(n for n in found if n is not None)
    gone: list[str] = []
    if item_ns or any(ns.values()):
        gone = forget(db, Doomed(item_ns, ns["sessions"], ns["projects"]), now=now)
    changes.bury(db, ids, now, sources=tombstones)
    if names.are_among(ids):
        _clean_names(db, now)
    return gone


def _numbers(db: Connection, table: str, ids: Sequence[str]) -> tuple[int, ...]:
    found = (db.value(f"SELECT n FROM {table} WHERE id = :id", id=id_) for id_ in ids)
    return tuple(n for n in found if n is not None)
