from __future__ import annotations

import pytest

from lore.store import edges, fragments, steps, trees
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment


def hang(db: Connection, *pairs: tuple[int, int]) -> None:
    for parent, child in pairs:
        edges.put(db, parent, child, "hierarchical", now=NOON)


def depths(db: Connection, *ns: int) -> list[int]:
    return [fragments.get(db, n).depth for n in ns]


def test_a_tree_moves_with_its_depths_and_moves_back(db: Connection, cycle: Cycle) -> None:
    top, other, child, below = (add_fragment(db, i, depth=d) for i, d in enumerate((0, 0, 1, 2), 1))
    middle = add_fragment(db, 9, depth=1)
    hang(db, (top, child), (child, below), (other, middle))
    trees.reparent(db, child, middle, now=NOON, watch=cycle.watch)
    assert depths(db, child, below) == [2, 3]
    assert edges.find_parent(db, child) == middle
    cycle.take_back()
    assert depths(db, child, below) == [1, 2]
    assert edges.find_parent(db, child) == top


def test_without_a_parent_it_is_a_root(db: Connection, cycle: Cycle) -> None:
    top, child, below = (add_fragment(db, i, depth=i - 1) for i in (1, 2, 3))
    hang(db, (top, child), (child, below))
    trees.reparent(db, child, None, now=NOON, watch=cycle.watch)
    assert edges.find_parent(db, child) is None
    assert depths(db, child, below) == [0, 1]


def test_nothing_is_done_where_it_hangs_already(db: Connection, cycle: Cycle) -> None:
    top, child = add_fragment(db, 1), add_fragment(db, 2, depth=1)
    edges.put(db, top, child, "hierarchical", now=NOON, weight=0.4, note="kept")
    trees.reparent(db, child, top, now=NOON, watch=cycle.watch)
    assert steps.of_cycle(db, cycle.n) == []
    assert edges.find(db, top, child, "hierarchical") == (0.4, "kept")


@pytest.mark.parametrize("above", [True, False], ids=["below a root", "as a root"])
def test_a_child_takes_its_parents_place_with_its_siblings_below(
    db: Connection, cycle: Cycle, *, above: bool
) -> None:
    depth = int(above)
    root = add_fragment(db, 9)
    parent = add_fragment(db, 1, depth=depth)
    child, sibling = (add_fragment(db, i, depth=depth + 1) for i in (2, 3))
    hang(db, (parent, child), (parent, sibling), *([(root, parent)] if above else []))
    trees.take_place(db, child, parent, now=NOON, watch=cycle.watch)
    assert edges.find_parent(db, child) == (root if above else None)
    assert edges.find_parent(db, sibling) == child
    assert depths(db, child, sibling) == [depth, depth + 1]
    cycle.take_back()
    assert edges.find_parent(db, child) == edges.find_parent(db, sibling) == parent
    assert depths(db, child, sibling) == [depth + 1, depth + 1]


def test_what_lost_its_parent_meanwhile_gets_the_one_it_was_given(
    db: Connection, cycle: Cycle
) -> None:
    former, later, child = (add_fragment(db, i, depth=i // 3) for i in (1, 2, 3))
    hang(db, (former, child))
    trees.reparent(db, child, later, now=NOON, watch=cycle.watch)
    done = steps.of_cycle(db, cycle.n)
    edges.remove(db, later, child, "hierarchical")
    fragments.set_depth(db, child, 5)
    trees.settle(db, done, now=NOON)
    assert edges.find_parent(db, child) == later
    assert depths(db, child) == [1]
