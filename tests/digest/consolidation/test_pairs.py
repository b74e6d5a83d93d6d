"""Similar pairs: exact where few, nearly all where many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.digest.consolidation.pairs import (
    SIMILAR_ABOVE,
    _compare_in_trees,
    _deduplicate,
    find_embedder,
    find_similar_roots,
    similar_pairs,
)
from lore.digest.consolidation.phase import PhaseRun, SimilarRoots
from lore.store import consolidation, vectors
from lore.store.database import Database
from tests.digest.consolidation.samples import OFFLINE, World, axis, put_vectors


def unit(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def themes(count: int, seed: int) -> np.ndarray:
    """Draw rows around themes, a tenth of them close to another one."""
    draw = np.random.default_rng(seed)
    centres = unit(draw.standard_normal((count // 40, 64)))
    rows = unit(centres[np.arange(count) % len(centres)] + draw.standard_normal((count, 64)) / 8)
    alike = count // 10
    step = draw.uniform(0.3, 0.7, size=(alike, 1)) / 8
    rows[-alike:] = unit(rows[:alike] + step * draw.standard_normal((alike, 64)))
    return rows


def truth(rows: np.ndarray, above: float) -> set[tuple[int, int]]:
    cosines = rows @ rows.T
    a, b = np.nonzero(np.triu(cosines > above, 1))
    return set(zip(a.tolist(), b.tolist(), strict=True))


@settings(max_examples=20)
@given(st.integers(0, 100), st.integers(80, 300), st.sampled_from([0.7, 0.8, 0.85]))
def test_few_rows_are_compared_exactly(seed, count, above):
    rows = themes(count, seed)
    found = similar_pairs(rows, np.ones(count, bool), above=above)
    assert set(zip(found.a.tolist(), found.b.tolist(), strict=True)) == truth(rows, above)
    assert list(found.cosine) == sorted(found.cosine, reverse=True)


@pytest.mark.parametrize("above", [0.8, 0.85])
def test_trees_find_at_least_98_percent_of_the_true_pairs(above):
    rows = themes(6_000, 3)
    found = _deduplicate(list(_compare_in_trees(rows, above)))
    known = set(zip(found.a.tolist(), found.b.tolist(), strict=True))
    true = truth(rows, above)
    assert len(true) > 200
    assert known <= true
    assert len(known & true) / len(true) >= 0.98


def test_only_pairs_with_something_fresh_are_returned():
    rows = unit(np.ones((4, 8)) + np.eye(4, 8) * 0.01)
    found = similar_pairs(rows, np.array([False, False, True, False]), above=0.9)
    assert sorted(zip(found.a, found.b, strict=True)) == [(0, 2), (1, 2), (2, 3)]
    assert len(similar_pairs(rows, np.zeros(4, bool), above=0.9)) == 0


def test_a_thousand_copies_do_not_make_a_million_pairs():
    rows = unit(np.ones((1_000, 8)) + np.random.default_rng(1).standard_normal((1_000, 8)) * 0.01)
    found = similar_pairs(rows, np.ones(1_000, bool), above=0.8)
    assert len(found) <= 16 * 1_000
    assert set(found.a) | set(found.b) == set(range(1_000))


def phase_run(database: Database) -> PhaseRun:
    return PhaseRun(database, OFFLINE, "merge", 0, database.now())


def find_roots(database: Database, work: PhaseRun | None = None) -> SimilarRoots:
    work = work or phase_run(database)
    embedding = find_embedder(work)
    assert embedding is not None
    return find_similar_roots(work, embedding, "merge")


def pairs(database: Database) -> list[tuple[int, int]]:
    return [(pair.a.n, pair.b.n) for pair in find_roots(database).pairs]


def set_mark(database: Database) -> None:
    database.write(lambda db: consolidation.set_progress(db, "merge", vectors.newest_seq(db)))


def test_a_phase_without_vectors_is_skipped_and_says_why(database: Database):
    World(database).add("a", "Some fact")
    work = phase_run(database)
    assert find_embedder(work) is None
    assert "no vectors" in work.skipped


def test_near_roots_are_paired_the_nearest_first(database: Database):
    world = World(database)
    for name, vector in (("a", axis(0)), ("b", axis(0, _1=0.5)), ("c", axis(0, _2=0.1))):
        world.add(name, name, vector)
    world.add("far", "far", axis(9))
    a, b, c = (world.ns[name] for name in "abc")
    assert pairs(database) == [(a, c), (a, b), (b, c)]
    assert all(pair.cosine > SIMILAR_ABOVE for pair in find_roots(database).pairs)


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


def test_new_roots_are_compared_with_all_roots(database: Database):
    world = World(database)
    world.add("a", "a", axis(0))
    world.add("b", "b", axis(0, _1=0.1))
    set_mark(database)
    world.add("c", "c", axis(0, _2=0.1))
    found = find_roots(database)
    assert found.compared == 1
    assert all(world.ns["c"] in (pair.a.n, pair.b.n) for pair in found.pairs)
    assert len(found.pairs) == 2


def test_phases_with_the_same_mark_share_one_comparison(database: Database):
    world = World(database)
    world.add("a", "a", axis(0))
    work = phase_run(database)
    first = find_roots(database, work)
    database.write(lambda db: put_vectors(db, [world.ns["a"]], axis(1).reshape(1, -1)))
    assert find_roots(database, work) is first
