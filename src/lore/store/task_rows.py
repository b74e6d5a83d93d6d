"""Rows of tasks: what was started, what it was given, what became of it, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lore import clock
from lore.errors import AmbiguousId, NotFound
from lore.records import Outcome, RetrievalRecord, TaskMemory, TaskRecord
from lore.store import fragments, items, task_memories
from lore.store.codec import pack_json, unpack_json, unpack_record
from lore.store.sql_connection import Connection, Row, id_text

_COLUMNS = (
    "t.id, t.goal, t.phase, t.action, t.type, t.state, t.started_at, t.ended_at, t.outcome,"
    f" t.reason, t.name, t.agent, t.profile, s.id, p.id, {id_text('e.id')}"
)
_FROM = (
    "FROM tasks t LEFT JOIN sessions s ON s.n = t.session_n LEFT JOIN projects p"
    " ON p.n = t.project_n LEFT JOIN items e ON e.n = t.episode_n"
)


class TaskPlace(NamedTuple):
    """Where a task belongs; None for what is unknown."""

    session_n: int | None = None
    project_n: int | None = None


def add_task(db: Connection, task: TaskRecord, place: TaskPlace) -> int:
    """Store a started task and return its number."""
    return db.insert_numbered(
        "tasks",
        id=task.id,
        session_n=place.session_n,
        project_n=place.project_n,
        name=task.name,
        agent=task.agent,
        goal=task.goal,
        phase=task.phase,
        action=task.action,
        type=task.type,
        profile=task.profile,
        state=task.state,
        outcome=task.outcome,
        reason=task.reason,
        started_at=clock.to_us(task.started_at),
    )


def end_task(
    db: Connection,
    n: int,
    *,
    outcome: Outcome,
    reason: str,
    ended_at: datetime,
    episode_n: int | None,
    session_n: int | None,
) -> None:
    """Close a task with its outcome and its episode."""
    values: dict[str, Any] = {} if session_n is None else {"session_n": session_n}
    db.update(
        "tasks", n, state="done", outcome=outcome, reason=reason,
        ended_at=clock.to_us(ended_at), episode_n=episode_n, **values,
    )  # fmt: skip


def put_costs(db: Connection, n: int, costs: Mapping[str, int]) -> None:
    """Store what the metrics of a finished task need: its retries and its tokens."""
    db.update("tasks", n, body=pack_json(costs))


def get_task(db: Connection, name: str, place: TaskPlace | None = None) -> tuple[int, TaskRecord]:
    """Return a task by its id, by eight or more characters of it, or by its caller's name.

    With a place, only a task of that session or project has the name: '1' is one everywhere.
    """
    rows = db.rows(
        f"SELECT t.n, {_COLUMNS} {_FROM} WHERE t.id = :name"
        " OR (t.name = :name AND (:everywhere OR t.session_n = :session_n"
        " OR t.project_n IS :project_n))"
        " OR (length(:name) >= 8 AND t.id LIKE :start ESCAPE '!')"
        " ORDER BY t.started_at DESC LIMIT 2",
        name=name,
        start=f"{_escape(name)}%",
        everywhere=place is None,
        **(place or TaskPlace())._asdict(),
    )
    if not rows:
        msg = f"There is no task '{name[:60]}'."
        raise NotFound(msg, hint="'lore task list' lists tasks.")
    whole = [row for row in rows if name in (row[1], row[11])]
    if len(rows) > 1 and not whole:
        msg = f"'{name}' is the beginning of several tasks."
        raise AmbiguousId(msg, hint="Use more characters of the id.")
    row = (whole or rows)[0]
    return row[0], _task(row[1:])


def find_open_task(db: Connection, place: TaskPlace) -> tuple[int, TaskRecord] | None:
    """Return the task that was last started and not ended, in a session or else a project."""
    row = db.find(
        f"SELECT t.n, {_COLUMNS} {_FROM} WHERE t.state = 'open'"
        " AND (:session_n IS NULL OR t.session_n = :session_n)"
        " AND (:session_n IS NOT NULL OR t.project_n IS :project_n)"
        " ORDER BY t.started_at DESC, t.n DESC LIMIT 1",
        session_n=place.session_n,
        project_n=place.project_n,
    )
    return (row[0], _task(row[1:])) if row else None


def find_named_task(db: Connection, name: str, place: TaskPlace) -> tuple[int, TaskRecord] | None:
    """Return the open task that a session's caller knows by this name."""
    row = db.find(
        f"SELECT t.n, {_COLUMNS} {_FROM} WHERE t.state = 'open' AND t.name = :name"
        " AND t.session_n IS :session_n AND t.project_n IS :project_n"
        " ORDER BY t.started_at DESC LIMIT 1",
        name=name,
        **place._asdict(),
    )
    return (row[0], _task(row[1:])) if row else None


def list_tasks(
    db: Connection, *, project_n: int | None, state: str = "", limit: int = 20
) -> list[TaskRecord]:
    """Return tasks, the latest first."""
    rows = db.rows(
        f"SELECT {_COLUMNS} {_FROM} WHERE (:project_n IS NULL OR t.project_n = :project_n)"
        " AND (:state = '' OR t.state = :state) ORDER BY t.started_at DESC, t.n DESC LIMIT :limit",
        project_n=project_n,
        state=state,
        limit=limit,
    )
    return [_task(row) for row in rows]


def page_of_tasks(
    db: Connection, after: Sequence[int], *, project_n: int | None, state: str, limit: int
) -> list[tuple[tuple[int, int], TaskRecord]]:
    """Return tasks after a key, the latest first, each with its key."""
    at, n = after or (2**62, 0)
    rows = db.rows(
        f"SELECT t.started_at, t.n, {_COLUMNS} {_FROM}"
        " WHERE (:project_n IS NULL OR t.project_n = :project_n)"
        " AND (:state = '' OR t.state = :state) AND (t.started_at, t.n) < (:at, :n)"
        " ORDER BY t.started_at DESC, t.n DESC LIMIT :limit",
        project_n=project_n,
        state=state,
        at=at,
        n=n,
        limit=limit,
    )
    return [((row[0], row[1]), _task(row[2:])) for row in rows]


def add_memories(
    db: Connection, task_n: int, memories: Iterable[tuple[str, str, int]], *, now: datetime
) -> None:
    """Store what a task was given: ids, as what, and their tokens."""
    listed = list(memories)
    ns = items.numbers_of(db, [id_ for id_, _, _ in listed])
    for id_, given_as, size in listed:
        if id_ in ns:
            db.insert_unless_exists(
                "task_memories", task_n=task_n, item_n=ns[id_], given_as=given_as, tokens=size,
                at=clock.to_us(now),
            )  # fmt: skip


def memories_of(db: Connection, task_n: int) -> list[TaskMemory]:
    """Return what a task was given, in order."""
    rows = db.rows(
        f"SELECT {id_text('i.id')}, m.given_as, m.tokens, m.used, m.sign, m.helped"
        " FROM task_memories m JOIN items i ON i.n = m.item_n WHERE m.task_n = :n ORDER BY m.n",
        n=task_n,
    )
    return [
        TaskMemory(id_, given_as, size, _truth(used), sign, _truth(helped))
        for id_, given_as, size, used, sign, helped in rows
    ]


def put_usage(db: Connection, task_n: int, usage: Sequence[TaskMemory], *, now: datetime) -> None:
    """Store which memories of a task were used and helped, and count the uses of each."""
    ns = items.numbers_of(db, [one.item_id for one in usage])
    for one in usage:
        n = ns.get(one.item_id)
        if n is None:
            continue
        was_used = db.value(
            "SELECT used FROM task_memories WHERE task_n = :task_n AND item_n = :n",
            task_n=task_n,
            n=n,
        )
        db.run(
            "UPDATE task_memories SET used = :used, sign = :sign, helped = :helped"
            " WHERE task_n = :task_n AND item_n = :n",
            used=one.used, sign=one.sign, helped=one.helped, task_n=task_n, n=n,
        )  # fmt: skip
        if one.used and not was_used:
            task_memories.count_use(db, [n], now=now)


def log_task_retrieval(
    db: Connection, entry: RetrievalRecord, *, session_n: int | None, task_n: int | None
) -> None:
    """Add a retrieval of a task to the log, with what was considered and what it cost."""
    db.insert(
        "retrievals",
        at=clock.to_us(entry.at),
        verb=entry.verb,
        query=entry.query[:2_000],
        hits=pack_json(entry.chosen),
        took_ms=entry.took_ms,
        session_n=session_n,
        task_n=task_n,
        task_type=entry.task_type,
        profile=entry.profile,
        candidates=pack_json(entry.candidates),
        tokens=entry.tokens,
        outcome=entry.outcome,
    )


def set_retrieval_outcome(db: Connection, task_n: int, outcome: str) -> None:
    """Note in the log how the task ended that a retrieval was for."""
    db.run("UPDATE retrievals SET outcome = :outcome WHERE task_n = :n", outcome=outcome, n=task_n)


def queries_of_session(db: Connection, session_n: int, *, verbs: Sequence[str]) -> list[str]:
    """Return what a session asked with some verbs, in order."""
    sql = "SELECT verb, query FROM retrievals WHERE session_n = :n ORDER BY n"
    rows = db.rows(sql, n=session_n)
    return [query for verb, query in rows if verb in verbs]


class EconomicsKey(NamedTuple):
    """Whose tokens are counted: those of a task, or of a session outside of its tasks."""

    session_n: int | None
    task_n: int | None
    project_n: int | None


def add_economics(
    db: Connection, key: EconomicsKey, counts: Mapping[str, int], *, now: datetime
) -> None:
    """Add token counts to those of a session or task; the largest baseline stands."""
    row = db.find(
        "SELECT n, body FROM token_economics WHERE session_n IS :session_n"
        " AND task_n IS :task_n AND project_n IS :project_n",
        **key._asdict(),
    )
    body = unpack_json(row[1]) if row else {}
    for name, value in counts.items():
        old = int(body.get(name, 0))
        body[name] = max(old, value) if name == "baseline_tokens" else old + value
    values = {"body": pack_json(body), "updated_at": clock.to_us(now)}
    if row:
        db.update("token_economics", row[0], **values)
    else:
        db.insert("token_economics", **key._asdict(), **values)


def find_reader(db: Connection, session_n: int) -> EconomicsKey | None:
    """Return whose tokens a retrieval of a session are: its open task's, or its own.

    None if the session has neither a task nor a working state.
    """
    task_n = db.number(
        "SELECT n FROM tasks WHERE session_n = :n AND state = 'open'"
        " ORDER BY started_at DESC, n DESC LIMIT 1",
        n=session_n,
    )
    is_followed = task_n is not None or db.value(
        "SELECT EXISTS (SELECT 1 FROM working_states WHERE session_n = :n)"
        " OR EXISTS (SELECT 1 FROM tasks WHERE session_n = :n)",
        n=session_n,
    )
    if not is_followed:
        return None
    project_n = db.number("SELECT project_n FROM sessions WHERE n = :n", n=session_n)
    return EconomicsKey(session_n, task_n, project_n)


def count_read(db: Connection, key: EconomicsKey, tokens: int, *, now: datetime) -> None:
    """Count what a recall, a search or a read gave as tokens of layer 3.

    The size of the memory is summed up once for each key, because that reads every fragment.
    """
    counts = {"retrievals": 1}
    if tokens:
        counts |= {"layer3_loads": 1, "layer3_tokens": tokens}
    body = db.value(
        "SELECT body FROM token_economics WHERE session_n IS :session_n"
        " AND task_n IS :task_n AND project_n IS :project_n",
        **key._asdict(),
    )
    if not body or not unpack_json(body).get("baseline_tokens"):
        scope = items.NO_PROJECT if key.project_n is None else key.project_n
        counts["baseline_tokens"] = fragments.visible_tokens(db, scope)
    add_economics(db, key, counts, now=now)


def economics_of_session(db: Connection, session_n: int) -> list[tuple[int | None, dict[str, int]]]:
    """Return the token counts of a session by the number of the task; None is outside of tasks."""
    rows = db.rows("SELECT task_n, body FROM token_economics WHERE session_n = :n", n=session_n)
    return [(task_n, unpack_json(body)) for task_n, body in rows]


def economics_of_project(
    db: Connection, project_n: int | None, *, limit: int = 1_000
) -> list[tuple[int | None, int | None, dict[str, int]]]:
    """Return (session, task, counts) of a project, or of all, the latest first."""
    rows = db.rows(
        "SELECT session_n, task_n, body FROM token_economics"
        " WHERE (:project_n IS NULL OR project_n = :project_n)"
        " ORDER BY updated_at DESC, n DESC LIMIT :limit",
        project_n=project_n,
        limit=limit,
    )
    return [(session_n, task_n, unpack_json(body)) for session_n, task_n, body in rows]


class CorrectionRow(NamedTuple):
    """A corrective action that was carried out: the metric before and after, and its layout."""

    at: datetime
    metric: str
    action: str
    value: float
    value_after: float | None
    body: dict[str, Any]


def add_correction(
    db: Connection, row: CorrectionRow, *, session_n: int | None, project_n: int | None
) -> None:
    """Store a corrective action."""
    db.insert_unless_exists(
        "economics_actions",
        session_n=session_n,
        project_n=project_n,
        metric=row.metric,
        action=row.action,
        value=row.value,
        value_after=row.value_after,
        body=pack_json(row.body),
        at=clock.to_us(row.at),
    )


def corrections(db: Connection, project_n: int | None, *, limit: int = 100) -> list[CorrectionRow]:
    """Return the corrective actions of a project, the latest first."""
    rows = db.rows(
        "SELECT at, metric, action, value, value_after, body FROM economics_actions"
        " WHERE project_n IS :project_n ORDER BY n DESC LIMIT :limit",
        project_n=project_n,
        limit=limit,
    )
    return [unpack_record(CorrectionRow, row, body=unpack_json) for row in rows]


def mark_bypass_announced(db: Connection, project_n: int | None) -> None:
    """Note that the bypass of a project was announced."""
    for n, body in db.rows(
        "SELECT n, body FROM economics_actions WHERE project_n IS :n AND action = 'bypass'",
        n=project_n,
    ):
        db.update("economics_actions", n, body=pack_json({**unpack_json(body), "announced": True}))


def _task(row: Row) -> TaskRecord:
    (id_, goal, phase, action, type_, state, started, ended, outcome, reason, name, agent,
     profile, session, project, episode) = row  # fmt: skip
    return TaskRecord(
        id_, goal, phase, action, type_, state, clock.from_us(started),
        None if ended is None else clock.from_us(ended), outcome, reason, name, agent, profile,
        session or "", project or "", episode or "",
    )  # fmt: skip


def _truth(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _escape(text: str) -> str:
    return "".join(f"!{letter}" if letter in "!%_" else letter for letter in text)
