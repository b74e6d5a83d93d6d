from __future__ import annotations

from lore.store import retrievals
from lore.store.retrievals import Retrieval
from lore.store.sqlite import Connection
from tests.store.samples import NOON


def test_the_latest_retrievals_come_first(db: Connection) -> None:
    for i in range(3):
        retrievals.log(db, Retrieval(NOON, "recall", f"question {i}", ("a", "b"), 1.5))
    found = retrievals.newest(db, limit=2)
    assert [entry.query for entry in found] == ["question 2", "question 1"]
    assert found[0].hits == ("a", "b")


def test_a_long_question_is_cut_and_old_entries_go(db: Connection) -> None:
    retrievals.log(db, Retrieval(NOON, "recall", "x" * 10_000, (), 0))
    assert len(retrievals.newest(db)[0].query) == 2_000
    db.run("UPDATE retrievals SET n = :n", n=retrievals.KEPT + 498)
    db.run("INSERT INTO retrievals VALUES (5, 0, 'recall', 'old', '[]', 0)")
    for _ in range(2):
        retrievals.log(db, Retrieval(NOON, "recall", "new", (), 0))
    assert "old" not in [entry.query for entry in retrievals.newest(db)]
