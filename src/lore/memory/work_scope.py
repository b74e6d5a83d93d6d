"""Scope of work: the session and the project that a caller of task memory means."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lore import projects
from lore.errors import InvalidInput, NotFound
from lore.projects import ProjectFinder
from lore.redaction.redactor import Redactor
from lore.store import project_rows, sessions
from lore.store.database import Connection

_NOWHERE = -1
"""A project number that no row has."""


def find_family(db: Connection, redactor: Redactor, session: str) -> Sequence[int]:
    """Return the numbers of a session and its relatives, itself first; none if it is unknown."""
    if not session:
        return ()
    try:
        n = sessions.get_session_number(db, redactor.redact(session))
    except (NotFound, InvalidInput):
        return ()
    return (n, *(one for one in sessions.session_family(db, n) if one != n))


def find_project(db: Connection, redactor: Redactor, folder: str) -> int | None:
    """Return the number of a folder's project; None without a project."""
    if not folder:
        return None
    folder = redactor.redact(folder)
    place = ProjectFinder().find(folder)
    n = projects.find_project_number(db, folder, place)
    if n is None and place is None and folder.startswith("/"):
        return None
    return _NOWHERE if n is None else n


def ensure_project(
    db: Connection, redactor: Redactor, folder: str, session_n: int | None, now: datetime
) -> int | None:
    """Return the project of a folder, or of a session without one; create it."""
    folder = redactor.redact(folder)
    place = ProjectFinder().find(folder) if folder else None
    if place is not None:
        return projects.ensure_project(db, folder, place, now=now)
    if folder and not folder.startswith("/"):
        return project_rows.get_project(db, folder)
    return sessions.project_of_session(db, session_n) if session_n is not None else None
