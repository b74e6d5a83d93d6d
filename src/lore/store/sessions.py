"""Projects and sessions: where a conversation took place."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from datetime import datetime

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.records import Project, Session
from lore.store import keywords, names
from lore.store.packing import moment, number
from lore.store.sqlite import Connection, Row, among, numbers, texts

_PROJECT = "id, path, remote, name, created_at"
_SESSION = (
    "s.id, s.external_id, p.id, s.agent, s.title, s.branch, parent.id,"
    " s.started_at, s.last_message_at, s.state"
)
_SESSION_FROM = (
    "FROM sessions s LEFT JOIN projects p ON p.n = s.project_n"
    " LEFT JOIN sessions parent ON parent.n = s.parent_n"
)


def ensure_project(
    db: Connection, path: str, *, now: datetime, remote: str = "", name: str = ""
) -> int:
    """Return the number of the project with this path, name or id, made if it is new."""
    path = _spelled(path)
    found = find_project(db, path)
    if found is not None:
        return found
    return int(
        db.value(
            "INSERT INTO projects (id, path, remote, name, created_at)"
            " VALUES (:id, :path, :remote, :name, :at) RETURNING n",
            id=clock.new_id(now),
            path=path,
            remote=remote,
            name=name or path.rstrip("/").rsplit("/", 1)[-1] or path,
            at=clock.to_us(now),
        )
    )


def _spelled(path: str) -> str:
    """Return an absolute path in its one spelling; a name or id as it is."""
    return posixpath.normpath(path) if path.startswith("/") else path


def find_project(db: Connection, path_name_or_id: str) -> int | None:
    """Return the number of the project with this path or id, or else with this name."""
    path_name_or_id = _spelled(path_name_or_id)
    alias = db.value("SELECT project_n FROM aliases WHERE id = :w", w=path_name_or_id)
    if alias:
        return int(alias)
    exact = db.value("SELECT n FROM projects WHERE path = :w OR id = :w", w=path_name_or_id)
    if exact:
        return int(exact)
    rows = db.rows("SELECT n FROM projects WHERE name = :w LIMIT 2", w=path_name_or_id)
    if len(rows) > 1:
        msg = f"Several projects are called '{path_name_or_id}'."
        raise InvalidInput(msg, hint="Give the path instead.")
    return int(rows[0][0]) if rows else None


def get_project(db: Connection, path_name_or_id: str) -> int:
    """Return the number of a project, or raise."""
    n = find_project(db, path_name_or_id)
    if n is None:
        msg = f"No project is called '{path_name_or_id}'."
        raise NotFound(msg, hint="'lore stats' lists the projects.")
    return n


def projects(db: Connection) -> dict[int, Project]:
    """Return all projects by number."""
    rows = db.rows(f"SELECT n, {_PROJECT} FROM projects ORDER BY path")
    return {
        n: Project(id_, path, remote, name, moment(at)) for n, id_, path, remote, name, at in rows
    }


def find_number(db: Connection, external_id: str, *, agent: str) -> int | None:
    """Return the number of an agent's session by the agent's own name for it, forgotten or not."""
    found = db.value(
        "SELECT n FROM sessions WHERE agent = :agent AND external_id = :external_id",
        agent=agent,
        external_id=external_id,
    )
    if found is None and (renamed := names.find_renamed(db, agent, external_id)):
        found = db.value("SELECT n FROM sessions WHERE id = :id", id=renamed)
    return None if found is None else int(found)


def known_names(db: Connection, external_ids: Sequence[str], *, agent: str) -> set[str]:
    """Return those of an agent's own names that sessions have."""
    rows = db.rows(
        "SELECT external_id FROM sessions"
        f" WHERE agent = :agent AND {among('external_id', 'names')}",
        agent=agent,
        names=texts(external_ids),
    )
    return {row[0] for row in rows}


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
    """Return the number of an agent's session, made if it is new."""
    found = find_number(db, external_id, agent=agent)
    if found is not None:
        return found
    at = clock.to_us(started_at)
    return int(
        db.value(
            "INSERT INTO sessions (id, external_id, project_n, agent, title, files, branch,"
            " parent_n, started_at, last_message_at, state) VALUES (:id, :external_id,"
            " :project_n, :agent, '', '', :branch, :parent_n, :at, :at, 'open') RETURNING n",
            id=clock.new_id(started_at),
            external_id=external_id,
            project_n=project_n,
            agent=agent,
            branch=branch,
            parent_n=parent_n,
            at=at,
        )
    )


def complete(
    db: Connection, n: int, *, project_n: int | None, branch: str, parent_n: int | None
) -> None:
    """Give a session what it does not have yet: one may be known by its child at first."""
    db.run(
        "UPDATE sessions SET project_n = coalesce(project_n, :project_n),"
        " parent_n = coalesce(parent_n, :parent_n),"
        " branch = CASE branch WHEN '' THEN :branch ELSE branch END WHERE n = :n"
        " AND (project_n IS NULL AND :project_n IS NOT NULL OR parent_n IS NULL"
        " AND :parent_n IS NOT NULL OR branch = '' AND :branch <> '')",
        n=n,
        project_n=project_n,
        branch=branch,
        parent_n=parent_n,
    )


def has_title(db: Connection, n: int) -> bool:
    """Tell whether a session is called something."""
    return bool(db.value("SELECT title FROM sessions WHERE n = :n", n=n))


def describe(db: Connection, n: int, *, title: str = "", files: Sequence[str] = ()) -> None:
    """Give a session its title, and add files that were touched in it."""
    row = db.find("SELECT title, files FROM sessions WHERE n = :n", n=n)
    if row is None:
        return
    known = row[1].split("\n") if row[1] else []
    merged = "\n".join(dict.fromkeys([*known, *files]))
    if (title or row[0], merged) != row:
        db.run(
            "UPDATE sessions SET title = :title, files = :files WHERE n = :n",
            title=title or row[0],
            files=merged,
            n=n,
        )
        if any(row):
            keywords.index_session(db, n)
        else:
            keywords.add_session(db, n)


def get_number(db: Connection, id_prefix_or_external: str) -> int:
    """Return the number of the session with this id, prefix of an id, or agent's own id."""
    wanted = id_prefix_or_external.strip()
    if not wanted:
        msg = "The name of the session is empty."
        raise InvalidInput(msg)
    rows = db.rows(
        "SELECT n FROM sessions WHERE external_id = :wanted"
        " UNION SELECT n FROM sessions WHERE length(:wanted) >= 8 AND id >= :wanted"
        " AND id < :wanted || '~' LIMIT 3",
        wanted=wanted,
    )
    if not rows:
        msg = f"No session is called '{wanted[:80]}'."
        raise NotFound(msg, hint="'lore sessions' lists the latest.")
    if len(rows) > 1:
        msg = f"'{wanted}' fits several sessions."
        raise InvalidInput(msg, hint="Give more characters of the one you mean.")
    return number(rows[0][0])


def get(db: Connection, n: int) -> Session:
    """Return a session by number."""
    row = db.find(f"SELECT {_SESSION} {_SESSION_FROM} WHERE s.n = :n", n=n)
    if row is None:
        msg = "That session is gone."
        raise NotFound(msg)
    return _session(row)


def family(db: Connection, n: int) -> tuple[int, ...]:
    """Return a session with the one that it comes from and those that come from it."""
    rows = db.rows(
        "SELECT n FROM sessions WHERE n = :n OR parent_n = :n"
        " OR n = (SELECT parent_n FROM sessions WHERE n = :n)",
        n=n,
    )
    return tuple(row[0] for row in rows)


def project_number(db: Connection, n: int) -> int | None:
    """Return the number of a session's project."""
    found = db.value("SELECT project_n FROM sessions WHERE n = :n", n=n)
    return None if found is None else int(found)


def by_number(db: Connection, ns: Sequence[int]) -> dict[int, Session]:
    """Return sessions by number."""
    if not len(ns):
        return {}
    rows = db.rows(
        f"SELECT s.n, {_SESSION} {_SESSION_FROM} WHERE {among('s.n', 'ns')}", ns=numbers(ns)
    )
    return {row[0]: _session(row[1:]) for row in rows}


def recent(db: Connection, *, project_n: int | None = None, limit: int = 20) -> list[Session]:
    """Return the sessions that were last spoken in, newest first."""
    rows = db.rows(
        f"SELECT {_SESSION} {_SESSION_FROM}"
        " WHERE :project_n IS NULL OR s.project_n = :project_n "
        " ORDER BY s.last_message_at DESC LIMIT :limit",
        project_n=project_n,
        limit=limit,
    )
    return [_session(row) for row in rows]


def _session(row: Row) -> Session:
    id_, external_id, project_id, agent, title, branch, parent_id, started, last, state = row
    return Session(
        id=id_,
        external_id=external_id,
        project_id=project_id,
        agent=agent,
        title=title,
        branch=branch,
        parent_id=parent_id,
        started_at=moment(started),
        last_message_at=moment(last),
        state=state,
    )
