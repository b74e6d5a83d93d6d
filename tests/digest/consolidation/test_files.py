"""Fragments that name missing files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.digest.consolidation.prune import check_files
from lore.store import consolidation, project_rows, sessions
from lore.store.database import Database
from tests.digest.consolidation.samples import World
from tests.fakes import NOON


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("x")
    return folder


def create_world(database: Database, project: Path, text: str, *files: str) -> World:
    """Store what a fragment of a project says, and which files its sessions had."""
    world = World(database)
    world.add("it", text, project=str(project))

    def work(db):
        project_n = project_rows.find_project(db, str(project))
        n = sessions.ensure_session(db, "s", agent="t", started_at=NOON, project_n=project_n)
        sessions.describe_session(db, n, files=files)

    database.write(work)
    return world


def is_missing(database: Database, world: World) -> bool:
    with database.read() as db:
        found = check_files(db)
    assert found.back == []
    return found.gone == [world.ns["it"]]


@pytest.mark.parametrize(
    ("text", "is_gone"),
    [
        ("Todos live in src/todos.ts.", True),
        ("Todos live in ./src/todos.ts", True),
        ("Todos live in src/todos.ts, as README.md says", False),
        ("Lists live in src/lists.ts", False),
        ("Nothing is named here", False),
    ],
)
def test_what_names_only_files_that_are_gone_is_found(
    database: Database, project: Path, text: str, *, is_gone: bool
):
    world = create_world(database, project, text, "src/todos.ts", "README.md")
    assert is_missing(database, world) == is_gone


def test_a_file_may_be_named_by_its_whole_path(database: Database, project: Path):
    file = f"{project}/src/todos.ts"
    assert is_missing(database, create_world(database, project, f"Todos live in {file} now", file))


@pytest.mark.parametrize("file", ["../outside.txt", "/etc/nothing-here", "~/notes.md"])
def test_files_outside_the_project_are_not_looked_for(database: Database, project: Path, file: str):
    assert not is_missing(
        database, create_world(database, project, f"Notes live in {file} now", file)
    )


def test_nothing_is_said_of_a_folder_that_is_empty_or_elsewhere(database: Database, project: Path):
    world = create_world(database, project, "Todos live in src/todos.ts", "src/todos.ts")
    assert is_missing(database, world)
    (project / "README.md").unlink()
    (project / "src").rmdir()
    assert not is_missing(database, world)


def test_a_missing_file_is_reported_when_it_is_back(database: Database, project: Path):
    world = create_world(database, project, "Todos live in src/todos.ts", "src/todos.ts")
    n = world.ns["it"]
    database.write(lambda db: consolidation.mark_missing_files(db, [n], [], now=NOON))
    with database.read() as db:
        assert check_files(db) == ([], [])
    (project / "src" / "todos.ts").write_text("x")
    with database.read() as db:
        assert check_files(db) == ([], [n])
