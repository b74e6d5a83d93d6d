from __future__ import annotations

from lore.records import Spend
from lore.store import spend
from lore.store.sqlite import Connection
from tests.store.samples import NOON, minutes, new_session


def test_spending_is_entered_once(db: Connection) -> None:
    n = new_session(db, project="/p")
    project_n = db.value("SELECT n FROM projects")
    first = Spend("a", NOON, "distil", "m", {"input": 5}, 0.25)
    assert spend.add(db, first, session_n=n, project_n=project_n)
    assert not spend.add(db, first)
    assert spend.add(db, Spend("b", minutes(5), "answer", "m", {}, 0.5))
    assert [(entry.key, entry.usd) for entry in spend.newest(db)] == [("b", 0.5), ("a", 0.25)]
    assert spend.newest(db)[1].project_id
    db.run("DELETE FROM sessions")
    assert spend.newest(db)[1].session_id is None
