from __future__ import annotations

import pytest

from lore.errors import InvalidInput
from lore.store import forgotten_names, project_rows
from lore.store.project_rows import ProjectLocation
from lore.store.sql_connection import Connection
from lore.text.name_limit import LONGEST_NAME, shorten_name
from tests.store.samples import NOON

LONG = "/code/" + "x" * LONGEST_NAME


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


@pytest.mark.parametrize(
    "place", [ProjectLocation(LONG), ProjectLocation("/code", LONG), ProjectLocation(LONG, LONG)]
)
def test_a_project_with_a_long_name_is_stored_once_with_its_beginning_and_digest(
    db: Connection, place: ProjectLocation
) -> None:
    assert project_rows.find_project_at(db, place) is None
    n = project_rows.ensure_project_at(db, place, now=NOON)
    assert project_rows.ensure_project_at(db, place, now=NOON) == n
    assert project_rows.find_project_at(db, place) == n
    assert project_rows.find_project(db, place.path) == n
    names = shorten_name(place.path), shorten_name(place.remote)
    assert db.rows("SELECT path, remote FROM projects") == [names]


def test_a_remote_that_is_found_later_is_shortened_too(db: Connection) -> None:
    n = project_rows.ensure_project_at(db, ProjectLocation("/code"), now=NOON)
    assert project_rows.ensure_project_at(db, ProjectLocation("/code", LONG), now=NOON) == n
    assert remotes(db) == [shorten_name(LONG)]


def test_a_project_whose_long_name_was_stored_as_it_is_is_still_found(db: Connection) -> None:
    n = project_rows.ensure_project_at(db, ProjectLocation(LONG), now=NOON)
    db.run("UPDATE projects SET path = :path", path=LONG)
    assert project_rows.find_project_at(db, ProjectLocation(LONG)) == n
    assert project_rows.ensure_project_at(db, ProjectLocation(LONG), now=NOON) == n


@pytest.mark.parametrize("forgotten", [LONG, shorten_name(LONG)])
def test_a_forgotten_long_name_is_stored_in_no_form(db: Connection, forgotten: str) -> None:
    forgotten_names.add_everywhere(db, [forgotten], now=NOON)
    n = project_rows.ensure_project_at(db, ProjectLocation(LONG, "host/code"), now=NOON)
    assert project_rows.find_project_at(db, ProjectLocation(LONG, "host/code")) == n
    ((path, remote, name),) = db.rows("SELECT path, remote, name FROM projects")
    assert all("x" not in text and "host" not in text for text in (path, remote, name))


def test_a_long_name_that_a_caller_states_is_refused(db: Connection) -> None:
    with pytest.raises(InvalidInput, match="has a name of"):
        project_rows.ensure_project(db, LONG, now=NOON)
