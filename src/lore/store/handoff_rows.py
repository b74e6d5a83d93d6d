"""Working states of sessions, ledgers of agents, handoffs, and metrics of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.store import forgotten_texts, history
from lore.store.codec import pack_json, unpack_json, unpack_optional_time, unpack_time
from lore.store.sql_connection import Connection
from lore.store.task_texts import cut_texts


class StateRow(NamedTuple):
    """The working state of a session as it is stored."""

    session_n: int
    body: dict[str, Any]
    updated_at: datetime


def put_working_state(
    db: Connection, session_n: int, body: Mapping[str, Any], *, now: datetime
) -> None:
    """Store the working state of a session, replacing the former one."""
    db.upsert(
        "working_states",
        ("session_n",),
        session_n=session_n,
        body=pack_json(body),
        updated_at=clock.to_us(now),
    )


def find_working_state(db: Connection, session_n: int) -> StateRow | None:
    """Return the working state of a session, or None."""
    sql = "SELECT session_n, body, updated_at FROM working_states WHERE session_n = :n"
    row = db.find(sql, n=session_n)
    return _state(row) if row else None


def recent_working_states(
    db: Connection, project_n: int | None, *, limit: int, without: Sequence[int] = ()
) -> list[StateRow]:
    """Return the states of a project's sessions, the latest first; subagents have none here.

    Without a project they are of sessions that belong to none.
    """
    sql = (
        "SELECT w.session_n, w.body, w.updated_at FROM working_states w"
        " JOIN sessions s ON s.n = w.session_n"
        " WHERE s.project_n IS :project_n AND s.parent_n IS NULL"
        " ORDER BY s.last_message_at DESC, w.n DESC LIMIT :limit"
    )
    rows = db.rows(sql, project_n=project_n, limit=limit + len(without))
    return [_state(row) for row in rows if row[0] not in without][:limit]


def stale_states(db: Connection, *, since: datetime, limit: int) -> list[int]:
    """Return sessions with messages since a time that their working state has not read."""
    sql = (
        "SELECT s.n FROM sessions s LEFT JOIN working_states w ON w.session_n = s.n"
        " WHERE s.last_message_at >= :since AND (w.n IS NULL OR w.updated_at < s.last_message_at)"
        " ORDER BY s.last_message_at DESC LIMIT :limit"
    )
    return db.column(sql, since=clock.to_us(since), limit=limit)


def latest_sessions(db: Connection, project_n: int, *, limit: int) -> list[int]:
    """Return the latest sessions of a project, with or without a state; no subagents."""
    sql = (
        "SELECT n FROM sessions WHERE project_n = :project_n AND parent_n IS NULL"
        " ORDER BY last_message_at DESC, n DESC LIMIT :limit"
    )
    return db.column(sql, project_n=project_n, limit=limit)


def _state(row: Sequence[Any]) -> StateRow:
    return StateRow(row[0], unpack_json(row[1]), unpack_time(row[2]))


class LedgerRow(NamedTuple):
    """The ledger of an agent as it is stored."""

    agent: str
    body: dict[str, Any]
    updated_at: datetime


def put_ledger(
    db: Connection, project_n: int | None, agent: str, body: Mapping[str, Any], *, now: datetime
) -> None:
    """Store the ledger of an agent in a project; fields that are not given stay."""
    former = find_ledger(db, project_n, agent)
    merged = pack_json({**(former.body if former else {}), **body})
    sql = (
        "UPDATE agent_ledgers SET body = :body, updated_at = :at"
        " WHERE project_n IS :project_n AND agent = :agent"
    )
    row = {"project_n": project_n, "agent": agent, "body": merged}
    if not db.run(sql, at=clock.to_us(now), **row):
        db.insert("agent_ledgers", updated_at=clock.to_us(now), **row)


def find_ledger(db: Connection, project_n: int | None, agent: str) -> LedgerRow | None:
    """Return the ledger of an agent in a project, or None."""
    sql = (
        "SELECT agent, body, updated_at FROM agent_ledgers"
        " WHERE project_n IS :project_n AND agent = :agent"
    )
    row = db.find(sql, project_n=project_n, agent=agent)
    return LedgerRow(row[0], unpack_json(row[1]), unpack_time(row[2])) if row else None


def ledgers(
    db: Connection, project_n: int | None, *, limit: int, all_projects: bool = False
) -> list[LedgerRow]:
    """Return the ledgers of a project, the latest first."""
    sql = (
        "SELECT agent, body, updated_at FROM agent_ledgers"
        " WHERE :everywhere OR project_n IS :project_n"
        " ORDER BY updated_at DESC, n DESC LIMIT :limit"
    )
    rows = db.rows(sql, project_n=project_n, everywhere=all_projects, limit=limit)
    return [LedgerRow(row[0], unpack_json(row[1]), unpack_time(row[2])) for row in rows]


class HandoffRow(NamedTuple):
    """A handoff as it is stored."""

    id: str
    session_n: int | None
    project_n: int | None
    from_agent: str
    to_agent: str
    body: dict[str, Any]
    created_at: datetime
    read_at: datetime | None


_HANDOFF = "id, session_n, project_n, from_agent, to_agent, body, created_at, read_at"


def add_handoff(db: Connection, row: HandoffRow) -> None:
    """Store a handoff."""
    db.insert(
        "handoffs",
        id=row.id,
        session_n=row.session_n,
        project_n=row.project_n,
        from_agent=row.from_agent,
        to_agent=row.to_agent,
        body=pack_json(row.body),
        created_at=clock.to_us(row.created_at),
        read_at=clock.to_us(row.read_at) if row.read_at else None,
    )


def handoffs(
    db: Connection,
    project_n: int | None,
    *,
    to_agent: str = "",
    unread: bool = False,
    since: datetime | None = None,
    limit: int = 20,
    all_projects: bool = False,
) -> list[HandoffRow]:
    """Return handoffs of a project, the latest first.

    `to_agent` also gets those that are for any agent.
    """
    sql = (
        f"SELECT {_HANDOFF} FROM handoffs WHERE (:everywhere OR project_n IS :project_n)"
        " AND (:to = '' OR to_agent = :to OR to_agent = '')"
        " AND (NOT :unread OR read_at IS NULL) AND created_at >= :since"
        " ORDER BY created_at DESC, n DESC LIMIT :limit"
    )
    rows = db.rows(
        sql,
        project_n=project_n,
        everywhere=all_projects,
        to=to_agent,
        unread=unread,
        since=clock.to_us(since) if since else 0,
        limit=limit,
    )
    return [_handoff(row) for row in rows]


def get_handoff(
    db: Connection, id_: str, project_n: int | None = None, *, all_projects: bool = False
) -> HandoffRow:
    """Return the handoff of a project by its id, or by eight or more characters of it."""
    escaped = id_.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    sql = (
        f"SELECT {_HANDOFF} FROM handoffs WHERE"
        " (id = :id OR (length(:id) >= 8 AND id LIKE :start ESCAPE '\\'))"
        " AND (:everywhere OR project_n IS :project_n) LIMIT 3"
    )
    named = {"project_n": project_n, "everywhere": all_projects}
    rows = db.rows(sql, id=id_, start=f"{escaped}%", **named) if id_ else []
    exact = [row for row in rows if row[0] == id_]
    if len(exact or rows) > 1:
        msg = f"'{id_[:60]}' is the beginning of several handoffs."
        raise InvalidInput(msg, hint="Give more of the id.")
    if not rows:
        raise NotFound(f"There is no handoff '{id_[:60]}'.", hint="'lore handoff list' lists them.")
    return _handoff((exact or rows)[0])


def has_handoff(db: Connection, id_: str) -> bool:
    """Return whether there is a handoff with exactly this id."""
    return db.find("SELECT 1 FROM handoffs WHERE id = :id", id=id_) is not None


def is_forgotten(db: Connection, id_: str, body: str) -> bool:
    """Return whether a handoff or a ledger was forgotten, or a text of it."""
    _, texts = cut_texts(body, forgotten_texts.find(db, [body]))
    return bool(texts or history.find_tombstones(db, [id_]))


def mark_handoff_read(db: Connection, id_: str, *, now: datetime) -> None:
    """Record that a handoff was read, the first time only."""
    sql = "UPDATE handoffs SET read_at = :at WHERE id = :id AND read_at IS NULL"
    db.run(sql, id=id_, at=clock.to_us(now))


def _handoff(row: Sequence[Any]) -> HandoffRow:
    id_, session_n, project_n, from_agent, to_agent, body, created_at, read_at = row
    return HandoffRow(
        id_,
        session_n,
        project_n,
        from_agent,
        to_agent,
        unpack_json(body),
        unpack_time(created_at),
        unpack_optional_time(read_at),
    )


class MetricRow(NamedTuple):
    """One metric of a task: `kind` is efficiency or reward."""

    task_n: int | None
    session_n: int | None
    project_n: int | None
    kind: str
    name: str
    value: float | None
    body: dict[str, Any]
    at: datetime


def put_metrics(db: Connection, rows: Iterable[MetricRow]) -> None:
    """Store metrics, replacing the former values of the same tasks."""
    for row in rows:
        _put_metric(db, row)


def _put_metric(db: Connection, row: MetricRow) -> None:
    db.run(
        "DELETE FROM task_metrics WHERE task_n = :task_n AND kind = :kind AND name = :name",
        task_n=row.task_n,
        kind=row.kind,
        name=row.name,
    )
    values = row._asdict() | {"body": pack_json(row.body), "at": clock.to_us(row.at)}
    db.insert("task_metrics", **values)


def count_finished_tasks(db: Connection, project_n: int | None, agent: str) -> int:
    """Return how many tasks an agent has ended in a project."""
    sql = (
        "SELECT count(*) FROM tasks WHERE project_n IS :project_n AND agent = :agent"
        " AND state = 'done'"
    )
    return int(db.value(sql, project_n=project_n, agent=agent) or 0)


class FinishedTask(NamedTuple):
    """A task that has ended, as its metrics need it."""

    n: int
    id: str
    session_n: int | None
    project_n: int | None
    agent: str
    type: str
    outcome: str
    reason: str
    started_at: datetime
    ended_at: datetime
    body: dict[str, Any]


def finished_tasks(
    db: Connection, project_n: int | None, *, all_projects: bool, since: datetime
) -> list[FinishedTask]:
    """Return the tasks that ended since a time, the oldest first."""
    sql = (
        "SELECT n, id, session_n, project_n, agent, type, outcome, reason, started_at, ended_at,"
        " body FROM tasks WHERE state = 'done' AND ended_at >= :since"
        " AND (:everything OR project_n IS :project_n) ORDER BY ended_at, n"
    )
    rows = db.rows(sql, everything=all_projects, project_n=project_n, since=clock.to_us(since))
    return [
        FinishedTask(
            n,
            id_,
            session,
            project,
            agent,
            type_,
            outcome,
            reason,
            unpack_time(started),
            unpack_time(ended),
            unpack_json(body),
        )
        for n, id_, session, project, agent, type_, outcome, reason, started, ended, body in rows
    ]


def count_subagents(db: Connection, session_n: int, since: datetime, until: datetime) -> int:
    """Return how many subagents of a session began to work in a time."""
    sql = (
        "SELECT count(*) FROM sessions WHERE parent_n = :n AND started_at >= :since"
        " AND started_at <= :until"
    )
    number = db.value(sql, n=session_n, since=clock.to_us(since), until=clock.to_us(until))
    return int(number or 0)


def open_task(db: Connection, session_n: int) -> str:
    """Return the id of the session's task that has not ended, the latest; '' without one."""
    sql = (
        "SELECT id FROM tasks WHERE session_n = :n AND state = 'open'"
        " ORDER BY started_at DESC, n DESC LIMIT 1"
    )
    return str(db.value(sql, n=session_n) or "")


def memories_given(db: Connection, session_ns: Sequence[int], *, limit: int) -> list[int]:
    """Return the items that tasks of sessions were given, those that were used first."""
    ns: list[int] = []
    for session_n in session_ns:
        sql = (
            "SELECT m.item_n FROM task_memories m JOIN tasks t ON t.n = m.task_n"
            " WHERE t.session_n = :n ORDER BY coalesce(m.used, 0) DESC, m.at DESC LIMIT :limit"
        )
        ns += db.column(sql, n=session_n, limit=limit)
    return list(dict.fromkeys(ns))[:limit]
