from __future__ import annotations

from lore.records import Spend
from lore.store import spend
from lore.store.sqlite import Connection
from tests.store.samples import NOON, minutes, new_session


def test_spending_is_entered_once_and_summed(db: Connection) -> None:
    n = new_session(db, project="/p")
    project_n = db.value("SELECT n FROM projects")
    first = Spend("a", NOON, "distil", "m", {"input": 5}, 0.25)
    assert spend.add(db, first, session_n=n, project_n=project_n)
    assert not spend.add(db, first)
    assert spend.add(db, Spend("b", minutes(5), "answer", "m", {}, 0.5))
    assert spend.total_usd(db) == 0.75
    assert spend.total_usd(db, since=minutes(1)) == 0.5
    assert spend.total_usd(db, session_n=n) == spend.total_usd(db, project_n=project_n) == 0.25
    assert [entry.key for entry in spend.newest(db)] == ["b", "a"]
    db.run("DELETE FROM sessions")
    assert spend.newest(db)[1].session_id is None
