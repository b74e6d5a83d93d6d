"""Forget on request: erase rows, index entries, versions and log lines, and leave tombstones."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from lore import clock
from lore.lazy_dataclass import dataclass
from lore.records import ITEM_TYPES, ItemType, NameMatches, Origin, Part, TaskRecordCount
from lore.store import (
    consolidation,
    dialogue_state,
    forgotten_names,
    forgotten_texts,
    fork_dedup,
    fragments,
    graph,
    history,
    items,
    keywords,
    layout_rows,
    message_dedup,
    native_rows,
    project_rows,
    replacements,
    reversible_changes,
    sessions,
    sync_rows,
    task_tables,
    watermarks,
)
from lore.store.codec import (
    has_part_kind,
    may_have_other_origins,
    pack_json,
    unpack_json,
    unpack_key,
    unpack_parts,
)
from lore.store.forgotten_names import SessionName
from lore.store.history import Tombstone
from lore.store.items import MESSAGE_RANGE
from lore.store.sql_connection import Connection, among, id_text, int_array, text_array
from lore.store.task_texts import IsForgotten
from lore.text.words import find_quoting

_BATCH = 500

_TITLE_WORDS = 12
"""At most this many words of a title are compared: a long request is cut to make a title."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Invisible characters: a word that contains one is still that word."""


@dataclass(frozen=True, slots=True)
class ForgetSelection:
    """What to forget: items, and sessions and projects with all that is in them."""

    item_ns: tuple[int, ...] = ()
    session_ns: tuple[int, ...] = ()
    project_ns: tuple[int, ...] = ()


def select(db: Connection, id_: str, session: str, project: str, text: str) -> ForgetSelection:
    """Select what an id, a session, a project or a text names."""
    if id_:
        if history.find_tombstones(db, [id_.strip().lower()]):
            return ForgetSelection()
        return ForgetSelection((items.resolve(db, id_).n,))
    if session:
        return select_session(db, sessions.get_session_number(db, session))
    if project:
        project_n = project_rows.get_project(db, project)
        return expand_selection(db, ForgetSelection(project_ns=(project_n,)))
    return select_text(db, text) if text.strip() else ForgetSelection()


def select_session(db: Connection, session_n: int) -> ForgetSelection:
    """Select a session, those of its subagents and forks, and everything in them."""
    return expand_selection(db, ForgetSelection(session_ns=(session_n,)))


def expand_selection(db: Connection, selection: ForgetSelection) -> ForgetSelection:
    """Add the sessions of the projects, of subagents and forks, and everything in them."""
    projects = int_array(selection.project_ns)
    sql = (
        "WITH RECURSIVE family (n) AS (SELECT n FROM sessions"
        f" WHERE {among('n', 'sessions')} OR {among('project_n', 'projects')}"
        " UNION SELECT s.n FROM sessions s JOIN family f ON s.parent_n = f.n)"
        " SELECT n FROM family ORDER BY n"
    )
    session_ns = db.column(sql, sessions=int_array(selection.session_ns), projects=projects)
    sql = (
        f"SELECT n FROM items WHERE {among('session_n', 'sessions')}"
        f" OR {among('project_n', 'projects')}"
    )
    inside = db.column(sql, sessions=int_array(session_ns), projects=projects)
    item_ns = tuple(sorted({*selection.item_ns, *inside}))
    return ForgetSelection(item_ns, tuple(session_ns), selection.project_ns)


def select_text(db: Connection, text: str) -> ForgetSelection:
    """Select every item that contains a text, ignoring case, Unicode form and line breaks."""
    needle = normalize_text(text)
    if not needle:
        return ForgetSelection()
    return ForgetSelection(
        tuple(n for n, content in _contents(db) if needle in normalize_text(content))
    )


def find_names(db: Connection, text: str) -> NameMatches:
    """Return the sessions and projects whose names contain a text."""
    needle = normalize_text(text)
    if not needle:
        return NameMatches()
    session_ns = [
        n
        for n, *called in db.rows(
            "SELECT n, title, files, branch, external_id, agent FROM sessions"
        )
        if _contains(needle, called)
    ]
    projects = [
        project
        for project in project_rows.all_projects(db).values()
        if _contains(needle, (project.path, project.remote, project.name))
    ]
    return NameMatches(tuple(sessions.get_sessions(db, session_ns).values()), tuple(projects))


def _contains(needle: str, called: Iterable[str]) -> bool:
    return any(needle in normalize_text(text) for text in called)


def normalize_text(text: str) -> str:
    """Return a text as it is compared: Unicode NFC, single spaces, case folded."""
    shown = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    return " ".join(shown.casefold().split())


def _contents(db: Connection, ns: Sequence[int] | None = None) -> Iterator[tuple[int, str]]:
    """Yield the texts of items in batches, to limit memory use."""
    last = 0
    condition = f" AND {among('i.n', 'ns')}" if ns is not None else ""
    params = {"ns": int_array(ns)} if ns is not None else {}
    sql = (
        "SELECT i.n, m.parts, f.payload, f.metadata, m.speaker, m.model, d.text, f.content,"
        " f.summary FROM items i LEFT JOIN messages m ON m.n = i.n"
        " LEFT JOIN distillations d ON d.n = i.n LEFT JOIN fragments f ON f.n = i.n"
        f" WHERE i.n > :last{condition} ORDER BY i.n LIMIT {_BATCH}"
    )
    while rows := db.rows(sql, last=last, **params):
        for n, parts, payload, metadata, *plain in rows:
            texts = [
                text
                for part in unpack_parts(parts or "[]")
                for text in (part.text, part.name, part.call_id)
            ]
            texts += _json_texts(unpack_json(payload or "{}"))
            texts += _json_texts(unpack_json(metadata or "{}"))
            texts += _former_texts(db, n) if parts is None else []
            yield n, "\n".join(text for text in (*texts, *plain) if text)
        last = rows[-1][0]


def _json_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, keys and values alike."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _json_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _json_texts(inner)


def _former_texts(db: Connection, n: int) -> list[str]:
    """Return the former texts of a fragment: its versions and its undo snapshots."""
    versions = db.rows(
        "SELECT content, summary, reason FROM fragment_versions WHERE fragment_n = :n", n=n
    )
    texts = [text for row in versions for text in row]
    before = db.column("SELECT before FROM actions WHERE fragment_n = :n AND before <> '{}'", n=n)
    for packed in before:
        for value in unpack_json(packed).values():
            texts += _json_texts(value)
    return texts


def former_wordings(db: Connection, ns: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield former contents and summaries of fragments, also those that were undone."""
    chosen = int_array(ns)
    sql = f"SELECT content, summary FROM fragment_versions WHERE {among('fragment_n', 'ns')}"
    yield from db.rows(sql, ns=chosen)
    sql = f"SELECT before FROM actions WHERE {among('fragment_n', 'ns')} AND before <> '{{}}'"
    for packed in db.column(sql, ns=chosen):
        snapshot = history.unpack_snapshot(packed)
        for wording in (snapshot.wording, snapshot.after):
            if isinstance(wording, history.Wording):
                yield wording.content, wording.summary


def with_derived(db: Connection, selection: ForgetSelection) -> ForgetSelection:
    """Add what was derived from the items: fragments, and distillations that cover them."""
    item_ns = set(selection.item_ns)
    frontier = list(item_ns)
    while frontier:
        derived = set(_derived(db, frontier)) - item_ns
        item_ns |= derived
        frontier = list(derived)
    return ForgetSelection(tuple(sorted(item_ns)), selection.session_ns, selection.project_ns)


def _derived(db: Connection, ns: Sequence[int]) -> Iterator[int]:
    ids = set(items.ids_of(db, ns).values())
    for n, sources in db.rows(
        "SELECT n, source_messages FROM fragments WHERE source_messages <> '[]'"
    ):
        if not ids.isdisjoint(unpack_json(sources)):
            yield n
    yield from db.column(
        "SELECT e.source_n FROM edges e JOIN fragments f ON f.n = e.source_n"
        " WHERE e.kind = 'derived_from' AND (f.kind = 'insight' OR (f.origin <> 'user'"
        " AND f.kind IN ('pattern', 'anti_pattern', 'skill')))"
        f" AND {among('e.target_n', 'ns')}",
        ns=int_array(ns),
    )
    yield from db.column(
        f"SELECT DISTINCT d.n FROM distillations d {MESSAGE_RANGE}"
        " JOIN messages m ON m.session_n = d.session_n"
        f" WHERE m.ordinal BETWEEN first.ordinal AND last.ordinal AND {among('m.n', 'ns')}",
        ns=int_array(ns),
    )


def forget(
    db: Connection,
    selection: ForgetSelection,
    *,
    text: str = "",
    now: datetime,
    at: datetime | None = None,
) -> list[str]:
    """Delete a selection, and occurrences of `text` elsewhere; return the ids that were deleted.

    `at` is when it was forgotten, if that was elsewhere and earlier: what goes on since is new.
    """
    at = at or now
    selection = with_derived(db, expand_selection(db, selection))
    deleted = items.ids_of(db, selection.item_ns)
    sources = _sources(db, selection.item_ns) | session_sources(db, selection.session_ns)
    elsewhere = message_dedup.sources_in_other_channels(db, selection.item_ns)
    elsewhere |= fork_dedup.copy_sources(db, selection.item_ns)
    elsewhere |= fork_dedup.echo_sources(db, selection.item_ns, set(selection.session_ns))
    elsewhere |= native_rows.tombstone_sources(db, selection.item_ns)
    _clean_logs(db, deleted, at)
    reversible_changes.withdraw_overviews(db, selection.item_ns, now=now)
    _clean_session_names(db, selection, at)
    if text:
        _clean_text(db, normalize_text(text), at)
    quoting = _delete_items(db, selection.item_ns) if deleted else ()
    if text:
        _clean_links(db, normalize_text(text))
    history.add_tombstones(db, sorted(task_tables.ids_inside(db, _inside(selection))), at)
    history.add_tombstones(db, layout_rows.file_ids(db, selection.project_ns), at)
    ids = [*deleted.values(), *_delete_sessions_and_projects(db, selection)]
    # A report may quote a forgotten question together with its answer, under the answer's id.
    quoting_ids = items.ids_of(db, quoting).values()
    consolidation.redact_reports(db, [*ids, *quoting_ids], normalize_text(text))
    db.run("DELETE FROM speakers WHERE name NOT IN (SELECT speaker FROM messages)")
    dialogue_state.drop_quoting_states(db)
    keywords.optimize(db)
    if ids:
        db.run(
            f"DELETE FROM receipts WHERE {among('result', 'results')}",
            results=text_array([f'"{id_}"' for id_ in ids]),
        )
    sync_rows.remove_known_about(db, ids)
    history.add_tombstones(db, ids, at, sources=sources)
    history.raise_sources(db, sources)  # of tombstones that came without them
    history.add_tombstones(db, list(elsewhere), at, sources=elsewhere)
    return ids


def _sources(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return for each message the source digest that prevents capturing it again."""
    rows = db.rows(
        f"SELECT {id_text('i.id')}, s.agent, s.external_id, m.key FROM messages m"
        " JOIN items i ON i.n = m.n"
        f" JOIN sessions s ON s.n = m.session_n WHERE {among('m.n', 'ns')}",
        ns=int_array(ns),
    )
    return {
        id_: history.source_digest(agent, name, unpack_key(key)) for id_, agent, name, key in rows
    }


def session_sources(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return for each session the source digest that recognizes it on other machines."""
    rows = db.rows(
        f"SELECT id, agent, external_id FROM sessions WHERE {among('n', 'ns')}", ns=int_array(ns)
    )
    return {id_: forgotten_names.session_digest(agent, name) for id_, agent, name in rows}


def _delete_items(db: Connection, ns: Sequence[int]) -> list[int]:
    """Delete items; return those that are judged again, because a link of theirs quoted one."""
    for type_ in ITEM_TYPES:
        keywords.remove(db, ns, type=type_)
    graph.remove_mentions(db, ns)
    revived = db.column(
        "UPDATE fragments SET superseded_by = NULL, valid_to = NULL WHERE superseded_by IN"
        f" (SELECT {id_text('id')} FROM items WHERE {among('n', 'ns')}) RETURNING n",
        ns=int_array(ns),
    )
    deleted = set(ns)
    for n in revived:
        if n not in deleted:  # what goes as well must not be indexed again
            fragments.reindex(db, n)
    # The children of deleted fragments become roots, and what is below them is lifted.
    orphans = db.column(
        "SELECT target_n FROM edges WHERE kind = 'hierarchical'"
        f" AND {among('source_n', 'ns')} ORDER BY target_n",
        ns=int_array(ns),
    )
    for orphan in orphans:
        if orphan not in deleted:
            reversible_changes.set_depths(db, orphan, 0)
    quoting = replacements.remove_forgotten(db, ns)
    db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=int_array(ns))
    return quoting


def _clean_links(db: Connection, needle: str) -> None:
    """Delete the links that contain a text which no item has in one piece.

    Their items are not judged again: the same text would come back.
    """
    for column in ("older_text", "newer_text"):
        for place in _rows_with_text(db, "replacements", ("n",), column, needle):
            replacements.drop_link(db, place["n"])


def _delete_sessions_and_projects(db: Connection, doomed: ForgetSelection) -> list[str]:
    ids = []
    for n in doomed.session_ns:
        keywords.remove_session(db, n)
    for table, ns in (("sessions", doomed.session_ns), ("projects", doomed.project_ns)):
        for n in reversed(ns):
            row = db.find(f"DELETE FROM {table} WHERE n = :n RETURNING id", n=n)
            ids += [row[0]] if row else []
    return ids


def _clean_logs(db: Connection, deleted: Mapping[int, str], now: datetime) -> None:
    """Delete log entries that returned or quote what is forgotten, and error texts of jobs."""
    ids = set(deleted.values())
    queries: dict[int, str] = {}
    entry_ns: set[int] = set()
    for n, query, hits, others in db.rows("SELECT n, query, hits, candidates FROM retrievals"):
        if ids.isdisjoint(unpack_json(hits)) and ids.isdisjoint(unpack_json(others)):
            queries[n] = normalize_text(query)
        else:
            entry_ns.add(n)
    for n in entry_ns | find_quoting(queries, _texts_of(db, list(deleted))):
        db.run("DELETE FROM retrievals WHERE n = :n", n=n)
    _clean_tasks(db, _about(db, deleted), now)
    db.run("UPDATE jobs SET last_error = '' WHERE last_error <> ''")


def _clean_tasks(db: Connection, is_forgotten: IsForgotten, now: datetime) -> None:
    """Delete texts from task memory, and keep imports and copies from bringing them back."""
    cleaned = task_tables.clean(db, lambda _since: is_forgotten)
    history.add_tombstones(db, sorted(cleaned.ids), now)
    forgotten_texts.add(db, cleaned.texts, now=now)


def count_task_records(
    db: Connection, selection: ForgetSelection, text: str
) -> tuple[TaskRecordCount, ...]:
    """Count what would be deleted and changed in task memory."""
    needle = normalize_text(text)
    is_about = _about(db, items.ids_of(db, selection.item_ns))
    cleaned = task_tables.clean(
        db,
        lambda _since: lambda one: is_about(one) or bool(needle and needle in normalize_text(one)),
        inside=_inside(selection),
        dry_run=True,
    )
    return tuple(
        TaskRecordCount(record, cleaned.deleted[record], cleaned.changed[record])
        for record in task_tables.TABLES
        if cleaned.deleted[record] or cleaned.changed[record]
    )


def _inside(selection: ForgetSelection) -> dict[str, Sequence[int]]:
    return {"session_n": selection.session_ns, "project_n": selection.project_ns}


def _about(db: Connection, deleted: Mapping[int, str]) -> IsForgotten:
    """Return the test for texts of task memory that name or quote what is forgotten."""
    return task_tables.find_texts_about(
        db, set(deleted.values()), lambda: _texts_of(db, list(deleted)), normalize_text
    )


def _texts_of(db: Connection, ns: Sequence[int]) -> Iterator[str]:
    for start in range(0, len(ns), _BATCH):
        for _, text in _contents(db, ns[start : start + _BATCH]):
            yield normalize_text(text)


_SESSION_NAMES = "s.n, s.id, s.agent, s.external_id, s.title, s.files, s.branch"


def _clean_session_names(db: Connection, doomed: ForgetSelection, now: datetime) -> None:
    """Forget the names of forgotten sessions, and those taken from forgotten messages.

    The transcripts of both are read again when they change: what was read so far contains names.
    """
    rows = db.rows(
        f"SELECT {_SESSION_NAMES} FROM sessions s WHERE {among('s.n', 'ns')}",
        ns=int_array(doomed.session_ns),
    )
    for _, id_, agent, name, title, files, branch in rows:
        session = SessionName(id_, agent, name)
        forgotten_names.add_of_session(db, session, "title", [title], now=now)
        forgotten_names.add_of_session(db, session, "branch", [branch], now=now)
        forgotten_names.add_of_session(db, session, "file", files.split("\n"), now=now)
    sources = watermarks.sources_of(db, doomed.session_ns)
    names = project_rows.names_of_projects(db, doomed.project_ns)
    forgotten_names.add_everywhere(db, [*sources, *names], now=now)
    rows = db.rows(
        f"SELECT DISTINCT {_SESSION_NAMES} FROM messages m"
        f" JOIN sessions s ON s.n = m.session_n WHERE {among('m.n', 'ns')}",
        ns=int_array(doomed.item_ns),
    )
    for n, id_, agent, name, title, files, _ in rows:
        if n not in doomed.session_ns:
            _clean_taken_names(db, n, SessionName(id_, agent, name), title, files, doomed, now)
    watermarks.clear_contexts(db, [row[0] for row in rows])


def _clean_taken_names(
    db: Connection,
    n: int,
    session: SessionName,
    title: str,
    files: str,
    doomed: ForgetSelection,
    now: datetime,
) -> None:
    """Forget the title and the files of a session that come from its forgotten messages."""
    ns = set(db.column("SELECT n FROM messages WHERE session_n = :n", n=n))
    forgotten = list(_texts_of(db, sorted(ns & set(doomed.item_ns))))
    words = set(normalize_text(title).rstrip("…").split()[:_TITLE_WORDS])
    if title and any(words <= set(text.split()) for text in forgotten):
        forgotten_names.add_of_session(db, session, "title", [title], now=now)
        title = ""
    touched = _quoted_in(forgotten, filter(None, files.split("\n")))
    if touched:
        touched -= _quoted_in(_texts_of(db, sorted(ns - set(doomed.item_ns))), touched)
        forgotten_names.add_of_session(db, session, "file", touched, now=now)
    _set_names(db, n, title, [file for file in files.split("\n") if file not in touched])


def _quoted_in(texts: Iterable[str], names: Iterable[str]) -> set[str]:
    """Return the names that occur in a text, as they are or as JSON writes them."""
    written = {
        name: {normalize_text(name), normalize_text(pack_json(name)[1:-1])} for name in names
    }
    quoted: set[str] = set()
    for text in texts:
        quoted |= {name for name, forms in written.items() if any(form in text for form in forms)}
    return quoted


def _set_names(db: Connection, n: int, title: str, files: Sequence[str]) -> None:
    db.update("sessions", n, title=title, files="\n".join(files))
    keywords.index_session(db, n)


def _clean_text(db: Connection, needle: str, now: datetime) -> None:
    """Delete a text from all tables beside the items; names that contain it are forgotten."""
    for table, key, column in _TEXT_COLUMNS:
        for place in _rows_with_text(db, table, key, column, needle):
            db.run(f"DELETE FROM {table} WHERE {_key_condition(key)}", **place)
    _clean_tasks(db, lambda text: needle in normalize_text(text), now)
    for place in _rows_with_text(db, "edges", _EDGE_KEY, "note", needle):
        db.run(f"UPDATE edges SET note = '' WHERE {_key_condition(_EDGE_KEY)}", **place)
    for column in ("context", "problem"):
        for place in _rows_with_text(db, "watermarks", ("source",), column, needle):
            db.run(f"UPDATE watermarks SET {column} = '' WHERE source = :source", **place)
    names = {name for _, name in _all_names(db) if needle in normalize_text(name)}
    forgotten_names.add_everywhere(db, names, now=now)
    _clean_forgotten_names(db, now)


_NAME_COLUMNS = (
    ("spend", "model"),
    ("spend_reservations", "model"),
    ("access_keys", "name"),
    ("aliases", "id"),
)
"""Names beside those of sessions and transcripts."""


def _all_names(db: Connection) -> Iterator[tuple[str, str]]:
    """Yield all names that can be forgotten, with the column they are in."""
    for table, column in _NAME_COLUMNS:
        for name in db.column(f"SELECT DISTINCT {column} FROM {table} WHERE {column} <> ''"):
            yield f"{table}.{column}", name
    for source in watermarks.sources(db):
        yield "watermarks.source", source
    for agent, *names, files in db.rows(
        "SELECT agent, title, branch, external_id, files FROM sessions"
    ):
        for name in filter(None, (agent, *names, *files.split("\n"))):
            yield "sessions", name


def _clean_forgotten_names(db: Connection, now: datetime) -> None:
    """Clear every name that was forgotten, here or in the memory that tombstones come from."""
    names = list(_all_names(db))
    forgotten = forgotten_names.find(db, {name for _, name in names})
    for place, name in names:
        table, _, column = place.partition(".")
        if name not in forgotten:
            continue
        if table == "watermarks":
            watermarks.hide(db, name)
        elif table == "aliases":
            db.run("DELETE FROM aliases WHERE id = :name", name=name)
        elif column:
            db.run(f"UPDATE {table} SET {column} = '' WHERE {column} = :name", name=name)
    for n, id_, agent, name, title, files, branch in db.rows(
        f"SELECT {_SESSION_NAMES} FROM sessions s"
    ):
        own = tuple(files.split("\n")) if files else ()
        visible = forgotten_names.visible(db, agent, name, title=title, branch=branch, files=own)
        if visible.branch != branch:
            db.update("sessions", n, branch=visible.branch)
        if (visible.title, visible.files) != (title, own):
            _set_names(db, n, visible.title, visible.files)
        if forgotten_names.stored_name(db, agent, name) != (agent, name) or name in forgotten:
            _rename(db, n, SessionName(id_, agent, name), now)


def _rename(db: Connection, n: int, session: SessionName, now: datetime) -> None:
    """Replace the agent's own name of a session by its id, and a forgotten agent by none."""
    forgotten_names.add_of_session(db, session, "session", [session.name], now=now)
    agent = "" if forgotten_names.find(db, [session.agent]) else session.agent
    db.update("sessions", n, agent=agent, external_id=session.id)


_EDGE_KEY = ("source_n", "target_n", "kind")

_TEXT_COLUMNS = (
    ("retrievals", ("n",), "query"),
    ("steps", ("n",), "note"),
    ("jobs", ("n",), "subject"),
    ("staged_turns", ("n",), "body"),
    ("session_states", ("session_n", "name"), "value"),
    ("sync_pending", ("kind", "key"), "body"),
)
"""Tables whose rows are deleted when they contain the text, with their keys."""


def _rows_with_text(
    db: Connection, table: str, key: Sequence[str], column: str, needle: str
) -> list[dict[str, Any]]:
    rows = db.rows(f"SELECT {column}, {', '.join(key)} FROM {table} WHERE {column} <> ''")
    return [
        dict(zip(key, place, strict=True))
        for text, *place in rows
        if needle in normalize_text(text) or needle in normalize_text(_decode(text))
    ]


def _decode(text: str) -> str:
    """Return the texts in a JSON text, in which quotes and line ends are escaped."""
    if text[:1] not in ("{", "["):
        return ""
    try:
        return "\n".join(_texts_in(orjson.loads(text)))
    except ValueError:
        return ""


def _texts_in(tree: object) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _texts_in(key)
            yield from _texts_in(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts_in(value)


def _key_condition(key: Sequence[str]) -> str:
    return " AND ".join(f"{name} = :{name}" for name in key)


class ForgottenAt(NamedTuple):
    """Numbers of items, sessions and projects that were forgotten elsewhere, with the times."""

    items: Mapping[int, int] = MappingProxyType({})
    sessions: Mapping[int, int] = MappingProxyType({})
    projects: Mapping[int, int] = MappingProxyType({})

    @property
    def selection(self) -> ForgetSelection:
        """Return what to forget, without the times."""
        items_, sessions_, projects = (tuple(sorted(one)) for one in self)
        return ForgetSelection(items_, sessions_, projects)


def apply_tombstones(
    db: Connection, tombstones: Mapping[str, Tombstone], *, now: datetime
) -> list[str]:
    """Forget again what a copy brings back."""
    # They come first: what is forgotten now keeps the time at which it was forgotten.
    forgotten_texts.put(db, tombstones)
    named = ForgottenAt(
        _times_by_number(tombstones, partial(items.find_number, db)),
        _times_by_number(tombstones, partial(_find_number, db, "sessions")),
        _times_by_number(tombstones, partial(_find_number, db, "projects")),
    )
    deleted = forget_at(db, named, now=now)
    task_tables.delete_ids(db, list(tombstones))
    if forgotten_since := forgotten_texts.read_tombstones(tombstones):
        task_tables.clean(db, forgotten_since)
    if forgotten_names.has_any(tombstones):
        _clean_forgotten_names(db, now)
    return deleted


def _find_number(db: Connection, table: str, id_: str) -> int | None:
    return db.number(f"SELECT n FROM {table} WHERE id = :id", id=id_)


def _times_by_number(
    tombstones: Mapping[str, Tombstone], find: Callable[[str], int | None]
) -> dict[int, int]:
    numbers = ((find(id_), one.us) for id_, one in tombstones.items())
    return {n: us for n, us in numbers if n is not None}


def forget_at(db: Connection, forgotten: ForgottenAt, *, now: datetime) -> list[str]:
    """Forget what was forgotten elsewhere; return the ids that were deleted.

    No tombstone may be later than its cause: a session that went on since would be forgotten by it.
    So each session has the time of its own cause, and the rest that of the first one.
    """
    times = [us for one in forgotten for us in one.values()]
    if not times:
        return []
    session_us: dict[int, int] = {}
    for us in sorted({*forgotten.sessions.values(), *forgotten.projects.values()}):
        chosen = ForgetSelection(
            session_ns=tuple(n for n, own in forgotten.sessions.items() if own == us),
            project_ns=tuple(n for n, own in forgotten.projects.items() if own == us),
        )
        session_us |= dict.fromkeys(expand_selection(db, chosen).session_ns, us)
    sources = session_sources(db, list(session_us))
    sql = f"SELECT n, id FROM sessions WHERE {among('n', 'ns')}"
    rows = db.rows(sql, ns=int_array(list(session_us)))
    history.put_tombstones(db, {i: Tombstone(sources[i], session_us[n]) for n, i in rows})
    return forget(db, forgotten.selection, now=now, at=clock.from_us(min(times)))


_IN_PROJECT = "(:project_n IS NULL OR i.project_n = :project_n)"


def fragments_by_origin(db: Connection, origin: str, *, project_n: int | None) -> set[int]:
    """Return the fragments of an origin."""
    sql = (
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE f.origin = :origin AND {_IN_PROJECT}"
    )
    return set(db.column(sql, origin=origin, project_n=project_n))


def messages_with_origin(
    db: Connection, origin: str, *, project_n: int | None
) -> Iterator[tuple[int, Origin, tuple[Part, ...]]]:
    """Yield the messages that may contain parts of an origin, with their parts."""
    sql = (
        "SELECT m.n, m.origin, m.parts FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE {_IN_PROJECT} AND (m.origin = :origin OR {may_have_other_origins('m.parts')})"
    )
    rows = db.rows(sql, origin=origin, project_n=project_n)
    yield from ((n, of_message, unpack_parts(parts)) for n, of_message, parts in rows)


def tool_call_messages(
    db: Connection, text: str, *, project_n: int | None
) -> Iterator[tuple[int, int, tuple[Part, ...]]]:
    """Yield the messages with tool calls that contain a name, with session and parts."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    sql = (
        "SELECT m.n, m.session_n, m.parts FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE {_IN_PROJECT} AND m.parts LIKE :pattern ESCAPE '\\'"
        f" AND {has_part_kind('m.parts', 'tool_call')}"
    )
    rows = db.rows(sql, pattern=f"%{escaped}%", project_n=project_n)
    yield from ((n, session_n, unpack_parts(parts)) for n, session_n, parts in rows)


def tool_result_messages(
    db: Connection, session_ns: Iterable[int]
) -> Iterator[tuple[int, int, tuple[Part, ...]]]:
    """Yield the messages of sessions that contain tool results, with session and parts."""
    rows = db.rows(
        "SELECT n, session_n, parts FROM messages"
        f" WHERE {among('session_n', 'ns')} AND {has_part_kind('parts', 'tool_result')}",
        ns=int_array(sorted(session_ns)),
    )
    yield from ((n, session_n, unpack_parts(parts)) for n, session_n, parts in rows)


def live_fragments(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return those of the items that are fragments and not deleted."""
    return db.column(
        f"SELECT n FROM fragments WHERE {among('n', 'ns')} AND deleted_at IS NULL ORDER BY n",
        ns=int_array(ns),
    )


def contents_of_session(db: Connection, session_n: int) -> tuple[set[int], set[int]]:
    """Return the messages and the fragments of a session, its subagents and its forks."""
    session_ns = select_session(db, session_n).session_ns
    sql = f"SELECT type, n FROM items WHERE {among('session_n', 'ns')}"
    members: dict[ItemType, set[int]] = {type_: set() for type_ in ITEM_TYPES}
    for number, n in db.rows(sql, ns=int_array(session_ns)):
        members[items.type_name(number)].add(n)
    return members["message"], members["fragment"]
