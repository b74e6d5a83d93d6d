from __future__ import annotations

from dataclasses import replace

from lore.store import actions
from lore.store.befores import Before, Words
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment

SAID = Before(words=Words("x", "x"))


def test_the_last_action_that_was_not_undone_is_found(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    assert actions.find_last(db) is None
    actions.record(db, "store", a, now=NOON)
    actions.record(db, "update", b, SAID, now=NOON)
    last = actions.find_last(db)
    assert last is not None
    assert (last.verb, last.fragment_n, last.before, last.at) == (
        "update",
        b,
        SAID,
        NOON,
    )
    actions.mark_undone(db, last.n, replace(SAID, after=Words("y", "y")))
    assert [found.verb for found in [actions.find_last(db)] if found] == ["store"]
    assert actions.find_last(db, fragment_n=b) is None


def test_what_was_undone_last_is_found_until_something_new_is_done(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    actions.record(db, "store", a, now=NOON)
    actions.record(db, "store", b, now=NOON)
    for n in (2, 1):
        actions.mark_undone(db, n)
    assert [found.n for found in [actions.find_undone(db)] if found] == [1]
    assert [found.n for found in [actions.find_undone(db, fragment_n=b)] if found] == [2]
    actions.mark_done(db, 1)
    assert [found.n for found in [actions.find_undone(db)] if found] == [2]
    actions.record(db, "delete", a, now=NOON)
    assert actions.find_undone(db) is None
