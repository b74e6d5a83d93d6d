"""Deep search: fragments that answer a question only together with others.

Seeds are the best direct hits and fragments whose title the question names. PageRank from
there finds what they are linked to; a linear model then asks of each candidate what it adds
to a seed: the words of the question that the seed leaves open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from lore.recall import fusion, pagerank
from lore.recall.fusion import Scores
from lore.recall.graph import Graph
from lore.text import words

SEEDS = 3
"""Direct hits that the walk starts from; more blur it."""

DIRECT = 15
WALKED = 30
TITLED = 50
COMPARED = 6
"""Seeds with which each candidate is compared."""

_LEFT_OPEN = 0.5
"""Share of a seed's direction that is taken out of the question before comparing."""

_BOUND = 0.8
"""Shared rarity from which two fragments count as linked."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Direct:
    """The direct hits: numbers, keyword scores, cosines, best first by both together."""

    ns: NDArray[np.int64]
    keyword: Scores
    cosine: Scores
    fused: Scores


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates of a deep search with the features of each."""

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
    """Drop names that are only part of a longer name in the same question."""
    return {
        name: ns
        for name, ns in titled.items()
        if not any(name != other and f" {name} " in f" {other} " for other in titled)
    }


def candidates(direct: Direct, walked: pagerank.Mass) -> NDArray[np.int64]:
    """Return what the walk reached, then the direct hits, each once."""
    together = np.concatenate([walked.top(WALKED).ns, direct.ns[:DIRECT]])
    return np.array(list(dict.fromkeys(together.tolist())), np.int64)


def stems(text: str) -> frozenset[str]:
    """Return the words of a text cut to six letters: enough to meet their inflections."""
    return frozenset(word[:6] for word in words.split(text) if word not in words.STOP_WORDS)


@dataclass(frozen=True, slots=True)
class Material:
    """What the features are made of, read for the candidates and seeds of one question."""

    question: str
    query: Vectors
    texts: Mapping[int, str]
    vectors: Mapping[int, Vectors]
    rarity: Mapping[str, float]
    graph: Graph


def describe(
    material: Material,
    direct: Direct,
    seeds: Mapping[int, float],
    titled: Mapping[str, Sequence[int]],
    walked: pagerank.Mass,
    ns: NDArray[np.int64],
) -> Found:
    """Return the features of the candidates."""
    keyword = dict(zip(direct.ns.tolist(), direct.keyword.tolist(), strict=True))
    cosine = dict(zip(direct.ns.tolist(), direct.cosine.tolist(), strict=True))
    strength = dict(zip(walked.ns.tolist(), walked.values.tolist(), strict=True))
    top = walked.top(WALKED).ns.tolist()
    named = {n: 1 / len(found) for found in longest_only(titled).values() for n in found}
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
        judged = comparison.judge(n)
        for name, value in judged.values.items():
            columns[name].append(value)
        if judged.best_seed is not None:
            via[n] = judged.best_seed
    features = {name: np.array(values, np.float64) for name, values in columns.items()}
    for name in ("keyword", "cosine", "walk", "open_cosine"):
        features[name] = fusion.standardised(features[name])
    return Found(ns, features, tuple(compared), via)


@dataclass(frozen=True, slots=True)
class _Judged:
    values: dict[str, float]
    best_seed: int | None


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
        """Return how clearly a fragment named in the question tells of n, and n of one."""
        others = [other for other in named if other != n]
        told = max((self._title_in(other, n) for other in others), default=0.0)
        tells = max((self._title_in(n, other) for other in others), default=0.0)
        return told, tells

    def judge(self, n: int) -> _Judged:
        """Return what a candidate adds to the seeds, and the seed that it adds most to."""
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
                known = self._sum(self._worth.keys() & self._stems_of(seed))
                joint = max(joint, weight * (new + known))
        values = {
            "adds": adds,
            "linked_adds": linked_adds,
            "joint": joint,
            "open_cosine": open_cosine,
            "seed_cosine": seed_cosine,
        }
        return _Judged(values, best_seed)

    def _sum(self, found: frozenset[str] | set[str]) -> float:
        return sum(self._worth[stem] for stem in found) / self._total

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
        """Return how telling a fragment's title is, if another fragment mentions it."""
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
