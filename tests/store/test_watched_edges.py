from __future__ import annotations

from lore.store import edges, steps, watched_edges
from lore.store.edges import EdgeRow
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment


def test_an_edge_is_drawn_once_and_rubbed_out_again(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edge = EdgeRow(a, b, "associative", 0.5)
    assert watched_edges.draw(db, edge, now=NOON, watch=cycle.watch)
    assert not watched_edges.draw(db, edge, now=NOON, watch=cycle.watch)
    assert cycle.take_back() == [True]
    assert edges.find(db, a, b, "associative") is None


def test_an_edge_that_is_there_keeps_its_weight_and_note(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edges.put(db, a, b, "associative", now=NOON, weight=0.3, note="so it is")
    watched_edges.draw(db, EdgeRow(a, b, "associative", 0.9), now=NOON, watch=cycle.watch)
    assert edges.find(db, a, b, "associative") == (0.3, "so it is")


def test_an_erased_edge_comes_back_as_it_was(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edges.put(db, a, b, "associative", now=NOON, weight=0.3, note="so it is")
    before = edges.of_fragment(db, a)
    watched_edges.erase(db, a, b, "associative", watch=cycle.watch)
    assert edges.of_fragment(db, a) == []
    assert cycle.take_back() == [True]
    assert edges.of_fragment(db, a) == before


def test_what_was_not_there_is_not_erased(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    watched_edges.erase(db, a, b, "associative", watch=cycle.watch)
    assert steps.of_cycle(db, cycle.n) == []


def test_a_parent_does_not_come_back_where_there_is_another(db: Connection, cycle: Cycle) -> None:
    former, other, child = (add_fragment(db, i) for i in (1, 2, 3))
    edges.put(db, former, child, "hierarchical", now=NOON)
    watched_edges.erase(db, former, child, "hierarchical", watch=cycle.watch)
    edges.put(db, other, child, "hierarchical", now=NOON)
    assert cycle.take_back() == [False]
    assert edges.find_parent(db, child) == other
