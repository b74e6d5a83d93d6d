from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.store import graph
from lore.store.database import Database
from lore.store.sql_connection import Connection
from lore.text.entities import Mention
from tests.store.samples import NOON, add_fragment, numbered_id


def test_put_edge_replaces_weight_and_note(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    graph.put_edge(db, a, b, "supports", now=NOON, weight=0.5, note="x")
    graph.put_edge(db, a, b, "supports", now=NOON, weight=0.7, note="y")
    (edge,) = graph.edges_of_fragment(db, b)
    assert (edge.source, edge.target, edge.weight, edge.note) == (
        numbered_id(1), numbered_id(2), 0.7, "y",
    )  # fmt: skip
    graph.remove_edge(db, a, b, "supports")
    assert graph.edges_of_fragment(db, a) == []


def test_edges_of_some_kinds_are_found_at_either_end(db: Connection) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    graph.put_edge(db, a, b, "supports", now=NOON)
    graph.put_edge(db, b, c, "temporal", now=NOON)
    assert [(e.source_n, e.target_n) for e in graph.edges_among(db, [b], ["supports"])] == [(a, b)]
    assert len(graph.edges_among(db, [b], ["supports", "temporal"])) == 2
    assert graph.edges_among(db, [], ["supports"]) == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 100), max_size=12))
def test_subtree_and_ancestors_follow_the_tree(database: Database, parents: list[int]) -> None:
    def work(db: Connection) -> None:
        db.run("DELETE FROM items")
        ns = [add_fragment(db, i) for i in range(len(parents) + 1)]
        above = [parent % (i + 1) for i, parent in enumerate(parents)]
        for i, parent in enumerate(above, 1):
            graph.put_edge(db, ns[parent], ns[i], "hierarchical", now=NOON)
        assert {n for n, _ in graph.subtree(db, ns[0])} == set(ns)
        for i, n in enumerate(ns[1:], 1):
            path = []
            while i:
                i = above[i - 1]
                path.append(ns[i])
            assert graph.ancestors(db, n) == path[::-1]
            assert graph.find_parent(db, n) == path[0]
            assert n in graph.children(db, path[0])
        assert graph.find_parent(db, ns[0]) is None
        assert graph.ancestors_of(db, ns) == {n: graph.ancestors(db, n) for n in ns}

    database.write(work)


def test_a_cycle_of_edges_does_not_loop(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    graph.put_edge(db, a, b, "hierarchical", now=NOON)
    graph.put_edge(db, b, a, "hierarchical", now=NOON)
    assert {n for n, _ in graph.subtree(db, a)} == {a, b}
    assert set(graph.ancestors(db, a)) == {a, b}


def test_entities_are_deleted_with_their_last_mention(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    graph.add_mentions(db, a, [Mention("ada", is_title=True), Mention("paris", is_title=False)])
    graph.add_mentions(db, b, [Mention("ada", is_title=False)])
    assert dict(db.rows("SELECT name, uses FROM entities")) == {"ada": 2, "paris": 1}
    graph.remove_mentions(db, [a])
    graph.remove_mentions(db, [])
    assert dict(db.rows("SELECT name, uses FROM entities")) == {"ada": 1}


def test_items_are_found_by_title_and_by_what_they_share(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    graph.add_mentions(db, a, [Mention("ada", is_title=True)])
    graph.add_mentions(db, b, [Mention("ada", is_title=False)])
    assert graph.find_titled(db, ["ada", "bob", "ada"], most_each=5) == {"ada": [a]}
    (entity_n,) = db.rows("SELECT n FROM entities")[0]
    assert graph.mentions_of_items(db, [a]).tolist() == [[a, entity_n, 1, 2]]
    assert sorted(graph.mentions_of_entities(db, [entity_n])[:, 0].tolist()) == [a, b]
    assert graph.entity_names(db, [entity_n]) == {entity_n: "ada"}
    assert len(graph.mentions_of_items(db, [])) == len(graph.mentions_of_entities(db, [])) == 0
    assert graph.entity_names(db, []) == {}
