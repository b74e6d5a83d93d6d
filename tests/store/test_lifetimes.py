from __future__ import annotations

from lore.store import changes, edges, fragments, lifetimes
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment, minutes, numbered_id


def test_what_a_cycle_made_goes_unless_someone_changed_it(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    for n in (a, b):
        cycle.watch(db, lifetimes.learned(db, n))
    fragments.update(db, b, content="ours", summary="ours", mentioned=(), now=NOON, reason="")
    assert cycle.take_back() == [False, True]
    assert sorted(fragments.by_number(db, [a, b])) == [b]
    assert changes.buried(db, [numbered_id(1), numbered_id(2)]) == {numbered_id(1)}


def test_what_others_stand_on_stays(db: Connection, cycle: Cycle) -> None:
    root, child = add_fragment(db, 1), add_fragment(db, 2, depth=1)
    cycle.watch(db, lifetimes.learned(db, root))
    edges.put(db, root, child, "hierarchical", now=NOON)
    assert cycle.take_back() == [False]
    assert root in fragments.by_number(db, [root])


def test_what_was_hidden_comes_back(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    lifetimes.hide(db, n, now=NOON, watch=cycle.watch)
    assert fragments.is_deleted(db, n)
    assert cycle.take_back() == [True]
    assert not fragments.is_deleted(db, n)


def test_what_a_person_deleted_since_stays_deleted(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    lifetimes.hide(db, n, now=NOON, watch=cycle.watch)
    fragments.set_deleted(db, n, minutes(5), now=minutes(5))
    assert cycle.take_back() == [False]
    assert fragments.is_deleted(db, n)
