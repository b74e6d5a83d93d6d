"""Deep search: seeds, the walk through the graph, and paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.memory import Memory
from lore.recall import deep_search
from lore.recall.deep_search import Direct, Links, Mass, find_path
from lore.store import items


def direct(ns: list[int], fused: list[float]) -> Direct:
    scores = np.array(fused, np.float64)
    return Direct(np.array(ns, np.int64), scores, scores, scores)


def test_best_direct_hits_are_weighted_seeds():
    seeds = deep_search.choose_seeds(direct([7, 8, 9, 10], [2.0, 1.0, 0.0, -1.0]), {})
    assert seeds == pytest.approx({7: 1.0, 8: np.exp(-1), 9: np.exp(-2)})


def test_titles_named_in_the_question_are_seeds():
    seeds = deep_search.choose_seeds(direct([7], [2.0]), {"ada": [7, 5]})
    assert seeds == {7: 1.5, 5: 0.5}


def test_named_titles_are_seeds_without_hits():
    assert deep_search.choose_seeds(direct([], []), {"ada": [5]}) == {5: 1.0}
    assert deep_search.choose_seeds(direct([], []), {}) == {}


def test_a_name_inside_a_longer_name_does_not_count():
    titled = {"york": [1], "new york": [2], "new york times": [3], "yorkshire": [4]}
    assert deep_search.longest_only(titled) == {"new york times": [3], "yorkshire": [4]}


def test_candidates_are_walked_then_direct_without_duplicates():
    walked = Mass(np.array([1, 2, 3]), np.array([0.1, 0.3, 0.2]))
    assert deep_search.candidates(direct([3, 9], [1, 0]), walked).tolist() == [2, 3, 1, 9]


def test_the_number_of_candidates_is_bounded():
    walked = Mass(np.arange(500), np.linspace(1, 0, 500))
    many = direct(list(range(1_000, 1_100)), [0.0] * 100)
    assert len(deep_search.candidates(many, walked)) == deep_search.WALKED + deep_search.DIRECT


def test_stems_match_inflections():
    assert deep_search.stems("The painter was painting paintings") == {"painte", "painti"}


MANY = 10_000


class Bipartite:
    """Items and what they share, as a dense matrix of weights."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights
        self.asked: list[np.ndarray] = []

    def expand(self, ns: np.ndarray) -> tuple[Links, Links]:
        """Return the links of some items, and those back from all that they share."""
        self.asked.append(ns)
        items, shared = np.nonzero(self.weights)
        here = np.isin(items, ns)
        outward = deep_search.normalised(
            items[here], shared[here], self.weights[items[here], shared[here]]
        )
        reached = np.isin(shared, shared[here])
        back = deep_search.normalised(
            shared[reached], items[reached], self.weights[items[reached], shared[reached]]
        )
        return outward, back

    def reference(self, seeds: dict[int, float], restart: float, hops: int) -> np.ndarray:
        """Iterate with dense matrices, as the textbook says."""
        by_item = self.weights / np.maximum(self.weights.sum(1, keepdims=True), 1e-12)
        by_shared = self.weights / np.maximum(self.weights.sum(0, keepdims=True), 1e-12)
        step = by_item @ by_shared.T
        home = np.zeros(len(self.weights))
        for n, weight in seeds.items():
            home[n] = restart * weight / sum(seeds.values())
        mass = home
        for _ in range(hops):
            mass = home + (1 - restart) ** 2 * mass @ step
        return mass


def random_graph(seed: int, items: int = 40, shared: int = 25) -> Bipartite:
    draw = np.random.default_rng(seed)
    return Bipartite(draw.random((items, shared)) * (draw.random((items, shared)) < 0.15))


def dense(mass: Mass, size: int) -> np.ndarray:
    found = np.zeros(size)
    found[mass.ns] = mass.values
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("hops", [1, 2, 5, 30])
@pytest.mark.parametrize("restart", [0.2, 0.25, 0.5])
def test_the_walk_agrees_with_power_iteration(seed, hops, restart):
    graph = random_graph(seed)
    seeds = {3: 1.0, 17: 0.5, 29: 0.1}
    mass = deep_search.walk(seeds, graph.expand, restart=restart, hops=hops, keep=MANY)
    expected = graph.reference(seeds, restart, hops)
    assert dense(mass, 40) == pytest.approx(expected, abs=1e-12)


@given(
    st.integers(0, 10_000),
    st.dictionaries(st.integers(0, 39), st.floats(0.01, 5), min_size=1, max_size=6),
    st.integers(0, 4),
    st.floats(0.05, 0.95),
)
def test_mass_is_positive_and_never_more_than_one(seed, seeds, hops, restart):
    graph = random_graph(seed)
    mass = deep_search.walk(seeds, graph.expand, restart=restart, hops=hops, keep=MANY)
    assert (mass.values >= 0).all()
    assert mass.values.sum() <= 1 + 1e-9
    assert len(np.unique(mass.ns)) == len(mass.ns)
    assert set(seeds) <= set(mass.ns.tolist())


@given(st.integers(0, 10_000), st.floats(0.1, 100))
def test_only_the_proportions_of_the_seeds_count(seed, factor):
    graph = random_graph(seed)
    one = deep_search.walk({1: 1.0, 2: 3.0}, graph.expand)
    other = deep_search.walk({1: factor, 2: 3.0 * factor}, graph.expand)
    assert dense(one, 40) == pytest.approx(dense(other, 40))


@pytest.mark.parametrize("seeds", [{}, {1: 0.0}, {1: 0.0, 2: 0.0}])
def test_walk_without_seeds_reads_nothing(seeds):
    graph = random_graph(0)
    mass = deep_search.walk(seeds, graph.expand)
    assert len(mass.ns) == len(mass.values) == 0
    assert graph.asked == []


def test_seed_without_links_keeps_its_mass():
    graph = Bipartite(np.zeros((3, 2)))
    mass = deep_search.walk({1: 2.0}, graph.expand)
    assert mass.ns.tolist() == [1]
    assert mass.values.tolist() == [deep_search.RESTART]


def test_only_strongest_items_spread_mass():
    graph = random_graph(1)
    deep_search.walk(dict.fromkeys(range(40), 1.0), graph.expand, keep=5)
    assert [len(ns) for ns in graph.asked] == [5, 5]


def test_outgoing_weights_sum_to_one():
    links = deep_search.normalised(
        np.array([1, 1, 2, 3]), np.array([7, 8, 7, 9]), np.array([1.0, 3.0, 5.0, 0.0])
    )
    assert links.weights.tolist() == [0.25, 0.75, 1.0, 0.0]


def test_mass_spreads_along_links_of_known_nodes_only():
    mass = Mass(np.array([5, 2]), np.array([0.5, 0.25]))
    links = Links(np.array([2, 5, 9]), np.array([7, 7, 7]), np.array([1.0, 0.5, 1.0]))
    passed = deep_search.spread(mass, links)
    assert passed.ns.tolist() == [7]
    assert passed.values.tolist() == [0.5]


def test_empty_mass_spreads_nothing():
    nothing = Mass(np.empty(0, np.int64), np.empty(0))
    links = Links(np.array([1]), np.array([2]), np.array([1.0]))
    assert len(deep_search.spread(nothing, links).ns) == 0


def test_mass_from_several_paths_adds_up():
    mass = deep_search.sum_mass(np.array([4, 2, 4]), np.array([0.25, 0.5, 0.25]))
    assert mass.ns.tolist() == [2, 4]
    assert mass.values.tolist() == [0.5, 0.5]


def test_top_is_sorted_and_stable():
    mass = Mass(np.array([1, 2, 3, 4]), np.array([0.1, 0.4, 0.1, 0.2]))
    assert mass.top(3).ns.tolist() == [2, 4, 1]
    assert mass.top(9).ns.tolist() == [2, 4, 1, 3]


def numbers(memory: Memory, *ids: str) -> list[int]:
    with memory.database.read() as db:
        return [items.resolve(db, id_).n for id_ in ids]


def path(memory: Memory, seed: str, hit: str) -> tuple[str, ...]:
    a, b = numbers(memory, seed, hit)
    with memory.database.read() as db:
        return find_path(db, [a], b)


def test_path_names_edge_by_its_kind(memory: Memory):
    a, b = memory.store("The alarm rang"), memory.store("Batteries were replaced")
    memory.knowledge.link(b, a, "example_of")
    assert path(memory, a, b) == ("The alarm rang", "example of", "Batteries were replaced")


def test_path_names_shared_entity(memory: Memory):
    a = memory.store("Odile Brandt leads the team", summary="The team")
    b = memory.store("The berth was painted by Odile Brandt", summary="The berth")
    assert path(memory, a, b) == ("The team", "odile brandt", "The berth")


def test_path_may_have_one_fragment_in_between(memory: Memory):
    a, b, c = memory.store("one"), memory.store("two"), memory.store("three")
    memory.knowledge.link(a, b, "supports")
    memory.knowledge.link(b, c, "related_to")
    assert path(memory, a, c) == ("one", "supports", "two", "related to", "three")
    memory.knowledge.delete(b)
    assert path(memory, a, c) == ()


def test_unlinked_fragments_have_no_path(memory: Memory):
    assert path(memory, memory.store("one"), memory.store("two")) == ()
