"""Personalised PageRank over a graph of items and what they share, from a few seeds.

Pure and local: the graph is asked only for the links of the strongest items, so that the cost
depends on the neighbourhood of the seeds, not on the size of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESTART = 0.25
HOPS = 2
KEEP = 200
"""Items that pass their strength on in each hop."""

TITLE_WEIGHT = 4.0
"""An item is about its title: that link counts so many times a mere mention."""

Numbers = NDArray[np.int64]
Masses = NDArray[np.float64]


class Mass(NamedTuple):
    """Strength by number."""

    ns: Numbers
    values: Masses

    def top(self, k: int) -> Mass:
        """Return the strongest k, strongest first."""
        order = np.argsort(-self.values, kind="stable")[:k]
        return Mass(self.ns[order], self.values[order])


class Links(NamedTuple):
    """Weighted links; the weights that leave one node sum to 1."""

    sources: Numbers
    targets: Numbers
    weights: Masses


Expand = Callable[[Numbers], tuple[Links, Links]]
"""From items: the links to what they share, and from there back to all items that share it."""


def normalised(sources: Numbers, targets: Numbers, weights: Masses) -> Links:
    """Return links whose weights sum to 1 for each source."""
    if not len(sources):
        return Links(sources, targets, weights)
    _, places = np.unique(sources, return_inverse=True)
    totals = np.bincount(places, weights)[places]
    return Links(sources, targets, weights / np.maximum(totals, 1e-12))


def spread(mass: Mass, links: Links) -> Mass:
    """Pass the strength of each node along its links."""
    if not len(mass.ns) or not len(links.sources):
        return Mass(mass.ns[:0], mass.values[:0])
    order = np.argsort(mass.ns)
    ns, values = mass.ns[order], mass.values[order]
    places = np.minimum(np.searchsorted(ns, links.sources), len(ns) - 1)
    known = ns[places] == links.sources
    passed = np.where(known, values[places] * links.weights, 0.0)
    return gather(links.targets, passed)


def gather(ns: Numbers, values: Masses) -> Mass:
    """Add up the strength of nodes that occur several times."""
    unique, places = np.unique(ns, return_inverse=True)
    return Mass(unique, np.bincount(places, values, len(unique)).astype(np.float64))


def walk(
    seeds: Mapping[int, float],
    expand: Expand,
    *,
    restart: float = RESTART,
    hops: int = HOPS,
    keep: int = KEEP,
) -> Mass:
    """Return the strength of items near the seeds, the seeds included."""
    total = sum(seeds.values())
    if not seeds or total <= 0:
        return Mass(np.empty(0, np.int64), np.empty(0, np.float64))
    ns = np.array(sorted(seeds), np.int64)
    home = Mass(ns, restart * np.array([seeds[int(n)] for n in ns]) / total)
    mass = home
    passing = (1 - restart) ** 2
    for _ in range(hops):
        frontier = mass.top(keep)
        outward, back = expand(frontier.ns)
        reached = spread(spread(frontier, outward), back)
        mass = gather(
            np.concatenate([home.ns, reached.ns]),
            np.concatenate([home.values, passing * reached.values]),
        )
    return mass
