"""Near pairs of roots: of one project, with at least one that is new."""

from __future__ import annotations

from lore.digest.consolidation.joining import ABOVE, find_embedding, join
from lore.digest.consolidation.phase import Joined, Work
from lore.store import cycles, vectors
from lore.store.db import Database
from tests.digest.consolidation.samples import OFFLINE, World, axis, put_vectors


def work_on(database: Database) -> Work:
    return Work(database, OFFLINE, "merge", 0, database.now())


def joined(database: Database, work: Work | None = None) -> Joined:
    work = work or work_on(database)
    embedding = find_embedding(work)
    assert embedding is not None
    return join(work, embedding, "merge")


def pairs(database: Database) -> list[tuple[int, int]]:
    return [(pair.a.n, pair.b.n) for pair in joined(database).pairs]


def set_mark(database: Database) -> None:
    database.write(lambda db: cycles.set_mark(db, "merge", vectors.newest_seq(db)))


def test_a_phase_without_vectors_is_skipped_and_says_why(database: Database):
    World(database).add("a", "Some fact")
    work = work_on(database)
    assert find_embedding(work) is None
    assert "no vectors" in work.skipped


def test_near_roots_are_paired_the_nearest_first(database: Database):
    world = World(database)
    for name, vector in (("a", axis(0)), ("b", axis(0, _1=0.5)), ("c", axis(0, _2=0.1))):
        world.add(name, name, vector)
    world.add("far", "far", axis(9))
    a, b, c = (world.ns[name] for name in "abc")
    assert pairs(database) == [(a, c), (a, b), (b, c)]
    assert all(pair.cosine > ABOVE for pair in joined(database).pairs)


def test_roots_of_two_projects_are_never_paired(database: Database):
    world = World(database)
    for name, project in (("a", "/code/a"), ("b", "/code/b"), ("c", "")):
        world.add(name, name, axis(0), project=project)
    assert pairs(database) == []


def test_children_are_not_paired_but_make_their_root_new(database: Database):
    world = World(database)
    world.add("a", "a", axis(0))
    world.add("b", "b", axis(0, _1=0.1))
    set_mark(database)
    assert pairs(database) == []
    world.add("below", "below", axis(0), parent="a")
    assert pairs(database) == [(world.ns["a"], world.ns["b"])]


def test_what_is_new_is_compared_with_all_that_is_known(database: Database):
    world = World(database)
    world.add("a", "a", axis(0))
    world.add("b", "b", axis(0, _1=0.1))
    set_mark(database)
    world.add("c", "c", axis(0, _2=0.1))
    found = joined(database)
    assert found.compared == 1
    assert all(world.ns["c"] in (pair.a.n, pair.b.n) for pair in found.pairs)
    assert len(found.pairs) == 2


def test_phases_with_the_same_mark_share_one_comparison(database: Database):
    world = World(database)
    world.add("a", "a", axis(0))
    work = work_on(database)
    first = joined(database, work)
    database.write(lambda db: put_vectors(db, [world.ns["a"]], axis(1).reshape(1, -1)))
    assert joined(database, work) is first
