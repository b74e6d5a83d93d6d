"""Fuse the scores of several searches into one; pure functions on arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.lazy_dataclass import dataclass

Scores = NDArray[np.float64]

_DATA = Path(__file__).parents[1] / "data"

CLIPPED = 8.0
"""Deviations from the mean that a feature may count: a rare one would outweigh all others."""

RRF_K = 60
RRF_VECTOR_WEIGHT = 1.5
"""Weight of vectors against keywords once a question has two terms."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear model over named features, and the provenance of its coefficients."""

    names: tuple[str, ...]
    weights: Scores
    provenance: Mapping[str, object]

    def score(self, features: Mapping[str, Scores]) -> Scores:
        """Return the score of each candidate."""
        scores: Scores = self.matrix(features) @ self.weights
        return scores

    def matrix(self, features: Mapping[str, Scores]) -> Scores:
        """Return the features of the model as columns, in its order."""
        return np.column_stack([features[name] for name in self.names])


@dataclass(frozen=True, slots=True)
class RankingModel:
    """A linear model with one hidden layer beside it, over standardized features."""

    names: tuple[str, ...]
    mean: Scores
    deviation: Scores
    linear: Scores
    hidden: Scores
    hidden_bias: Scores
    output: Scores
    provenance: Mapping[str, object]

    def score(self, features: Mapping[str, Scores]) -> Scores:
        """Return the score of each candidate."""
        standard = self._standardised(features)
        return np.asarray((standard * self.linear).sum(axis=1) + self._interaction(standard))

    def contributions(self, features: Mapping[str, Scores]) -> Scores:
        """Return what each feature of each candidate adds directly."""
        return np.asarray(self._standardised(features) * self.linear)

    def interaction(self, features: Mapping[str, Scores]) -> Scores:
        """Return what the hidden layer adds to each candidate."""
        return self._interaction(self._standardised(features))

    def _interaction(self, standard: Scores) -> Scores:
        return np.asarray(np.tanh(standard @ self.hidden + self.hidden_bias) @ self.output)

    def _standardised(self, features: Mapping[str, Scores]) -> Scores:
        matrix = np.column_stack([features[name] for name in self.names])
        return np.clip((matrix - self.mean) / self.deviation, -CLIPPED, CLIPPED)


def read_data(name: str) -> dict[str, Any]:
    """Return the content of a data file of the package."""
    content: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_bytes())
    return content


@cache
def load_ranking(name: str = "ranking") -> RankingModel:
    """Return the model that ranks messages, or the one that does so without vectors."""
    raw = read_data(name)
    arrays = {
        key: np.array(raw.pop(key), np.float64)
        for key in ("mean", "deviation", "linear", "hidden", "hidden_bias", "output")
    }
    return RankingModel(tuple(raw.pop("features")), **arrays, provenance=raw)


@cache
def load_model(name: str, part: str = "") -> LinearModel:
    """Return a linear model shipped with the package, or one part of it."""
    raw = read_data(name)
    weights = raw.pop("weights")
    if part:
        weights = weights[part]
    return LinearModel(tuple(weights), np.array(list(weights.values()), np.float64), raw)


def standardised(values: Scores) -> Scores:
    """Return values with mean 0 and deviation 1; zeros where they are all equal."""
    deviation = values.std() if len(values) else 0.0
    if deviation < 1e-9:
        return np.zeros_like(values)
    standard: Scores = (values - values.mean()) / deviation
    return standard


def shares(values: Scores) -> Scores:
    """Return values as shares of the largest."""
    largest = values.max() if len(values) else 0.0
    scaled: Scores = values / largest if largest > 1e-9 else np.zeros_like(values)
    return scaled


def ranks(values: Scores) -> NDArray[np.int64]:
    """Return the rank of each value, 0 for the largest; equals keep their order."""
    order = np.argsort(-values, kind="stable")
    places = np.empty(len(values), np.int64)
    places[order] = np.arange(len(values))
    return places


def reciprocal_ranks(keyword: Scores, vector: Scores, terms: int) -> Scores:
    """Fuse two searches by reciprocal rank (RRF); a candidate counts only where it was found."""
    weight = RRF_VECTOR_WEIGHT if terms >= 2 else 1.0
    total = np.where(keyword > 0, 1.0 / (RRF_K + 1 + ranks(keyword)), 0.0)
    return total + np.where(vector > 0, weight / (RRF_K + 1 + ranks(vector)), 0.0)


def weighted(keyword: Scores, vector: Scores) -> Scores:
    """Fuse two searches by the sum of their standard scores."""
    return standardised(keyword) + standardised(vector)


def best_first(scores: Scores, ties: Sequence[int]) -> NDArray[np.int64]:
    """Return the places of the candidates, best first; ties by `ties`, larger first."""
    return np.lexsort((-np.asarray(ties, np.int64), -scores))
