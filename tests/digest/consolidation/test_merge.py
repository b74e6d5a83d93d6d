"""Phases merge and link: one of duplicate roots survives, and no child is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lore.digest.consolidation.cycle import run_cycle
from lore.store import graph
from lore.store.database import Database
from tests.digest.consolidation.samples import OFFLINE, World, axis, phase, put_vectors, soundness


def merge(database: Database):
    return phase(run_cycle(database, OFFLINE, only=("merge",)), "merge")


def two(
    database: Database, one: dict[str, Any] | None = None, other: dict[str, Any] | None = None
) -> World:
    world = World(database)
    world.add("a", "Orders are kept in Postgres", axis(0), **(one or {}))
    world.add("b", "Postgres keeps the orders", axis(0, _1=0.3), **(other or {}))
    return world


def put(world: World, name: str, vector: np.ndarray) -> None:
    world.database.write(lambda db: put_vectors(db, [world.ns[name]], vector.reshape(1, -1)))


def test_the_one_that_is_read_more_survives(database: Database):
    world = two(database)
    world.read("b")
    assert merge(database).counts["merged"] == 1
    assert world.get("a").superseded_by == world.get("b").id
    assert world.visible() == {"b"}


def test_older_root_survives_with_equal_access_counts(database: Database):
    world = two(database)
    merge(database)
    assert world.visible() == {"a"}


def test_no_child_is_lost_and_depths_stay_true(database: Database):
    world = two(database)
    world.add("a1", "The pool is small", axis(2), parent="a")
    world.add("b1", "Backups run at night", axis(3), parent="b")
    world.add("b2", "Backups go to another disk", axis(4), parent="b1")
    report = merge(database)
    assert report.counts["children moved"] == 1
    assert world.children("a") == {"a1", "b1"}
    assert world.children("b1") == {"b2"}
    assert soundness(database) == []
    assert world.visible() == {"a", "a1", "b1", "b2"}


def test_edges_of_the_victim_move_to_the_survivor_once(database: Database):
    world = two(database)
    for name, place in (("x", 5), ("y", 6)):
        world.add(name, f"Something about {name}", axis(place))
        world.link(name, "b", 0.5)
    world.link("a", "x", 0.4)
    merge(database)
    with database.read() as db:
        found = graph.edges_among(db, [world.ns["a"]], ("associative",))
    ends = sorted({n for edge in found for n in edge[:2]} - {world.ns["a"]})
    assert ends == [world.ns["x"], world.ns["y"]]
    assert len(found) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The pool has 20 connections", "The pool has 30 connections"),
        ("Deploys run at noon", "Deploys never run at noon"),
        ("Orders are kept in Postgres", "Orders are kept in MySQL"),
    ],
)
def test_roots_that_differ_in_a_value_are_kept_apart(database: Database, first, second):
    world = World(database)
    world.add("a", first, axis(0))
    world.add("b", second, axis(0, _1=0.05))
    assert merge(database).counts["kept apart"] == 1
    assert world.visible() == {"a", "b"}


def test_a_users_fragment_is_never_merged_into_one_of_lower_trust(database: Database):
    world = two(database, {"origin": "assistant"}, {"origin": "user"})
    world.read("a", 5)
    merge(database)
    assert world.visible() == {"b"}


def test_roots_of_different_trust_classes_do_not_merge(database: Database):
    world = two(database, {"origin": "web"}, {"origin": "user"})
    assert "merged" not in merge(database).counts
    assert world.visible() == {"a", "b"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"project": "/code/app"}, {"project": "/code/web"}),
        ({"project": "/code/app"}, {}),
        ({"kind": "preference"}, {"kind": "fact"}),
        ({"kind": "episode"}, {"kind": "episode"}),
    ],
)
def test_projects_preferences_and_episodes_do_not_merge(database: Database, one, other):
    world = two(database, one, other)
    merge(database)
    assert world.visible() == {"a", "b"}


def test_roots_of_one_project_merge(database: Database):
    world = two(database, {"project": "/code/app"}, {"project": "/code/app"})
    merge(database)
    assert world.visible() == {"a"}


def test_roots_below_the_line_stay(database: Database):
    world = World(database)
    world.add("a", "Orders are kept in Postgres", axis(0))
    world.add("b", "Postgres keeps the orders", axis(0, _1=0.7))
    merge(database)
    assert world.visible() == {"a", "b"}


def test_many_copies_end_as_one_with_all_children(database: Database):
    world = World(database)
    for i in range(30):
        world.add(f"r{i}", "Orders are kept in Postgres", axis(0, **{f"_{1 + i % 14}": 0.05}))
        world.add(f"c{i}", f"Detail {'x' * i}", axis(15), parent=f"r{i}")
    while merge(database).counts.get("merged"):
        pass
    assert world.children("r0") == {f"c{i}" for i in range(30)}
    assert soundness(database) == []


def test_only_new_roots_are_compared_again(database: Database):
    world = two(database, other={"origin": "web"})
    assert merge(database).counts["compared"] == 2
    assert merge(database).counts == {}
    world.add("c", "Orders are kept in Postgres now", axis(0, _2=0.1))
    assert merge(database).counts["compared"] == 1
    assert "c" not in world.visible()


def test_lists_with_another_value_in_a_line_stay_apart(database: Database):
    world = World(database)
    world.add("a", "Ports of the services:\n- api listens on 8080", axis(0))
    world.add("b", "Ports of the services:\n- api listens on 9090", axis(0, _1=0.1))
    assert merge(database).counts == {"compared": 2, "kept apart": 1}
    assert world.visible() == {"a", "b"}


def test_overview_text_does_not_prevent_a_merge(database: Database):
    made: dict[str, Any] = {"origin": "assistant", "source_messages": ("m1",)}
    world = two(database, one=made, other=made)
    world.add("a1", "The pool has 20 connections", None, parent="a", **made)
    world.add("a2", "It listens on port 5432", None, parent="a", **made)
    run_cycle(database, OFFLINE, only=("resummarize",))
    put(world, "a", axis(0))
    assert "5432" in world.get("a").content
    assert merge(database).counts["merged"] == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The request cache is on", "The request cache is off"),
        ("The release is on 2024-05-01", "The release is on 2024-06-01"),
        ("The limit is in app.toml", "The limit is 5 in app.toml"),
    ],
    ids=["on and off", "dates", "a value that would be lost"],
)
def test_a_value_is_neither_merged_with_another_nor_lost(database: Database, one, other):
    world = World(database)
    world.add("a", one, axis(0))
    world.add("b", other, axis(0, _1=0.1))
    assert merge(database).counts["kept apart"] == 1
    assert world.visible() == {"a", "b"}


def test_a_number_in_words_is_the_same_number(database: Database):
    world = World(database)
    world.add("a", "The gateway opens 3 ports", axis(0))
    world.add("b", "The gateway opens three ports", axis(0, _1=0.1))
    merge(database)
    assert world.visible() == {"a"}


def link(database: Database):
    return phase(run_cycle(database, OFFLINE, only=("link",)), "link")


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add("a", "Billing by the worker", axis(0))
    world.add("b", "Refunds by the worker", axis(0, _1=0.6))
    world.add("c", "Something else", axis(3))
    world.add("a1", "The worker reads a queue", axis(0, 5), parent="a")
    world.add("a2", "The worker is written in Go", axis(6), parent="a")
    world.add("b1", "The queue is read by the worker", axis(0, 5, _1=0.2), parent="b")
    world.add("c1", "A queue of another sort", axis(0, 5, _2=0.2), parent="c")
    return world


def associations(world: World) -> set[frozenset[str]]:
    names = {n: name for name, n in world.ns.items()}
    with world.database.read() as db:
        found = graph.edges_among(db, list(names), ("associative",))
    return {frozenset((names[edge.source_n], names[edge.target_n])) for edge in found}


def test_near_children_of_near_roots_are_linked_by_how_near_they_are(database: Database, world):
    assert link(database).counts["linked"] == 1
    assert associations(world) == {frozenset(("a1", "b1"))}
    with database.read() as db:
        weight, _ = graph.find_edge(db, world.ns["a1"], world.ns["b1"], "associative") or (0, "")
    assert 0.9 < weight < 1


@pytest.mark.parametrize("ends", [("a1", "b1"), ("b1", "a1")])
def test_no_edge_is_drawn_twice_in_either_direction(database: Database, world, ends):
    world.link(*ends, 0.33)
    assert "linked" not in link(database).counts
    assert soundness(database) == []


def test_a_new_child_brings_its_root_to_be_compared_again(database: Database, world):
    link(database)
    assert link(database).counts == {}
    world.add("b2", "Go is what the worker is written in", axis(6, _7=0.1), parent="b")
    assert link(database).counts["linked"] == 1
    assert frozenset(("a2", "b2")) in associations(world)
