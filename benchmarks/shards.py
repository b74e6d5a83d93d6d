"""Does the arithmetic for a million owners hold: shards, hot owners, a lost node, and waiting?

Owners of very different size are given to shards by the hash that their rows carry, and shards to
nodes. Bytes and processor time of a fragment and a recall are those that `postgres.py` measures.
A node is then simulated as a queue, and compared with the formula of Erlang. The same seed gives
the same figures.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BYTES_OF_FRAGMENT = 3_700
"""On disk, with indexes: 1,000 owners of 1,000 fragments take 3.7 GB."""

SERVER_MS, SERVER_MS_PER_FRAGMENT = 1.8, 0.00125
"""Processor time of the database for a recall, and more of it for each fragment of the owner: 4 ms
with 2,000, 14 ms with 10,000, if an owner's rows are beside each other on disk. The vectors are
scanned there: an owner who asks again soon has them in the memory of a process, and takes half."""

SCANNED = 20_000
"""Vectors of larger owners are searched in a graph, which takes no longer than this many."""


@dataclass(frozen=True)
class Plan:
    """A service to plan: its owners and what they do, and its nodes."""

    owners: int = 1_000_000
    mean_fragments: int = 2_000
    largest: int = 200_000
    """No owner has more fragments."""
    skew: float = 0.8
    """The exponent of Zipf's law: the owner of rank r has a share of r to the power of -skew."""
    recalls_per_day: float = 20.0
    """Recalls of an average owner; larger owners ask more, in proportion."""
    peak: float = 4.0
    """How many times busier the busiest hour is than an average one."""
    shards: int = 1_024
    nodes: int = 16
    cores: int = 8
    move_bytes_per_s: float = 100e6


def draw_sizes(plan: Plan, seed: int) -> Floats:
    """Return the fragments of each owner, in the order of their names."""
    ranks = np.arange(1, plan.owners + 1, dtype=np.float64)
    sizes = ranks**-plan.skew
    for _ in range(8):  # what the largest may not have goes to the others
        sizes = np.minimum(sizes * plan.mean_fragments * plan.owners / sizes.sum(), plan.largest)
    return np.random.default_rng(seed).permutation(sizes)


def shard_of(name: str, shards: int) -> int:
    """Return the shard of an owner, by the first bytes of the hash that its rows carry."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % shards


def server_ms(fragments: Floats) -> Floats:
    """Return the processor time of the database for a recall of owners of a size."""
    return SERVER_MS + SERVER_MS_PER_FRAGMENT * np.minimum(fragments, SCANNED)


def recall_rates(plan: Plan, sizes: Floats) -> Floats:
    """Return the recalls of each owner in a second of the busiest hour."""
    total = plan.owners * plan.recalls_per_day / 86_400 * plan.peak
    rates: Floats = total * sizes / sizes.sum()
    return rates


def spread(values: Floats, places: NDArray[np.int64], count: int) -> Floats:
    """Return the sum of the values at each place."""
    sums: Floats = np.bincount(places, weights=values, minlength=count).astype(np.float64)
    return sums


def imbalance(loads: Floats) -> float:
    """Return how many times the average the largest load is."""
    return float(loads.max() / loads.mean())


def lose_node(loads: Floats, plan: Plan, lost: int) -> dict[str, float]:
    """Return the largest load of the nodes left, in busy cores, with standbys in two ways.

    `loads` are those of shards. Either one node has all standbys of the lost one, or those of its
    shards are spread over all others.
    """
    node_of = np.arange(plan.shards) % plan.nodes
    nodes = spread(loads, node_of, plan.nodes)
    paired = nodes.copy()
    paired[(lost + 1) % plan.nodes] += nodes[lost]
    spread_out = nodes.copy()
    others = [node for node in range(plan.nodes) if node != lost]
    for i, shard in enumerate(np.flatnonzero(node_of == lost)):
        spread_out[others[i % len(others)]] += loads[shard]
    paired[lost] = spread_out[lost] = 0.0
    return {
        "before": float(nodes.max()),
        "paired": float(paired.max()),
        "spread": float(spread_out.max()),
    }


def erlang_wait(rate: float, service: float, cores: int) -> float:
    """Return the average wait for one of the cores, for random arrivals and service times."""
    offered = rate * service
    if offered >= cores:
        return float("inf")
    busy = offered**cores / factorial(cores) * cores / (cores - offered)
    waits = busy / (sum(offered**k / factorial(k) for k in range(cores)) + busy)
    return waits * service / (cores - offered)


def simulate_node(rate: float, services: Sequence[float], cores: int, seed: int) -> Floats:
    """Return how long each request waits and is served; requests are served in their order."""
    gaps = np.random.default_rng(seed).exponential(1 / rate, len(services))
    free = [0.0] * cores
    now, taken = 0.0, np.zeros(len(services))
    for i, (gap, service) in enumerate(zip(gaps.tolist(), services, strict=True)):
        now += gap
        start = max(now, heapq.heappop(free))
        heapq.heappush(free, start + service)
        taken[i] = start + service - now
    return taken


def node_times(
    sizes: Floats, rates: Floats, utilization: float, cores: int, seed: int, count: int = 40_000
) -> dict[str, float]:
    """Return the times of recalls at a node that is busy to a degree.

    Whose recall it is is drawn by the owners' rates, so that large ones take their time.
    """
    draw = np.random.default_rng(seed).choice(len(sizes), count, p=rates / rates.sum())
    services = server_ms(sizes[draw]) / 1000
    rate = utilization * cores / float(services.mean())
    taken = 1000 * simulate_node(rate, services.tolist(), cores, seed + 1)
    p50, p99 = np.percentile(taken, (50, 99))
    return {
        "recalls_per_s": round(rate), "p50_ms": round(float(p50), 1), "p99_ms": round(float(p99), 1)
    }  # fmt: skip


def measure(plan: Plan, seed: int) -> dict[str, object]:
    """Return the figures of a plan."""
    sizes = draw_sizes(plan, seed)
    rates = recall_rates(plan, sizes)
    cores = rates * server_ms(sizes) / 1000
    places = np.array([shard_of(str(i), plan.shards) for i in range(plan.owners)], np.int64)
    shard_bytes = spread(sizes * BYTES_OF_FRAGMENT, places, plan.shards)
    shard_cores = spread(cores, places, plan.shards)
    node_of = np.arange(plan.shards) % plan.nodes
    node_bytes = spread(shard_bytes, node_of, plan.nodes)
    node_cores = spread(shard_cores, node_of, plan.nodes)
    total_bytes = float(shard_bytes.sum())
    return {
        "fragments": round(float(sizes.sum())),
        "largest owner": round(float(sizes.max())),
        "total_tb": round(total_bytes / 1e12, 2),
        "shard_gb": {
            "mean": round(total_bytes / plan.shards / 1e9, 2),
            "largest": round(float(shard_bytes.max()) / 1e9, 2),
        },
        "node_gb": {
            "mean": round(total_bytes / plan.nodes / 1e9),
            "largest": round(float(node_bytes.max()) / 1e9),
        },
        "imbalance": {
            "shards, bytes": round(imbalance(shard_bytes), 2),
            "shards, cores": round(imbalance(shard_cores), 2),
            "nodes, bytes": round(imbalance(node_bytes), 2),
            "nodes, cores": round(imbalance(node_cores), 2),
        },
        "recalls_per_s": round(float(rates.sum())),
        "busy_cores": {
            "all nodes": round(float(node_cores.sum()), 1),
            "busiest node": round(float(node_cores.max()), 2),
            "largest owner": round(float(cores.max()), 3),
        },
        "lost_node": {
            name: round(load, 2)
            for name, load in lose_node(shard_cores, plan, int(node_cores.argmax())).items()
        },
        "one_more_node_moves": {
            "gb": round(total_bytes / (plan.nodes + 1) / 1e9),
            "hours": round(total_bytes / (plan.nodes + 1) / plan.move_bytes_per_s / 3600, 1),
        },
        "node, busy to": {
            f"{share:.0%}": node_times(sizes, rates, share, plan.cores, seed)
            for share in (0.3, 0.6, 0.8, 0.95)
        },
    }


def main() -> None:
    """Print the figures of the plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=Plan.owners)
    parser.add_argument("--nodes", type=int, default=Plan.nodes)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(json.dumps(measure(Plan(owners=args.owners, nodes=args.nodes), args.seed), indent=1))


if __name__ == "__main__":
    main()
