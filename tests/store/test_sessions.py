from __future__ import annotations

import pytest

from lore.errors import InvalidInput, NotFound
from lore.store import keywords, project_rows, sessions
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, add_messages, new_session


def test_a_project_is_created_once_per_path(db: Connection) -> None:
    first = project_rows.ensure_project(db, "/code/lore", now=NOON)
    assert project_rows.ensure_project(db, "/code/lore", now=NOON) == first
    assert project_rows.all_projects(db)[first].name == "lore"


def test_a_project_is_found_by_path_name_and_id(db: Connection) -> None:
    n = project_rows.ensure_project(db, "/code/lore/", now=NOON)
    project = project_rows.all_projects(db)[n]
    for wanted in (project.path, project.name, project.id):
        assert project_rows.get_project(db, wanted) == n
    with pytest.raises(NotFound):
        project_rows.get_project(db, "other")


def test_an_ambiguous_project_name_is_refused(db: Connection) -> None:
    for path in ("/a/lore", "/b/lore"):
        project_rows.ensure_project(db, path, now=NOON)
    with pytest.raises(InvalidInput, match="Several"):
        project_rows.get_project(db, "lore")


def test_a_session_is_created_once_per_agent_and_name(db: Connection) -> None:
    first = new_session(db, "talk", project="/code/lore")
    assert new_session(db, "talk") == first
    other = sessions.ensure_session(
        db, "talk", agent="another", project_n=None, started_at=NOON, parent_n=first
    )
    assert other != first
    found = sessions.get_sessions(db, [first, other])
    assert found[other].parent_id == found[first].id
    assert sessions.project_of_session(db, first) is not None
    assert sessions.project_of_session(db, other) is None
    with pytest.raises(InvalidInput, match="several"):
        sessions.get_session_number(db, "talk")


def test_a_session_is_found_by_id_prefix_and_its_agents_name(db: Connection) -> None:
    n = new_session(db, "talk")
    session = sessions.get_session(db, n)
    for wanted in (session.id, session.id[:9], "talk"):
        assert sessions.get_session_number(db, wanted) == n
    with pytest.raises(NotFound):
        sessions.get_session_number(db, session.id[:4])
    with pytest.raises(NotFound):
        sessions.get_session(db, 99)


def test_titles_and_files_are_in_the_keyword_index(db: Connection) -> None:
    n = new_session(db)
    sessions.describe_session(db, n, title="Moving to Postgres", files=["src/db/todos.ts"])
    sessions.describe_session(db, n, files=["src/db/todos.ts", "README.md"])
    assert sessions.get_session(db, n).title == "Moving to Postgres"
    assert db.value("SELECT files FROM sessions") == "src/db/todos.ts\nREADME.md"
    assert keywords.count_rows(db, "session_words", "postgres") == [1]
    assert keywords.count_rows(db, "session_words", "todos") == [1]


def test_a_new_title_replaces_the_former_one_in_the_index(db: Connection) -> None:
    n = new_session(db)
    sessions.describe_session(db, n, title="Zebra")
    assert keywords.count_rows(db, "session_words", "zebra") == [1]
    sessions.describe_session(db, n, title="Lion")
    keywords.optimize(db)
    assert keywords.count_rows(db, "session_words", "zebra") == [0]
    assert keywords.count_rows(db, "session_words", "lion") == [1]


def test_the_latest_sessions_come_first(db: Connection) -> None:
    old, new = new_session(db, "old"), new_session(db, "new", project="/code/lore")
    add_messages(db, new, "one", "two")
    assert [s.external_id for s in sessions.recent_sessions(db)] == ["new", "old"]
    project_n = project_rows.get_project(db, "lore")
    assert [s.external_id for s in sessions.recent_sessions(db, project_n=project_n)] == ["new"]
    assert sessions.recent_sessions(db, limit=1)[0].id == sessions.get_session(db, new).id
    assert old != new


@pytest.mark.parametrize("value", [None, 3, {"floor": [1, 2]}, "text"])
def test_a_session_state_is_stored_and_replaced(db: Connection, value: object) -> None:
    n = new_session(db)
    assert sessions.find_session_state(db, n, "working") is None
    sessions.put_session_state(db, n, "working", "other", now=NOON)
    sessions.put_session_state(db, n, "working", value, now=NOON)
    assert sessions.find_session_state(db, n, "working") == value
    assert sessions.find_session_state(db, n, "layer_floor") is None
