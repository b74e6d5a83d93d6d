"""Rows of strategies: profiles with their shares, the profile of each session, and outcomes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lore import clock
from lore.store.codec import pack_json, unpack_json
from lore.store.distillations import SESSION_EPISODE
from lore.store.sql_connection import Connection, id_text


class ProfileRow(NamedTuple):
    """A stored profile: its values, whether sessions may get it, its share and its evidence."""

    name: str
    values: dict[str, Any]
    is_active: bool
    share: float
    successes: float
    failures: float


class ProfileDay(NamedTuple):
    """The share of a profile on a day."""

    day: str
    profile: str
    share: float
    successes: float
    failures: float


class SessionRow(NamedTuple):
    """A session with a profile: what is known of its outcome, and by which sign."""

    n: int
    profile: str
    at: datetime
    outcome: str
    reason: str


class RetrievalRow(NamedTuple):
    """A logged retrieval of a profile."""

    n: int
    at: datetime
    profile: str
    query: str
    task_type: str
    took_ms: float
    tokens: int
    candidates: tuple[str, ...]
    hits: tuple[str, ...]
    outcome: str
    used: tuple[str, ...] | None
    project_n: int | None


def list_profiles(db: Connection) -> list[ProfileRow]:
    """Return all stored profiles by name."""
    sql = "SELECT name, weights, is_active, share, successes, failures FROM profiles ORDER BY name"
    return [
        ProfileRow(name, unpack_json(values), bool(active), share, successes, failures)
        for name, values, active, share, successes, failures in db.rows(sql)
    ]


def put_profile(db: Connection, values: Mapping[str, Any], *, now: datetime) -> None:
    """Store a profile, replacing one of its name; share and evidence stay."""
    row = {"weights": pack_json(values), "source": str(values.get("source") or ""),
           "updated_at": clock.to_us(now)}  # fmt: skip
    name = values["name"]
    n = db.number("SELECT n FROM profiles WHERE name = :name", name=name)
    if n is not None:
        db.update("profiles", n, **row)
        return
    db.insert("profiles", name=name, is_active=0, share=0.0, created_at=clock.to_us(now), **row)


def delete_profile(db: Connection, name: str) -> bool:
    """Delete a profile; the log keeps its name."""
    return bool(db.run("DELETE FROM profiles WHERE name = :name", name=name))


def set_evidence(
    db: Connection, name: str, *, share: float, successes: float, failures: float, is_active: bool
) -> None:
    """Set the share and the evidence of a profile."""
    db.run(
        "UPDATE profiles SET share = :share, successes = :successes, failures = :failures,"
        " is_active = :active WHERE name = :name",
        share=share, successes=successes, failures=failures, active=int(is_active), name=name,
    )  # fmt: skip


def put_day(db: Connection, days: Iterable[ProfileDay]) -> None:
    """Record the shares of a day."""
    for one in days:
        db.upsert("profile_days", ("profile", "day"), **one._asdict())


def list_days(db: Connection) -> list[ProfileDay]:
    """Return the shares of all days, oldest first."""
    sql = "SELECT day, profile, share, successes, failures FROM profile_days ORDER BY day, profile"
    return [ProfileDay(*row) for row in db.rows(sql)]


def find_session_profile(db: Connection, session_n: int) -> str | None:
    """Return the profile of a session."""
    sql = "SELECT profile FROM session_profiles WHERE session_n = :n"
    value = db.value(sql, n=session_n)
    return None if value is None else str(value)


def assign_session(db: Connection, session_n: int, profile: str, *, now: datetime) -> None:
    """Give a profile to a session that has none."""
    db.insert_unless_exists(
        "session_profiles", session_n=session_n, profile=profile, at=clock.to_us(now)
    )


def session_rows(db: Connection, *, since: datetime | None = None) -> list[SessionRow]:
    """Return the sessions with a profile in order, and their outcomes.

    The outcome is that of the session's tasks, if an agent has told it, else of its episode; the
    sign is that of the episode, which says what the person said.
    """
    first = clock.to_us(since) if since else 0
    rows = db.rows(
        "SELECT n, session_n, profile, at FROM session_profiles WHERE at >= :first ORDER BY at, n",
        first=first,
    )
    of_tasks = _task_outcomes(db)
    derived = _episode_outcomes(db)
    listed = []
    for n, session_n, profile, at in rows:
        of_episode = derived.get(session_n, ("unknown", ""))
        outcome, reason = of_tasks.get(session_n, of_episode)
        listed.append(SessionRow(n, profile, clock.from_us(at), outcome, of_episode[1] or reason))
    return listed


def settle_sessions(
    db: Connection, *, before: datetime, known: Collection[str]
) -> list[SessionRow]:
    """Store the outcomes that became known, and return their sessions in order.

    What is stored counts once and stays, even if the session goes on.
    """
    waiting = set(db.column("SELECT n FROM session_profiles WHERE outcome = ''"))
    if not waiting:
        return []
    fresh = [
        row
        for row in session_rows(db)
        if row.n in waiting and row.at <= before and row.outcome in known
    ]
    for row in fresh:
        db.update("session_profiles", row.n, outcome=row.outcome)
    return fresh


def settled_outcomes(db: Connection, *, since: str) -> list[bool]:
    """Return whether the settled sessions since a time succeeded, in order."""
    first = clock.to_us(datetime.fromisoformat(since)) if since else 0
    sql = "SELECT outcome FROM session_profiles WHERE outcome <> '' AND at >= :first ORDER BY at, n"
    return [outcome == "success" for outcome in db.column(sql, first=first)]


def _task_outcomes(db: Connection) -> dict[int, tuple[str, str]]:
    """Return the outcome of each session by its tasks: a success only if all succeeded."""
    outcomes: dict[int, tuple[str, str]] = {}
    sql = (
        "SELECT session_n, outcome, reason FROM tasks WHERE session_n IS NOT NULL"
        " AND state = 'done' AND outcome <> 'unknown' ORDER BY n"
    )
    for session_n, outcome, reason in db.rows(sql):
        if outcomes.get(session_n, ("success", ""))[0] == "success":
            outcomes[session_n] = (outcome, reason)
    return outcomes


def _episode_outcomes(db: Connection) -> dict[int, tuple[str, str]]:
    outcomes: dict[int, tuple[str, str]] = {}
    sql = (
        "SELECT i.session_n, f.payload, f.metadata FROM session_profiles s"
        " JOIN items i ON i.session_n = s.session_n JOIN fragments f ON f.n = i.n"
        " WHERE f.kind = 'episode'"
    )
    for session_n, payload, metadata in db.rows(sql):
        if unpack_json(metadata) == SESSION_EPISODE:
            values = unpack_json(payload)
            outcomes[session_n] = (str(values.get("outcome")), str(values.get("reason") or ""))
    return outcomes


def retrieval_rows(
    db: Connection, *, since: datetime | None = None, project_n: int | None = None
) -> list[RetrievalRow]:
    """Return the logged retrievals for tasks, oldest first, with what was used of them."""
    sql = (
        "SELECT r.n, r.at, r.profile, r.query, r.task_type, r.took_ms, r.tokens, r.candidates,"
        " r.hits, r.outcome, r.task_n, t.project_n FROM retrievals r"
        " LEFT JOIN tasks t ON t.n = r.task_n WHERE r.task_type <> '' AND r.at >= :first"
        " AND (:project_n IS NULL OR t.project_n = :project_n) ORDER BY r.n"
    )
    first = clock.to_us(since) if since else 0
    used = _used_items(db)
    return [
        RetrievalRow(
            n, clock.from_us(at), profile, query, task_type, took_ms, tokens,
            tuple(unpack_json(candidates)), tuple(unpack_json(hits)), outcome, used.get(task_n),
            project,
        )
        for n, at, profile, query, task_type, took_ms, tokens, candidates, hits, outcome, task_n,
        project in db.rows(sql, first=first, project_n=project_n)
    ]  # fmt: skip


def _used_items(db: Connection) -> dict[int, tuple[str, ...]]:
    """Return the ids of what each task used; tasks of which nothing is known are left out."""
    sql = (
        f"SELECT m.task_n, m.used, {id_text('i.id')} FROM task_memories m"
        " JOIN items i ON i.n = m.item_n WHERE m.used IS NOT NULL"
    )
    used: dict[int, tuple[str, ...]] = {}
    for task_n, was_used, id_ in db.rows(sql):
        used[task_n] = (*used.get(task_n, ()), *([id_] if was_used else []))
    return used
