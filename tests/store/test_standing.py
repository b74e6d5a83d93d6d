from __future__ import annotations

from lore.store import sessions, standing
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment


def test_an_instruction_said_again_stands_once_as_last_said(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    standing.add(db, a, None, "Always use tabs", 1)
    standing.add(db, b, None, "always  use TABS!", 2)
    assert [(s.item_n, s.text) for s in standing.newest(db, None)] == [(b, "always  use TABS!")]


def test_an_instruction_holds_in_its_project_and_without_one_everywhere(db: Connection) -> None:
    here, there = (sessions.ensure_project(db, path, now=NOON) for path in ("/a", "/b"))
    item = add_fragment(db, 1)
    for i, (project_n, text) in enumerate([(here, "one"), (there, "two"), (None, "three")]):
        standing.add(db, item, project_n, text, i)
    assert [s.text for s in standing.newest(db, here)] == ["three", "one"]
    assert [s.text for s in standing.newest(db, None)] == ["three"]
    assert len(standing.newest(db, None, everywhere=True)) == 3
    assert len(standing.newest(db, None, everywhere=True, limit=1)) == 1
