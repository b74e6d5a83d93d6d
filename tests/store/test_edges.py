from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.store import edges
from lore.store.db import Database
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment, numbered_id


def test_an_edge_drawn_again_takes_the_new_weight_and_note(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edges.put(db, a, b, "supports", now=NOON, weight=0.5, note="x")
    edges.put(db, a, b, "supports", now=NOON, weight=0.7, note="y")
    (edge,) = edges.of_fragment(db, b)
    assert (edge.source, edge.target, edge.weight, edge.note) == (
        numbered_id(1), numbered_id(2), 0.7, "y",
    )  # fmt: skip
    edges.remove(db, a, b, "supports")
    assert edges.of_fragment(db, a) == []


def test_edges_of_some_kinds_are_found_at_either_end(db: Connection) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    edges.put(db, a, b, "supports", now=NOON)
    edges.put(db, b, c, "temporal", now=NOON)
    assert [(e.source_n, e.target_n) for e in edges.among_fragments(db, [b], ["supports"])] == [
        (a, b)
    ]
    assert len(edges.among_fragments(db, [b], ["supports", "temporal"])) == 2
    assert edges.among_fragments(db, [], ["supports"]) == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 100), max_size=12))
def test_a_tree_is_walked_down_and_up(database: Database, parents: list[int]) -> None:
    def work(db: Connection) -> None:
        db.run("DELETE FROM items")
        ns = [add_fragment(db, i) for i in range(len(parents) + 1)]
        above = [parent % (i + 1) for i, parent in enumerate(parents)]
        for i, parent in enumerate(above, 1):
            edges.put(db, ns[parent], ns[i], "hierarchical", now=NOON)
        assert {n for n, _ in edges.subtree(db, ns[0])} == set(ns)
        for i, n in enumerate(ns[1:], 1):
            path = []
            while i:
                i = above[i - 1]
                path.append(ns[i])
            assert edges.ancestors(db, n) == path[::-1]
            assert edges.find_parent(db, n) == path[0]
            assert n in edges.children(db, path[0])
        assert edges.find_parent(db, ns[0]) is None

    database.write(work)


def test_even_a_ring_ends(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edges.put(db, a, b, "hierarchical", now=NOON)
    edges.put(db, b, a, "hierarchical", now=NOON)
    assert {n for n, _ in edges.subtree(db, a)} == {a, b}
    assert set(edges.ancestors(db, a)) == {a, b}
