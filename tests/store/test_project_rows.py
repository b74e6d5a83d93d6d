from __future__ import annotations

from lore.store import project_rows
from lore.store.project_rows import ProjectLocation
from lore.store.sql_connection import Connection
from tests.store.samples import NOON


def remotes(db: Connection) -> list[str]:
    return [row[0] for row in db.rows("SELECT remote FROM projects ORDER BY n")]


def test_finding_a_project_writes_nothing(db: Connection) -> None:
    n = project_rows.ensure_project_at(db, ProjectLocation("/code/engine"), now=NOON)
    cloned = ProjectLocation("/code/engine", "host/engine")
    assert project_rows.find_project_at(db, cloned) == n
    assert remotes(db) == [""]
    assert project_rows.ensure_project_at(db, cloned, now=NOON) == n
    assert remotes(db) == ["host/engine"]


def test_a_path_with_another_remote_is_another_project(db: Connection) -> None:
    former = project_rows.ensure_project_at(
        db, ProjectLocation("/code/engine", "host/old"), now=NOON
    )
    assert project_rows.find_project_at(db, ProjectLocation("/code/engine", "host/new")) is None
    assert (
        project_rows.ensure_project_at(db, ProjectLocation("/code/engine", "host/new"), now=NOON)
        != former
    )
    assert remotes(db) == ["host/old", "host/new"]
