from __future__ import annotations

from lore.store import edges, fragments, strengths
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment, minutes


def test_a_fragment_and_its_neighbours_are_as_strong_as_before(
    db: Connection, cycle: Cycle
) -> None:
    n, near = add_fragment(db, 1), add_fragment(db, 2)
    edges.put(db, n, near, "associative", now=NOON)
    before = fragments.by_number(db, [n, near])
    cycle.watch(db, strengths.before_strengthening(db, n, now=minutes(5)))
    fragments.reinforce(db, n, now=minutes(5))
    assert fragments.get(db, n) != before[n]
    assert fragments.get(db, near).relevance > before[near].relevance
    assert cycle.take_back() == [True]
    assert fragments.by_number(db, [n, near]) == before


def test_what_was_read_since_keeps_its_strength(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    cycle.watch(db, strengths.before_strengthening(db, n, now=minutes(5)))
    fragments.reinforce(db, n, now=minutes(5))
    fragments.reinforce(db, n, now=minutes(6))
    assert cycle.take_back() == [False]
    assert fragments.get(db, n).access_count == 2
