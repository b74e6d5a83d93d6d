"""Phase 3: near children of near roots are linked, and no edge is drawn twice."""

from __future__ import annotations

import pytest

from lore.digest.consolidation.cycle import run_cycle
from lore.store import edges
from lore.store.db import Database
from tests.digest.consolidation.samples import OFFLINE, World, axis, phase, soundness


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
        found = edges.among_fragments(db, list(names), ("associative",))
    return {frozenset((names[edge.source_n], names[edge.target_n])) for edge in found}


def test_near_children_of_near_roots_are_linked_by_how_near_they_are(database: Database, world):
    assert link(database).counts["linked"] == 1
    assert associations(world) == {frozenset(("a1", "b1"))}
    with database.read() as db:
        weight, _ = edges.find(db, world.ns["a1"], world.ns["b1"], "associative") or (0, "")
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
