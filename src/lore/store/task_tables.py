"""The tables of task memory: how they are created, exported, imported and cleaned of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from lore.store import forgotten_texts
from lore.store.forgotten_texts import ForgottenSince
from lore.store.sql_connection import ROW_NUMBER, Connection, among, id_text, int_array, text_array
from lore.store.task_texts import IsForgotten, cut_texts, has_text, read_texts
from lore.text.words import find_quoting

_SESSION = "session_n INTEGER REFERENCES sessions (n) ON DELETE CASCADE"
_PROJECT = "project_n INTEGER REFERENCES projects (n) ON DELETE CASCADE"
_TASK = "task_n INTEGER REFERENCES tasks (n) ON DELETE CASCADE"

SCHEMA = f"""\
CREATE TABLE tasks (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    {_SESSION},
    {_PROJECT},
    episode_n INTEGER REFERENCES fragments (n) ON DELETE CASCADE,
    name TEXT NOT NULL,
    agent TEXT NOT NULL,
    goal TEXT NOT NULL,
    phase TEXT NOT NULL,
    action TEXT NOT NULL,
    type TEXT NOT NULL,
    profile TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    body TEXT NOT NULL DEFAULT '{{}}');
CREATE INDEX tasks_session ON tasks (session_n);
CREATE INDEX tasks_project ON tasks (project_n, started_at);
CREATE INDEX tasks_episode ON tasks (episode_n);
CREATE TABLE task_memories (
    n {ROW_NUMBER},
    task_n INTEGER NOT NULL REFERENCES tasks (n) ON DELETE CASCADE,
    item_n INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
    given_as TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    used INTEGER,
    sign TEXT NOT NULL DEFAULT '',
    helped INTEGER,
    at INTEGER NOT NULL,
    UNIQUE (task_n, item_n));
CREATE INDEX task_memories_item ON task_memories (item_n);
CREATE TABLE working_states (
    n {ROW_NUMBER},
    session_n INTEGER NOT NULL UNIQUE REFERENCES sessions (n) ON DELETE CASCADE,
    body TEXT NOT NULL,
    updated_at INTEGER NOT NULL);
CREATE TABLE agent_ledgers (
    n {ROW_NUMBER},
    {_PROJECT},
    agent TEXT NOT NULL,
    body TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (project_n, agent));
CREATE TABLE handoffs (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    {_SESSION},
    {_PROJECT},
    from_agent TEXT NOT NULL,
    to_agent TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    read_at INTEGER);
CREATE INDEX handoffs_session ON handoffs (session_n);
CREATE INDEX handoffs_project ON handoffs (project_n, created_at);
CREATE TABLE task_metrics (
    n {ROW_NUMBER},
    {_TASK},
    {_SESSION},
    {_PROJECT},
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value REAL,
    body TEXT NOT NULL DEFAULT '{{}}',
    at INTEGER NOT NULL,
    UNIQUE (task_n, kind, name));
CREATE INDEX task_metrics_session ON task_metrics (session_n);
CREATE INDEX task_metrics_project ON task_metrics (project_n, at);
CREATE TABLE token_economics (
    n {ROW_NUMBER},
    {_SESSION},
    {_TASK},
    {_PROJECT},
    body TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (session_n, task_n));
CREATE INDEX token_economics_task ON token_economics (task_n);
CREATE INDEX token_economics_project ON token_economics (project_n);
CREATE TABLE economics_actions (
    n {ROW_NUMBER},
    {_SESSION},
    {_PROJECT},
    metric TEXT NOT NULL,
    action TEXT NOT NULL,
    value REAL NOT NULL,
    value_after REAL,
    body TEXT NOT NULL DEFAULT '{{}}',
    at INTEGER NOT NULL,
    UNIQUE (session_n, metric, at));
CREATE INDEX economics_actions_project ON economics_actions (project_n, at);
CREATE TABLE profiles (
    n {ROW_NUMBER},
    name TEXT NOT NULL UNIQUE,
    weights TEXT NOT NULL,
    source TEXT NOT NULL,
    is_active INTEGER NOT NULL,
    share REAL NOT NULL,
    successes REAL NOT NULL DEFAULT 0,
    failures REAL NOT NULL DEFAULT 0,
    body TEXT NOT NULL DEFAULT '{{}}',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL);
CREATE TABLE profile_days (
    n {ROW_NUMBER},
    profile TEXT NOT NULL,
    day TEXT NOT NULL,
    share REAL NOT NULL,
    successes REAL NOT NULL DEFAULT 0,
    failures REAL NOT NULL DEFAULT 0,
    UNIQUE (profile, day));
CREATE TABLE session_profiles (
    n {ROW_NUMBER},
    session_n INTEGER NOT NULL UNIQUE REFERENCES sessions (n) ON DELETE CASCADE,
    profile TEXT NOT NULL,
    outcome TEXT NOT NULL DEFAULT '',
    at INTEGER NOT NULL);
CREATE TABLE layout_files (
    n {ROW_NUMBER},
    {_PROJECT},
    path TEXT NOT NULL,
    body TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (project_n, path));
ALTER TABLE fragments ADD COLUMN archived_at INTEGER;
CREATE INDEX fragments_archived ON fragments (n) WHERE archived_at IS NOT NULL;
ALTER TABLE retrievals ADD COLUMN {_SESSION};
ALTER TABLE retrievals ADD COLUMN {_TASK};
ALTER TABLE retrievals ADD COLUMN task_type TEXT NOT NULL DEFAULT '';
ALTER TABLE retrievals ADD COLUMN profile TEXT NOT NULL DEFAULT '';
ALTER TABLE retrievals ADD COLUMN candidates TEXT NOT NULL DEFAULT '[]';
ALTER TABLE retrievals ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE retrievals ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
CREATE INDEX retrievals_session ON retrievals (session_n);
CREATE INDEX retrievals_task ON retrievals (task_n)"""
"""An archived fragment is shown on request only. `layout_files` keeps what an imported file layout
holds beside memories, to write it again."""


class Reference(NamedTuple):
    """A column that refers to another table by its number; exports have the id."""

    column: str
    table: str
    is_required: bool = False

    @property
    def name(self) -> str:
        """Return the name of the id in an export."""
        return f"{self.column.removesuffix('_n')}_id"


class TaskTable(NamedTuple):
    """A table of task memory: what it refers to, its columns, and which of these are texts."""

    table: str
    references: tuple[Reference, ...]
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    dated_by: str = ""
    """The column that says when a record was made, or 'session' for the start of its session."""

    @property
    def made_at_sql(self) -> str:
        """Return the expression for when a row was made; 0 if the table does not say it."""
        if self.dated_by == _SESSION_START:
            return "(SELECT s.started_at FROM sessions s WHERE s.n = session_n)"
        return self.dated_by or "0"


_SESSION_START = "session"


_BY_SESSION = Reference("session_n", "sessions")
_BY_PROJECT = Reference("project_n", "projects")
_BY_TASK = Reference("task_n", "tasks")

TABLES: Mapping[str, TaskTable] = {
    "task": TaskTable(
        "tasks",
        (_BY_SESSION, _BY_PROJECT, Reference("episode_n", "items")),
        (
            "id", "name", "agent", "goal", "phase", "action", "type", "profile", "state",
            "outcome", "reason", "started_at", "ended_at", "body",
        ),
        ("name", "agent", "goal", "phase", "action", "profile", "reason", "body"),
        "started_at",
    ),
    "task_memory": TaskTable(
        "task_memories",
        (_BY_TASK._replace(is_required=True), Reference("item_n", "items", is_required=True)),
        ("given_as", "tokens", "used", "sign", "helped", "at"),
        (),
    ),
    "working_state": TaskTable(
        "working_states", (_BY_SESSION._replace(is_required=True),), ("body", "updated_at"),
        ("body",), _SESSION_START,
    ),
    "agent_ledger": TaskTable(
        "agent_ledgers", (_BY_PROJECT,), ("agent", "body", "updated_at"), ("agent", "body")
    ),
    "handoff": TaskTable(
        "handoffs",
        (_BY_SESSION, _BY_PROJECT),
        ("id", "from_agent", "to_agent", "body", "created_at", "read_at"),
        ("id", "from_agent", "to_agent", "body"),
        "created_at",
    ),
    "task_metric": TaskTable(
        "task_metrics",
        (_BY_TASK, _BY_SESSION, _BY_PROJECT),
        ("kind", "name", "value", "body", "at"),
        ("name", "body"),
    ),
    "token_economics": TaskTable(
        "token_economics", (_BY_SESSION, _BY_TASK, _BY_PROJECT), ("body", "updated_at"), ("body",)
    ),
    "economics_action": TaskTable(
        "economics_actions",
        (_BY_SESSION, _BY_PROJECT),
        ("metric", "action", "value", "value_after", "body", "at"),
        ("body",),
    ),
    "profile": TaskTable(
        "profiles",
        (),
        (
            "name", "weights", "source", "is_active", "share", "successes", "failures", "body",
            "created_at", "updated_at",
        ),
        ("name", "weights", "source", "body"),
    ),
    "profile_day": TaskTable(
        "profile_days", (), ("profile", "day", "share", "successes", "failures"), ("profile",)
    ),
    "session_profile": TaskTable(
        "session_profiles", (_BY_SESSION._replace(is_required=True),),
        ("profile", "outcome", "at"), ("profile",),
    ),
    "layout_file": TaskTable(
        "layout_files", (_BY_PROJECT,), ("path", "body", "at"), ("path", "body")
    ),
}  # fmt: skip
"""The tables by the name of their records in an export, in the order of loading."""


def create(db: Connection) -> None:
    """Create the tables, and the columns of the retrieval log."""
    for statement in SCHEMA.split(";\n"):
        db.rows(statement)


def dump_query(record: str) -> tuple[tuple[str, ...], str]:
    """Return the names and the query of a record for an export."""
    spec = TABLES[record]
    selected, joins = [], []
    for reference in spec.references:
        other = f"r_{reference.column}"
        selected.append(id_text(f"{other}.id") if reference.table == "items" else f"{other}.id")
        joins.append(f" LEFT JOIN {reference.table} {other} ON {other}.n = t.{reference.column}")
    selected += [f"t.{column}" for column in spec.columns]
    sql = f"SELECT {', '.join(selected)} FROM {spec.table} t{''.join(joins)} ORDER BY t.n"
    return (*(reference.name for reference in spec.references), *spec.columns), sql


def load_row(
    db: Connection, line: Mapping[str, Any], number: Callable[[str, str | None], int | None]
) -> bool:
    """Load a record without what was forgotten, unless it exists or goes as a whole."""
    spec = TABLES[line["record"]]
    row = {name: line[name] for name in spec.columns}
    ns = {one.column: number(one.table, line[one.name]) for one in spec.references}
    sql = "SELECT started_at FROM sessions WHERE n = :n"
    since_us = made_at(line["record"], row, db.number(sql, n=ns.get("session_n")))
    texts = [row[name] for name in spec.texts]
    left, _ = cut_row(line["record"], row, forgotten_texts.find(db, texts, since_us=since_us))
    if left is None:
        return False
    for one in spec.references:
        if ns[one.column] is None and (one.is_required or line[one.name] is not None):
            return False
    values = left
    same = " AND ".join(f"{name} = :{name}" for name in (*ns, *values) if (ns | values)[name])
    # A unique key with a NULL in it never conflicts.
    known = {name: value for name, value in (ns | values).items() if value}
    if same and db.find(f"SELECT 1 FROM {spec.table} WHERE {same}", **known):
        return False
    return db.insert_unless_exists(spec.table, **values, **ns)


def made_at(record: str, row: Mapping[str, Any], session_started_at: int | None) -> int:
    """Return when a record was made: a text that was forgotten before then is said anew in it."""
    dated_by = TABLES[record].dated_by
    at = session_started_at if dated_by == _SESSION_START else row.get(dated_by)
    return int(at or 0)


def delete_ids(db: Connection, ids: Sequence[str]) -> None:
    """Delete the tasks and handoffs with these ids."""
    for table in _WITH_ID if ids else ():
        db.run(f"DELETE FROM {table} WHERE {among('id', 'ids')}", ids=text_array(ids))


def ids_inside(db: Connection, inside: Mapping[str, Sequence[int]]) -> set[str]:
    """Return the ids of the tasks and handoffs of sessions and projects, by column."""
    ids: set[str] = set()
    for table in _WITH_ID:
        for column, ns in inside.items():
            sql = f"SELECT id FROM {table} WHERE {among(column, 'ns')}"
            ids.update(db.column(sql, ns=int_array(ns)))
    return {id_ for id_ in ids if _ID.fullmatch(id_)}


class Cleaned(NamedTuple):
    """What was forgotten: deleted and changed rows by record, ids of deleted ones, and texts."""

    deleted: Counter[str]
    changed: Counter[str]
    ids: set[str]
    texts: set[str]


_WITH_ID = ("tasks", "handoffs")

_CUT = ("handoff", "working_state", "layout_file")
"""Records that hold many things: only what is forgotten goes from their bodies."""

_TEXT_FIELDS = (
    "what_was_done", "needs_testing", "known_issues", "relevant_patterns", "next", "decisions",
)  # fmt: skip
"""Fields with the texts of a handoff: one in which all are empty goes as a whole."""

_REPORTED_RECORDS = ("task", "agent_ledger", *_CUT)
"""Records that the result of forgetting counts if they go with their session or project."""

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def clean(
    db: Connection,
    forgotten_since: ForgottenSince,
    *,
    inside: Mapping[str, Sequence[int]] = MappingProxyType({}),
    dry_run: bool = False,
) -> Cleaned:
    """Delete the rows with a text that is forgotten; handoffs, states and files lose only that.

    Rows inside of sessions and projects that are forgotten, by column, count as deleted.
    """
    cleaned = Cleaned(Counter(), Counter(), set(), set())
    for record, spec in TABLES.items():
        ns = _rows_inside(db, spec, inside)
        if ns and record in _REPORTED_RECORDS:
            cleaned.deleted[record] += len(ns)
        if spec.texts:
            _clean_table(db, record, forgotten_since, cleaned, without=ns, dry_run=dry_run)
    return cleaned


def _rows_inside(db: Connection, spec: TaskTable, inside: Mapping[str, Sequence[int]]) -> set[int]:
    columns = [one.column for one in spec.references if inside.get(one.column)]
    ns: set[int] = set()
    for column in columns:
        sql = f"SELECT n FROM {spec.table} WHERE {among(column, 'ns')}"
        ns.update(db.column(sql, ns=int_array(inside[column])))
    return ns


def _clean_table(
    db: Connection,
    record: str,
    forgotten_since: ForgottenSince,
    cleaned: Cleaned,
    *,
    without: set[int],
    dry_run: bool,
) -> None:
    spec = TABLES[record]
    own = "id" if "id" in spec.columns else "''"
    sql = f"SELECT n, {own}, {spec.made_at_sql}, {', '.join(spec.texts)} FROM {spec.table}"
    for n, id_, since_us, *row in db.rows(sql):
        if n in without:
            continue
        stored = dict(zip(spec.texts, row, strict=True))
        left, texts = cut_row(record, stored, forgotten_since(since_us))
        if not texts:
            continue
        cleaned.texts.update(texts)
        if left is not None:
            cleaned.changed[record] += 1
        else:
            cleaned.deleted[record] += 1
            cleaned.ids.update(_ID.findall(id_))
        if not dry_run and left is not None:
            db.update(spec.table, n, **left)
        elif not dry_run:
            db.run(f"DELETE FROM {spec.table} WHERE n = :n", n=n)


def cut_row(
    record: str, row: Mapping[str, Any], is_forgotten: IsForgotten
) -> tuple[dict[str, Any] | None, set[str]]:
    """Return a row without what is forgotten, None if all of it goes, and the forgotten texts."""
    left: dict[str, Any] | None = dict(row)
    texts: set[str] = set()
    for column in TABLES[record].texts:
        value, cut = cut_texts(row[column], is_forgotten)
        texts |= cut
        is_whole = value is None or column != "body" or record not in _CUT
        if cut and (is_whole or (record == "handoff" and not has_text(value or "", _TEXT_FIELDS))):
            left = None
        elif left is not None:
            left[column] = value
    return left, texts


def find_texts_about(
    db: Connection,
    ids: set[str],
    texts: Callable[[], Iterable[str]],
    normalize: Callable[[str], str],
) -> IsForgotten:
    """Return the test for texts that name one of the ids or quote one of the texts."""
    stored = list(_texts(db))

    def find(shorts: Mapping[int, str]) -> set[int]:
        naming = {i for i, one in shorts.items() if not ids.isdisjoint(_ID.findall(one))}
        return naming | find_quoting({i: shorts[i] for i in shorts if i not in naming}, texts())

    whole = {i: normalize("\n".join(read_texts(text))) for i, text in enumerate(stored)}
    parts: list[str] = []

    def collect(text: str) -> bool:
        parts.append(text)
        return False

    for i in find(whole) if whole else ():
        cut_texts(stored[i], collect)
    matches = find({i: normalize(text) for i, text in enumerate(parts)}) if parts else ()
    return {parts[i] for i in matches}.__contains__


def _texts(db: Connection) -> Iterable[str]:
    """Yield all stored texts."""
    for spec in TABLES.values():
        for column in spec.texts:
            sql = f"SELECT {column} FROM {spec.table} WHERE {column} NOT IN ('', '{{}}')"
            yield from db.column(sql)
