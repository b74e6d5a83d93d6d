"""The arithmetic for a million owners, on a smaller service."""

from __future__ import annotations

import numpy as np
import pytest

from tests.evals import benchmark_script

shards = benchmark_script.load("shards")

PLAN = shards.Plan(owners=20_000, shards=64, nodes=8, largest=20_000)


def test_sizes_add_up_and_are_skewed() -> None:
    sizes = shards.draw_sizes(PLAN, 1)
    assert sizes.sum() == pytest.approx(PLAN.owners * PLAN.mean_fragments, rel=0.01)
    assert sizes.max() == pytest.approx(PLAN.largest)
    assert np.median(sizes) < 0.7 * PLAN.mean_fragments


def test_the_shard_of_an_owner_is_that_of_its_rows() -> None:
    pytest.importorskip("psycopg")
    from lore.store.postgres.owner_connection import owner_of

    for name in ("ada", "grace", "0"):
        assert shards.shard_of(name, 64) == int.from_bytes(owner_of(name).bytes[:8]) % 64


def test_hashing_spreads_skewed_owners_over_nodes() -> None:
    sizes = shards.draw_sizes(PLAN, 1)
    places = np.array([shards.shard_of(str(i), PLAN.shards) for i in range(PLAN.owners)])
    loads = shards.spread(sizes, places, PLAN.shards)
    nodes = shards.spread(loads, np.arange(PLAN.shards) % PLAN.nodes, PLAN.nodes)
    assert loads.sum() == pytest.approx(sizes.sum())
    assert 1.0 < shards.imbalance(nodes) < shards.imbalance(loads) < 2.0


def test_spread_standbys_share_the_load_of_a_lost_node() -> None:
    even = np.ones(PLAN.shards)
    after = shards.lose_node(even, PLAN, lost=3)
    share = PLAN.shards / PLAN.nodes
    assert after["before"] == share
    assert after["paired"] == 2 * share
    assert after["spread"] <= share + np.ceil(share / (PLAN.nodes - 1))


@pytest.mark.parametrize("utilization", [0.5, 0.8])
def test_the_simulated_wait_agrees_with_the_formula(utilization: float) -> None:
    cores, service, count = 4, 0.01, 150_000
    rate = utilization * cores / service
    services = np.random.default_rng(5).exponential(service, count)
    taken = shards.simulate_node(rate, services.tolist(), cores, seed=6)
    waited = float((taken - services).mean())
    assert waited == pytest.approx(shards.erlang_wait(rate, service, cores), rel=0.1)


def test_a_node_with_more_work_than_cores_never_catches_up() -> None:
    assert shards.erlang_wait(rate=500, service=0.01, cores=4) == float("inf")
    taken = shards.simulate_node(500, [0.01] * 4_000, 4, seed=1)
    assert taken[-100:].mean() > 10 * taken[:100].mean()


def test_the_same_seed_gives_the_same_figures() -> None:
    small = shards.Plan(owners=2_000, shards=16, nodes=4)
    assert shards.measure(small, 7) == shards.measure(small, 7) != shards.measure(small, 8)
