"""Find fragments that answer a question only together with others.

Seeds are the best direct hits and fragments whose title the question names. Personalized PageRank
from there finds linked fragments; a linear model then scores what each candidate adds to a seed:
the words of the question that the seed leaves open. PageRank is local: only the links of the
strongest items are read, so the cost depends on the seeds' neighbourhood, not on the size of the
memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore.index import numbers
from lore.lazy_dataclass import dataclass
from lore.recall import fusion
from lore.recall.fusion import Scores
from lore.records import NOTE_EDGES, EdgeKind
from lore.store import fragments, graph
from lore.store.database import Connection
from lore.store.fragments import FragmentFilter
from lore.store.graph import MentionTable
from lore.text import words

RESTART = 0.25
HOPS = 2
KEEP = 200
"""Items that pass their mass on in each hop."""

TITLE_WEIGHT = 4.0
"""Weight of the link to an item's title, relative to a mere mention."""

Numbers = NDArray[np.int64]
Masses = NDArray[np.float64]


class Mass(NamedTuple):
    """PageRank mass by item number."""

    ns: Numbers
    values: Masses

    def top(self, k: int) -> Mass:
        """Return the k items with the most mass, in descending order."""
        order = np.argsort(-self.values, kind="stable")[:k]
        return Mass(self.ns[order], self.values[order])


class Links(NamedTuple):
    """Weighted links; the weights of the links from one node sum to 1."""

    sources: Numbers
    targets: Numbers
    weights: Masses


Expand = Callable[[Numbers], tuple[Links, Links]]
"""From items: the links to their shared nodes, and from there back to all items that share them."""


def normalised(sources: Numbers, targets: Numbers, weights: Masses) -> Links:
    """Return links whose weights sum to 1 for each source."""
    if not len(sources):
        return Links(sources, targets, weights)
    _, places = np.unique(sources, return_inverse=True)
    totals = np.bincount(places, weights)[places]
    return Links(sources, targets, weights / np.maximum(totals, 1e-12))


def spread(mass: Mass, links: Links) -> Mass:
    """Pass the mass of each node along its links."""
    if not len(mass.ns) or not len(links.sources):
        return Mass(mass.ns[:0], mass.values[:0])
    order = np.argsort(mass.ns)
    ns, values = mass.ns[order], mass.values[order]
    places = np.minimum(np.searchsorted(ns, links.sources), len(ns) - 1)
    is_source = ns[places] == links.sources
    passed = np.where(is_source, values[places] * links.weights, 0.0)
    return sum_mass(links.targets, passed)


def sum_mass(ns: Numbers, values: Masses) -> Mass:
    """Add up the mass of nodes that occur several times."""
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
    """Return the PageRank mass of items near the seeds, the seeds included."""
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
        mass = sum_mass(
            np.concatenate([home.ns, reached.ns]),
            np.concatenate([home.values, passing * reached.values]),
        )
    return mass


HUB_USES = 200
"""An entity that more fragments mention says nothing about any of them."""

LINKING: tuple[EdgeKind, ...] = ("associative", *NOTE_EDGES)


class Graph:
    """The graph of fragments: edges and shared entities, read from the database as a walk needs
    them."""

    def __init__(self, db: Connection, fragment_count: int) -> None:
        self._db = db
        self._log_count = log(max(2, fragment_count))
        self._tables: dict[int, MentionTable] = {}

    def expand(self, ns: Numbers) -> tuple[Links, Links]:
        """Return the links from items to their shared nodes, and back to all that share them."""
        outward = self._mentions(ns)
        outward = outward[(outward[:, 3] >= 2) & (outward[:, 3] <= HUB_USES)]
        entity_ns = numbers.unique(outward[:, 1])
        back = graph.mentions_of_entities(self._db, entity_ns.tolist())
        drawn, drawn_weights = self._edges(ns)
        weights = np.where(outward[:, 2] > 0, TITLE_WEIGHT, 1.0) * self._rarity(outward[:, 3])
        back_weights = np.where(back[:, 2] > 0, TITLE_WEIGHT, 1.0)
        return (
            normalised(
                np.concatenate([outward[:, 0], drawn[:, 0]]),
                np.concatenate([outward[:, 1], drawn[:, 1]]),
                np.concatenate([weights, drawn_weights]),
            ),
            normalised(
                np.concatenate([back[:, 1], drawn[:, 1]]),
                np.concatenate([back[:, 0], drawn[:, 0]]),
                np.concatenate([back_weights, drawn_weights]),
            ),
        )

    def rarity_by_entity(self, n: int) -> dict[int, tuple[float, bool]]:
        """Return the entities an item mentions: their rarity, and whether each is its title."""
        table = self._mentions(np.array([n], np.int64))
        table = table[(table[:, 3] >= 2) & (table[:, 3] <= HUB_USES)]
        rarity = self._rarity(table[:, 3])
        return {
            int(row[1]): (float(value), bool(row[2]))
            for row, value in zip(table, rarity, strict=True)
        }

    def _rarity(self, uses: Numbers) -> np.ndarray:
        return np.maximum(0.0, 1.0 - np.log(np.maximum(uses, 1)) / self._log_count)

    def _mentions(self, ns: Numbers) -> MentionTable:
        missing = [int(n) for n in ns if int(n) not in self._tables]
        if missing:
            table = graph.mentions_of_items(self._db, missing)
            order = np.argsort(table[:, 0], kind="stable")
            table = table[order]
            starts = np.searchsorted(table[:, 0], missing, side="left")
            ends = np.searchsorted(table[:, 0], missing, side="right")
            for n, start, end in zip(missing, starts, ends, strict=True):
                self._tables[n] = table[start:end]
        tables = [self._tables[int(n)] for n in ns]
        return np.concatenate(tables) if tables else np.empty((0, 4), np.int64)

    def _edges(self, ns: Numbers) -> tuple[Numbers, np.ndarray]:
        """Return edges as shared nodes of their own (negative numbers), one row for each end."""
        rows = graph.edges_among(self._db, ns.tolist(), LINKING)
        ends = [
            (n, -place) for place, row in enumerate(rows, 1) for n in (row.source_n, row.target_n)
        ]
        weights = [row.weight for row in rows for _ in (0, 1)]
        return np.array(ends, np.int64).reshape(-1, 2), np.array(weights, np.float64)


SEEDS = 3
"""Direct hits that the walk starts from; more blur it."""

DIRECT = 15
WALKED = 30
TITLED = 50
COMPARED = 6
"""Seeds that each candidate is compared with."""

_LEFT_OPEN = 0.5
"""Share of a seed's direction that is subtracted from the question before comparing."""

_BOUND = 0.8
"""Shared rarity from which two fragments count as linked."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Direct:
    """The direct hits: numbers, keyword scores and cosines, best first by both together."""

    ns: NDArray[np.int64]
    keyword: Scores
    cosine: Scores
    fused: Scores


@dataclass(frozen=True, slots=True)
class DeepCandidates:
    """Candidates of a deep search with their features."""

    ns: NDArray[np.int64]
    features: dict[str, Scores]
    seeds: tuple[int, ...]
    via: dict[int, int]


def choose_seeds(direct: Direct, titled: Mapping[str, Sequence[int]]) -> dict[int, float]:
    """Return the seeds of the walk with their weights."""
    seeds: defaultdict[int, float] = defaultdict(float)
    for n, value in zip(direct.ns[:SEEDS], direct.fused[:SEEDS], strict=True):
        seeds[int(n)] += exp(value - direct.fused[0])
    for ns in longest_only(titled).values():
        for n in ns:
            seeds[n] += 1.0 / len(ns)
    return dict(seeds)


def longest_only(titled: Mapping[str, Sequence[int]]) -> dict[str, Sequence[int]]:
    """Drop names that are part of a longer name in the same question."""
    return {
        name: ns
        for name, ns in titled.items()
        if not any(name != other and f" {name} " in f" {other} " for other in titled)
    }


def candidates(direct: Direct, walked: Mass) -> NDArray[np.int64]:
    """Return the items that the walk reached, then the direct hits, without duplicates."""
    together = np.concatenate([walked.top(WALKED).ns, direct.ns[:DIRECT]])
    return np.array(list(dict.fromkeys(together.tolist())), np.int64)


def stems(text: str) -> frozenset[str]:
    """Return the words of a text cut to six letters, which is enough to match inflections."""
    return frozenset(word[:6] for word in words.split(text) if word not in words.STOP_WORDS)


@dataclass(frozen=True, slots=True)
class Material:
    """The data behind the features, loaded for the candidates and seeds of one question."""

    question: str
    query: Vectors
    texts: Mapping[int, str]
    vectors: Mapping[int, Vectors]
    rarity: Mapping[str, float]
    graph: Graph


def describe_candidates(
    material: Material,
    direct: Direct,
    seeds: Mapping[int, float],
    titled: Mapping[str, Sequence[int]],
    walked: Mass,
    ns: NDArray[np.int64],
) -> DeepCandidates:
    """Return the features of the candidates."""
    keyword = dict(zip(direct.ns.tolist(), direct.keyword.tolist(), strict=True))
    cosine = dict(zip(direct.ns.tolist(), direct.cosine.tolist(), strict=True))
    strength = dict(zip(walked.ns.tolist(), walked.values.tolist(), strict=True))
    top = walked.top(WALKED).ns.tolist()
    named = {n: 1 / len(ns_named) for ns_named in longest_only(titled).values() for n in ns_named}
    compared = sorted(seeds, key=lambda n: -seeds[n])[:COMPARED]
    comparison = _Comparison(material, compared, seeds)
    columns: defaultdict[str, list[float]] = defaultdict(list)
    via: dict[int, int] = {}
    for n in ns.tolist():
        columns["keyword"].append(keyword.get(n, 0.0))
        columns["cosine"].append(cosine.get(n) or comparison.cosine(n))
        columns["walk"].append(log(strength.get(n, 0.0) + 1e-5))
        columns["walk_rank"].append(1 / (1 + (top.index(n) if n in top else 99)))
        columns["named"].append(named.get(n, 0.0))
        about, mentions = comparison.named_by(n, named)
        columns["told_of"].append(about)
        columns["tells_of"].append(mentions)
        values, best_seed = comparison.judge(n)
        for name, value in values.items():
            columns[name].append(value)
        if best_seed is not None:
            via[n] = best_seed
    features = {name: np.array(values, np.float64) for name, values in columns.items()}
    for name in ("keyword", "cosine", "walk", "open_cosine"):
        features[name] = fusion.standardised(features[name])
    return DeepCandidates(ns, features, tuple(compared), via)


class _Comparison:
    """Compares candidates with the seeds."""

    def __init__(
        self, material: Material, compared: Sequence[int], seeds: Mapping[int, float]
    ) -> None:
        self._material = material
        self._compared = compared
        self._seeds = seeds
        self._strongest = max(seeds.values())
        asked = stems(material.question)
        self._worth = {stem: material.rarity.get(stem, 1.0) for stem in asked}
        self._total = sum(self._worth.values()) or 1.0
        self._stems: dict[int, frozenset[str]] = {}
        self._open = {n: self._left_open(n) for n in compared}

    def cosine(self, n: int) -> float:
        vector = self._material.vectors.get(n)
        return 0.0 if vector is None else float(vector @ self._material.query)

    def named_by(self, n: int, named: Mapping[int, float]) -> tuple[float, float]:
        """Return how clearly a fragment named in the question mentions n, and n one of those."""
        others = [other for other in named if other != n]
        mentioned_by = max((self._title_in(other, n) for other in others), default=0.0)
        mentions = max((self._title_in(n, other) for other in others), default=0.0)
        return mentioned_by, mentions

    def judge(self, n: int) -> tuple[dict[str, float], int | None]:
        """Return what a candidate adds to the seeds, and the seed it adds most to."""
        covers = self._worth.keys() & self._stems_of(n)
        adds = linked_adds = joint = 0.0
        open_cosine = seed_cosine = 0.0
        best_seed: int | None = None
        vector = self._material.vectors.get(n)
        for seed in self._compared:
            if seed == n:
                continue
            new = self._sum(covers - self._stems_of(seed))
            adds = max(adds, new)
            if vector is not None and seed in self._material.vectors:
                open_cosine = max(open_cosine, float(self._open[seed] @ vector))
                seed_cosine = max(seed_cosine, float(self._material.vectors[seed] @ vector))
            if self._linked(seed, n):
                weight = self._seeds[seed] / self._strongest
                if best_seed is None or weight * new > linked_adds:
                    best_seed = seed
                linked_adds = max(linked_adds, weight * new)
                covered = self._sum(self._worth.keys() & self._stems_of(seed))
                joint = max(joint, weight * (new + covered))
        values = {
            "adds": adds,
            "linked_adds": linked_adds,
            "joint": joint,
            "open_cosine": open_cosine,
            "seed_cosine": seed_cosine,
        }
        return values, best_seed

    def _sum(self, covered_stems: frozenset[str] | set[str]) -> float:
        return sum(self._worth[stem] for stem in covered_stems) / self._total

    def _stems_of(self, n: int) -> frozenset[str]:
        if n not in self._stems:
            self._stems[n] = stems(self._material.texts.get(n, ""))
        return self._stems[n]

    def _left_open(self, seed: int) -> Vectors:
        query = self._material.query
        vector = self._material.vectors.get(seed)
        if vector is None or not len(query):
            return query
        rest = query - _LEFT_OPEN * float(vector @ query) * vector
        length = np.float32(max(1e-9, float(np.linalg.norm(rest))))
        return (rest / length).astype(np.float32)

    def _title_in(self, text: int, title: int) -> float:
        """Return the rarity of a fragment's title if another fragment mentions it, else 0."""
        mentioned = self._material.graph.rarity_by_entity(text)
        titles = self._material.graph.rarity_by_entity(title)
        return max(
            (
                rarity
                for entity, (rarity, is_title) in titles.items()
                if is_title and entity in mentioned
            ),
            default=0.0,
        )

    def _linked(self, one: int, other: int) -> bool:
        if self._title_in(one, other) or self._title_in(other, one):
            return True
        mine = self._material.graph.rarity_by_entity(one)
        theirs = self._material.graph.rarity_by_entity(other)
        shared = sorted((mine[e][0] for e in mine.keys() & theirs.keys()), reverse=True)
        return sum(shared[:3]) > _BOUND


Steps = dict[int, str]
"""Fragments one step away, each with the entity or edge kind that links it."""


def find_path(db: Connection, seeds: Sequence[int], n: int) -> tuple[str, ...]:
    """Return the path from a seed to a fragment: titles, and between them what links the two.

    At most one other fragment is in between; the path is empty if there is none.
    """
    near = _find_steps(db, n)
    for seed in seeds:
        if seed in near and seed != n:
            return _format_path(db, [seed, n], [near[seed]])
    for seed in seeds:
        around = _find_steps(db, seed) if seed != n else {}
        between = sorted(near.keys() & around.keys() - {n, *seeds})
        visible = fragments.filter_visible(db, FragmentFilter(), between) if between else set()
        if visible:
            middle = min(visible)
            return _format_path(db, [seed, middle, n], [around[middle], near[middle]])
    return ()


def _find_steps(db: Connection, n: int) -> Steps:
    """Return the fragments one step away; links by rarer entities take precedence."""
    steps: Steps = {}
    for row in graph.edges_among(db, [n], LINKING):
        other = row.target_n if row.source_n == n else row.source_n
        steps.setdefault(other, row.kind.replace("_", " "))
    table = graph.mentions_of_items(db, [n])
    uses = {int(row[1]): int(row[3]) for row in table if 2 <= row[3] <= HUB_USES}
    names = graph.entity_names(db, list(uses))
    back = graph.mentions_of_entities(db, list(uses)).tolist()
    for item, entity, _, _ in sorted(back, key=lambda row: (uses[row[1]], row[1])):
        if item != n:
            steps.setdefault(item, names[entity])
    return steps


def _format_path(db: Connection, ns: Sequence[int], links: Sequence[str]) -> tuple[str, ...]:
    by_n = fragments.by_number(db, ns)
    titles = [by_n[n].summary for n in ns]
    steps = zip(links, titles[1:], strict=True)
    return (titles[0], *(part for step in steps for part in step))
