from __future__ import annotations

import pytest

from lore.store import cycles, edges, fragments, steps
from lore.store.edges import EdgeRow
from lore.store.sqlite import Connection
from lore.store.steps import Step
from tests.store.samples import NOON, add_fragment


@pytest.fixture
def cycle_n(db: Connection) -> int:
    return cycles.begin(db, ["merge"], now=NOON)


def take_back_all(db: Connection, cycle_n: int) -> list[bool]:
    return [steps.take_back(db, step, now=NOON) for step in steps.of_cycle(db, cycle_n)]


def test_an_edge_is_drawn_once_and_rubbed_out_again(db: Connection, cycle_n: int) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edge = EdgeRow(a, b, "associative", 0.5)
    assert steps.add_edge(db, cycle_n, edge, now=NOON)
    assert not steps.add_edge(db, cycle_n, edge, now=NOON)
    assert take_back_all(db, cycle_n) == [True]
    assert edges.find(db, a, b, "associative") is None


def test_a_dropped_edge_comes_back_as_it_was(db: Connection, cycle_n: int) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edges.put(db, a, b, "associative", now=NOON, weight=0.3, note="so it is")
    before = edges.of_fragment(db, a)
    steps.drop_edge(db, cycle_n, a, b, "associative")
    assert edges.of_fragment(db, a) == []
    take_back_all(db, cycle_n)
    assert edges.of_fragment(db, a) == before


def test_a_tree_moves_with_its_depths_and_moves_back(db: Connection, cycle_n: int) -> None:
    top, other, child, below = (add_fragment(db, i, depth=d) for i, d in enumerate((0, 0, 1, 2), 1))
    middle = add_fragment(db, 9, depth=1)
    edges.put(db, top, child, "hierarchical", now=NOON)
    edges.put(db, child, below, "hierarchical", now=NOON)
    edges.put(db, other, middle, "hierarchical", now=NOON)
    steps.reparent(db, cycle_n, child, middle, now=NOON)
    assert [fragments.get(db, n).depth for n in (child, below)] == [2, 3]
    assert edges.find_parent(db, child) == middle
    take_back_all(db, cycle_n)
    assert [fragments.get(db, n).depth for n in (child, below)] == [1, 2]
    assert edges.find_parent(db, child) == top


def test_what_was_changed_since_is_left(db: Connection, cycle_n: int) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    steps.supersede(db, cycle_n, a, b, now=NOON)
    fragments.set_superseded(db, a, fragments.get(db, c).id, now=NOON)
    assert take_back_all(db, cycle_n) == [True, False]
    assert fragments.get(db, a).superseded_by == fragments.get(db, c).id


def test_words_come_back_with_their_version_and_times(db: Connection, cycle_n: int) -> None:
    n = add_fragment(db, 1, "first words")
    before = fragments.get(db, n)
    steps.reword(db, cycle_n, n, "an overview", "an overview", now=NOON.replace(hour=13))
    assert fragments.get(db, n).last_reinforced == before.last_reinforced
    assert take_back_all(db, cycle_n) == [True]
    assert fragments.get(db, n) == before
    assert fragments.versions(db, n) == []


def test_what_a_cycle_made_goes_unless_someone_changed_it(db: Connection, cycle_n: int) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    steps.record(db, cycle_n, Step("added", a), Step("added", b))
    fragments.update(db, b, content="ours", summary="ours", mentioned=(), now=NOON, reason="")
    assert take_back_all(db, cycle_n) == [False, True]
    assert sorted(fragments.by_number(db, [a, b])) == [b]
