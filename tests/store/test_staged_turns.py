from __future__ import annotations

from lore.store import staged_turns
from lore.store.sqlite import Connection
from tests.store.samples import NOON, new_session


def test_a_staged_turn_is_kept_until_it_is_stored(db: Connection) -> None:
    n = new_session(db)
    staged_turns.put(db, n, "a", "1", now=NOON)
    staged_turns.put(db, n, "b", "2", now=NOON)
    staged_turns.put(db, n, "a", "3", now=NOON)
    assert [(t.key, t.body) for t in staged_turns.of_session(db, n)] == [("a", "3"), ("b", "2")]
    assert staged_turns.remove(db, n, "a")
    assert not staged_turns.remove(db, n, "a")
