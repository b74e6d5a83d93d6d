"""Counters that show which tables changed, also by other processes; each is one quick lookup."""

from __future__ import annotations

from typing import NamedTuple

from lore.records import ITEM_TYPES, ChangedTable
from lore.store import items
from lore.store.sql_connection import Connection

_TABLES: dict[ChangedTable, str] = {
    "messages": "SELECT max(n) FROM messages",
    "sessions": "SELECT max(n) FROM sessions",
    "projects": "SELECT max(n) FROM projects",
    "actions": "SELECT max(n), (SELECT value FROM meta WHERE key = 'undo_changes') FROM actions",
    "cycles": "SELECT n, ended_at, undone_at, length(report) FROM cycles ORDER BY n DESC LIMIT 1",
    "jobs": "SELECT count(*), max(updated_at), sum(progress) FROM jobs WHERE state <> 'done'",
    "spend": "SELECT max(n), (SELECT count(*) FROM spend_reservations) FROM spend",
    "review": "SELECT max(n), (SELECT max(n) FROM standing), (SELECT value FROM meta"
    " WHERE key = 'standing_changes') FROM replacements",
    "tasks": "SELECT max(n), (SELECT max(ended_at) FROM tasks) FROM tasks",
    "handoffs": "SELECT max(n), count(read_at), (SELECT max(updated_at) FROM agent_ledgers)"
    " FROM handoffs",
}  # fmt: skip
"""What a change of each table alters."""

_CHANGED_TYPES: dict[str, ChangedTable] = {
    "message": "messages",
    "distillation": "distillations",
    "fragment": "fragments",
}
_MOST_CHANGES = 1_000
"""Entries of the change log that are looked into; more say that everything changed."""


class ChangeCounters(NamedTuple):
    """The state of the tables at a moment."""

    seq: int
    tables: dict[ChangedTable, tuple[object, ...]]


def read_counters(db: Connection) -> ChangeCounters:
    """Return the present counters."""
    seq = db.value("SELECT coalesce(max(seq), 0) FROM changes")
    return ChangeCounters(int(seq), {name: db.find(sql) or () for name, sql in _TABLES.items()})


def find_changed(
    db: Connection, before: ChangeCounters, now: ChangeCounters
) -> tuple[ChangedTable, ...]:
    """Return the names of the tables that changed between two readings, in order."""
    changed = {name for name, value in now.tables.items() if value != before.tables[name]}
    if "messages" in changed:
        changed.add("sessions")
    if now.seq != before.seq:
        changed |= _changed_types(db, before.seq)
    return tuple(sorted(changed))


def _changed_types(db: Connection, seq: int) -> set[ChangedTable]:
    rows = db.rows(
        "SELECT DISTINCT i.type FROM (SELECT first_n FROM changes WHERE seq > :seq"
        " ORDER BY seq DESC LIMIT :most) c LEFT JOIN items i ON i.n = c.first_n",
        seq=seq,
        most=_MOST_CHANGES,
    )
    types = {type_ for (type_,) in rows}
    if None in types:  # forgotten: nothing says what it was
        return {_CHANGED_TYPES[name] for name in ITEM_TYPES}
    return {_CHANGED_TYPES[items.type_name(type_)] for type_ in types}
