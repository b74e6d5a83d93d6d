from __future__ import annotations

from datetime import timedelta

import pytest

from lore import relevance
from lore.store import fragments, missing, sessions
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment, minutes, new_session


def marked(db: Connection) -> list[int]:
    return [one.n for one in missing.marked(db)]


@pytest.fixture
def project_n(db: Connection) -> int:
    return sessions.ensure_project(db, "/code/app", now=NOON)


def test_doubt_in_the_store_is_the_pure_doubt(db: Connection):
    missing.mark(db, [add_fragment(db, 1)], [], now=NOON)
    for days in (0, 6.5, 7, 7.5, 12, 30):
        missing.doubt(db, now=NOON + timedelta(days=days))
        found = db.value("SELECT doubt FROM fragments")
        assert found == pytest.approx(relevance.doubt(days))


def test_files_that_were_gone_before_are_gone_since_then(db: Connection, project_n: int):
    n = add_fragment(db, 1, project_n=project_n)
    missing.mark(db, [n], [], now=NOON)
    missing.mark(db, [n], [], now=NOON + timedelta(days=30))
    assert missing.doubt(db, now=NOON + timedelta(days=10)) == 1
    assert fragments.get(db, n).confidence == pytest.approx(0.7 - relevance.doubt(10))


def test_nobody_doubts_what_has_its_files_back(db: Connection, project_n: int):
    n = add_fragment(db, 1, project_n=project_n)
    missing.mark(db, [n], [], now=NOON)
    missing.doubt(db, now=NOON + timedelta(days=30))
    assert marked(db) == [n]
    missing.mark(db, [], [n], now=minutes(1))
    assert marked(db) == []
    assert fragments.get(db, n).confidence == pytest.approx(0.7)


def test_folders_hold_the_files_of_all_their_sessions(db: Connection):
    for name, files in (("one", ("a.py", "b.py")), ("two", ("b.py", "c.py")), ("three", ())):
        sessions.describe(db, new_session(db, name, project="/code/app"), files=files)
    new_session(db, "elsewhere", project="/code/other")
    (folder,) = missing.folders(db)
    assert (folder.path, folder.files) == ("/code/app", frozenset({"a.py", "b.py", "c.py"}))


def test_a_file_is_named_by_the_words_of_its_name_in_a_row(db: Connection, project_n: int):
    named = add_fragment(db, 1, "Todos are kept in src/todos.ts by the store", project_n=project_n)
    add_fragment(db, 2, "The todos of ts are in src", project_n=project_n)
    add_fragment(db, 3, "Todos are kept in src/todos.ts", project_n=None)
    assert [one.n for one in missing.naming(db, project_n, "src/todos.ts")] == [named]
    assert missing.naming(db, project_n, "/") == []
