"""What sync exchanges of task memory: tasks, handoffs and working states of sessions.

Each is one value, and the later change of two holds. What measures the work of one machine (tokens,
metrics, which memory helped) stays there, and so does how far a session was read there. So do
ledgers, which say what an agent there does now, and what was imported from a folder of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lore.store.codec import pack_json, unpack_json
from lore.store.layout_rows import LAYOUT
from lore.store.sql_connection import Connection, Row, id_text, json_field
from lore.store.sync_shapes import (
    SESSION_COLUMNS,
    SESSION_FROM,
    KindReader,
    StoredRecord,
    SyncKind,
    make_project,
    make_references,
    make_session,
    project_key,
    session_identity,
    session_key,
)
from lore.store.task_tables import TABLES

TaskKind = Literal["task", "handoff", "working_state"]

TASK_KINDS: tuple[TaskKind, ...] = ("task", "handoff", "working_state")

_CHANGED: Mapping[TaskKind, tuple[str, ...]] = {
    "task": ("ended_at", "started_at"),
    "handoff": ("read_at", "created_at"),
    "working_state": ("updated_at",),
}
"""The columns with the time of the last change, the first that is filled."""

_OWN: Mapping[TaskKind, frozenset[str]] = {
    "task": frozenset(),
    "handoff": frozenset({LAYOUT}),
    "working_state": frozenset({"read_to", "task_from"}),
}
"""What of a body is of one machine: the file it was imported from, and places in a session."""

_UUID = "t.id LIKE '________-____-____-____-____________'"
_HAS_NO_FILE = f"{json_field('t.body', LAYOUT)} IS NULL"
_CONDITIONS: Mapping[TaskKind, str] = {
    "task": _UUID,
    "handoff": f"{_UUID} AND {_HAS_NO_FILE}",
    "working_state": "s.n IS NOT NULL",
}


def columns(kind: TaskKind) -> tuple[str, ...]:
    """Return the columns of a record that travel; its id is its key."""
    return tuple(name for name in TABLES[kind].columns if name != "id")


def without_own(kind: TaskKind, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body without what is of one machine."""
    return {name: value for name, value in body.items() if name not in _OWN[kind]}


def _select(kind: TaskKind) -> str:
    has = {reference.column for reference in TABLES[kind].references}
    own_id = "t.id" if kind != "working_state" else "''"
    number = "t.session_n" if kind == "working_state" else "t.n"
    episode = id_text("e.id") if "episode_n" in has else "NULL"
    session = "s.n = t.session_n" if "session_n" in has else "s.n IS NULL"
    project = "o.n = t.project_n" if "project_n" in has else "o.n IS NULL"
    joins = f"LEFT JOIN sessions s ON {session} {SESSION_FROM} LEFT JOIN projects o ON {project}"
    if "episode_n" in has:
        joins += " LEFT JOIN items e ON e.n = t.episode_n"
    listed = ", ".join(f"t.{name}" for name in columns(kind))
    return (
        f"SELECT {number}, {own_id}, {episode}, o.path, o.remote, o.name, {SESSION_COLUMNS},"
        f" {listed} FROM {TABLES[kind].table} t {joins} WHERE {_CONDITIONS[kind]} AND"
    )


def _make_record(kind: TaskKind, row: Row) -> StoredRecord:
    n, own_id, episode = row[:3]
    project, session = make_project(*row[3:6]), make_session(row[6:13])
    value: dict[str, Any] = dict(zip(columns(kind), row[13:], strict=True))
    value["body"] = without_own(kind, unpack_json(value["body"]))
    value |= {"project": project_key(project), "session": session_key(session)}
    if kind == "task":
        value["episode"] = episode
    key = identity = own_id
    if kind == "working_state" and session is not None:
        key, identity = session.id, session_identity(session.agent, session.external_id)
    at = next(value[name] for name in _CHANGED[kind] if value[name] is not None)
    references = make_references(project=project, session=session)
    return StoredRecord(kind, key, n, {"self": (value, at)}, references, identity)


def _reader(kind: TaskKind) -> KindReader:
    number = "t.session_n" if kind == "working_state" else "t.n"
    return KindReader(_select(kind), "ORDER BY t.n", lambda row: _make_record(kind, row), number)


READERS: Mapping[SyncKind, KindReader] = {kind: _reader(kind) for kind in TASK_KINDS}


def find_row(db: Connection, kind: TaskKind, key: str) -> int | None:
    """Return the number of a task or a handoff by its id, or None."""
    return db.number(f"SELECT n FROM {TABLES[kind].table} WHERE id = :id", id=key)


def put_row(db: Connection, kind: TaskKind, key: str, n: int | None, row: Mapping[str, Any]) -> int:
    """Store a record, or replace the one that is there; return its number."""
    table = TABLES[kind].table
    own: Mapping[str, Any] = {}
    if kind == "working_state":
        stored = f"SELECT body FROM {table} WHERE session_n = :n"
        body = unpack_json(db.value(stored, n=row["session_n"]) or "{}")
        own = {name: value for name, value in body.items() if name in _OWN[kind]}
    packed = {**row, "body": pack_json({**row["body"], **own})}
    if kind == "working_state":
        db.upsert(table, ("session_n",), **packed)
        return int(packed["session_n"])
    stored_n = find_row(db, kind, key) if n is None else n
    if stored_n is None:
        return db.insert_numbered(table, id=key, **packed)
    if kind == "handoff" and n is None:
        # It was imported from a folder here, and is now that of the machine which wrote it.
        packed["read_at"] = packed["read_at"] or db.value(
            f"SELECT read_at FROM {table} WHERE n = :n", n=stored_n
        )
    db.update(table, stored_n, **packed)
    return stored_n


def remove_row(db: Connection, kind: TaskKind, n: int) -> None:
    """Delete a record."""
    column = "session_n" if kind == "working_state" else "n"
    db.run(f"DELETE FROM {TABLES[kind].table} WHERE {column} = :n", n=n)
