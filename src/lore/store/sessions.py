"""Sessions: their projects, names and states."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.records import Session
from lore.store import forgotten_names, keywords
from lore.store.codec import (
    pack_json,
    pack_role,
    unpack_json,
    unpack_number,
    unpack_record,
    unpack_time,
)
from lore.store.sql_connection import Connection, among, int_array, text_array
from lore.store.sync_shapes import make_redacted_name, session_identity
from lore.text.name_limit import check_name

_SESSION = (
    "s.id, s.external_id, p.id, s.agent, s.title, s.branch, parent.id,"
    " s.started_at, s.last_message_at, s.state"
)
_SESSION_FROM = (
    "FROM sessions s LEFT JOIN projects p ON p.n = s.project_n"
    " LEFT JOIN sessions parent ON parent.n = s.parent_n"
)


def find_session(db: Connection, external_id: str, *, agent: str) -> int | None:
    """Return the number of a session by its agent's own name, even if that was forgotten."""
    sql = "SELECT n FROM sessions WHERE agent = :agent AND external_id = :external_id"
    n = db.number(sql, agent=agent, external_id=external_id)
    if n is None:
        stored_agent, name = forgotten_names.stored_name(db, agent, external_id)
        n = db.number(sql, agent=stored_agent, external_id=name)
    return n


def find_known_names(db: Connection, external_ids: Sequence[str], *, agent: str) -> set[str]:
    """Return those of an agent's own names that belong to stored sessions."""
    sql = (
        f"SELECT external_id FROM sessions WHERE agent = :agent AND {among('external_id', 'names')}"
    )
    return set(db.column(sql, agent=agent, names=text_array(external_ids)))


def ensure_session(
    db: Connection,
    external_id: str,
    *,
    agent: str,
    project_n: int | None,
    started_at: datetime,
    branch: str = "",
    parent_n: int | None = None,
) -> int:
    """Return the number of an agent's session, created if it is new."""
    existing = find_session(db, external_id, agent=agent)
    if existing is not None:
        return existing
    check_name(agent, "An agent")
    check_name(external_id, "A session")
    redacted = _claim_redacted(db, *forgotten_names.stored_name(db, agent, external_id))
    if redacted is not None:
        return redacted
    at = clock.to_us(started_at)
    forgotten_at = forgotten_names.session_forgotten_at(db, agent, external_id)
    if forgotten_at is not None:  # what goes on is a new session: machines compare the times
        at = max(at, forgotten_at + 1)
    agent, external_id = forgotten_names.stored_name(db, agent, external_id)
    return db.insert_numbered(
        "sessions",
        id=clock.new_id(started_at),
        external_id=external_id,
        project_n=project_n,
        agent=agent,
        title="",
        files="",
        branch=branch,
        parent_n=parent_n,
        started_at=at,
        last_message_at=at,
        state="open",
    )


def _claim_redacted(db: Connection, agent: str, external_id: str) -> int | None:
    """Find the session that another machine brought without the secret in its name; name it."""
    n = db.number(
        "SELECT n FROM sessions WHERE agent = :agent AND external_id = :name",
        agent=agent,
        name=make_redacted_name(session_identity(agent, external_id)),
    )
    if n is not None:
        db.update("sessions", n, external_id=external_id)
    return n


def fill_session(
    db: Connection, n: int, *, project_n: int | None, branch: str, parent_n: int | None
) -> None:
    """Set the project, branch and parent of a session where they are missing."""
    sql = (
        "UPDATE sessions SET project_n = coalesce(project_n, :project_n),"
        " parent_n = coalesce(parent_n, :parent_n),"
        " branch = CASE branch WHEN '' THEN :branch ELSE branch END WHERE n = :n"
        " AND (project_n IS NULL AND :project_n IS NOT NULL OR parent_n IS NULL"
        " AND :parent_n IS NOT NULL OR branch = '' AND :branch <> '')"
    )
    db.run(sql, n=n, project_n=project_n, branch=branch, parent_n=parent_n)


def has_title(db: Connection, n: int) -> bool:
    """Return whether a session has a title."""
    return bool(db.value("SELECT title FROM sessions WHERE n = :n", n=n))


def describe_session(db: Connection, n: int, *, title: str = "", files: Sequence[str] = ()) -> None:
    """Set the title of a session, and add files that were touched in it."""
    row = db.find("SELECT title, files FROM sessions WHERE n = :n", n=n)
    if row is None:
        return
    known_files = row[1].split("\n") if row[1] else []
    merged = "\n".join(dict.fromkeys([*known_files, *files]))
    if (title or row[0], merged) != row:
        db.update("sessions", n, title=title or row[0], files=merged)
        keywords.index_session(db, n, is_new=not any(row))


def get_session_number(db: Connection, id_prefix_or_external: str) -> int:
    """Return the number of the session with this id, id prefix, or agent's own name."""
    name = id_prefix_or_external.strip()
    if not name:
        msg = "The name of the session is empty."
        raise InvalidInput(msg)
    rows = db.rows(
        "SELECT n FROM sessions WHERE external_id = :wanted"
        " UNION SELECT n FROM sessions WHERE length(:wanted) >= 8 AND id >= :wanted"
        " AND id < :wanted || '~' LIMIT 3",
        wanted=name,
    )
    if not rows:
        msg = f"No session is called '{name[:80]}'."
        raise NotFound(msg, hint="Run 'lore sessions' to list the latest.")
    if len(rows) > 1:
        msg = f"'{name}' matches several sessions."
        raise InvalidInput(msg, hint="Give more characters of the one you mean.")
    return unpack_number(rows[0][0])


def get_session(db: Connection, n: int) -> Session:
    """Return a session by number."""
    row = db.find(f"SELECT {_SESSION} {_SESSION_FROM} WHERE s.n = :n", n=n)
    if row is None:
        msg = "This session no longer exists."
        raise NotFound(msg)
    return unpack_record(Session, row)


def session_family(db: Connection, n: int) -> tuple[int, ...]:
    """Return a session with its parent and its children."""
    sql = (
        "SELECT n FROM sessions WHERE n = :n OR parent_n = :n"
        " OR n = (SELECT parent_n FROM sessions WHERE n = :n)"
    )
    return tuple(db.column(sql, n=n))


def project_of_session(db: Connection, n: int) -> int | None:
    """Return the number of a session's project, or None."""
    return db.number("SELECT project_n FROM sessions WHERE n = :n", n=n)


def get_sessions(db: Connection, ns: Sequence[int]) -> dict[int, Session]:
    """Return sessions by number."""
    if not len(ns):
        return {}
    sql = f"SELECT s.n, {_SESSION} {_SESSION_FROM} WHERE {among('s.n', 'ns')}"
    return {row[0]: unpack_record(Session, row[1:]) for row in db.rows(sql, ns=int_array(ns))}


def count_tokens(db: Connection, n: int) -> int:
    """Return the number of tokens of all messages of a session."""
    sql = (
        "SELECT coalesce(sum(i.tokens), 0) FROM items i JOIN messages m ON m.n = i.n"
        " WHERE m.session_n = :n"
    )
    return int(db.value(sql, n=n))


def titles_by_id(db: Connection, ids: Collection[str]) -> dict[str, str]:
    """Return the titles of the sessions with these ids."""
    sql = "SELECT title FROM sessions WHERE id = :id"
    titles = ((id_, db.value(sql, id=id_)) for id_ in ids)
    return {id_: str(title) for id_, title in titles if title}


def last_messages(db: Connection, ids: Collection[str]) -> dict[str, datetime]:
    """Return when the last message of each session was said, by the ids of the sessions."""
    if not ids:
        return {}
    sql = f"SELECT id, last_message_at FROM sessions WHERE {among('id', 'ids')}"
    rows = db.rows(sql, ids=text_array(sorted(ids)))
    return {id_: unpack_time(at) for id_, at in rows}


def spoken_tokens_since(db: Connection, since: datetime) -> list[int]:
    """Return the tokens that people and assistants said in each session since a moment."""
    spoken = (pack_role("user"), pack_role("assistant"))
    return db.column(
        "SELECT SUM(i.tokens) FROM sessions s JOIN messages m ON m.session_n = s.n"
        " JOIN items i ON i.n = m.n WHERE s.last_message_at >= :since AND i.created_at >= :since"
        " AND m.role IN (:user, :assistant) GROUP BY s.n",
        since=clock.to_us(since), user=spoken[0], assistant=spoken[1],
    )  # fmt: skip


def count_requests(db: Connection, session_n: int, *, most: int) -> int:
    """Count the messages of the user in a session, up to a limit."""
    sql = (
        "SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE session_n = :session_n"
        " AND role = :role LIMIT :most)"
    )
    return int(db.value(sql, session_n=session_n, role=pack_role("user"), most=most))


def recent_sessions(
    db: Connection, *, project_n: int | None = None, limit: int = 20
) -> list[Session]:
    """Return the latest sessions by their last message, newest first."""
    sql = (
        f"SELECT {_SESSION} {_SESSION_FROM} WHERE :project_n IS NULL OR s.project_n = :project_n"
        " ORDER BY s.last_message_at DESC LIMIT :limit"
    )
    rows = db.rows(sql, project_n=project_n, limit=limit)
    return [unpack_record(Session, row) for row in rows]


SessionStateName = Literal[
    "layer_floor", "calibration", "working", "other_project", "distilled", "digested",
    "checked", "check_failures", "machine",
]  # fmt: skip


def put_session_state(
    db: Connection, session_n: int, name: SessionStateName, value: Any, *, now: datetime
) -> None:
    """Store a state of a session, replacing the former value."""
    row = {"session_n": session_n, "name": name, "updated_at": clock.to_us(now)}
    db.upsert("session_states", ("session_n", "name"), value=pack_json(value), **row)


def sessions_with_state(db: Connection, name: SessionStateName) -> list[str]:
    """Return the ids of the sessions that have this state."""
    sql = (
        "SELECT s.id FROM session_states t JOIN sessions s ON s.n = t.session_n"
        " WHERE t.name = :name ORDER BY s.id"
    )
    return db.column(sql, name=name)


def find_session_state(db: Connection, session_n: int, name: SessionStateName) -> Any:
    """Return a state of a session, or None."""
    sql = "SELECT value FROM session_states WHERE session_n = :session_n AND name = :name"
    value = db.value(sql, session_n=session_n, name=name)
    return None if value is None else unpack_json(value)
