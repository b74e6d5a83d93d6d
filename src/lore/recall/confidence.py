"""Estimate how likely the best candidates answer a question at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lore.lazy_dataclass import dataclass
from lore.recall import fusion

Floats = NDArray[np.float64]

BEST = 5
"""The best candidates that are judged: as many as a person is shown."""

NAMES = (
    "margin", "spread", "share", "cosine", "cosine_best", "cosine_mean", "covered", "covered_best",
    "covered_near", "covered_close", "keyword", "exact", "pairs", "people", "agent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConfidenceModel:
    """A logistic model over what the best candidates have in common with the question."""

    mean: Floats
    deviation: Floats
    weights: Floats
    bias: float
    none: Mapping[str, float]
    """The probability below which nothing answers, for agents at work and for people."""

    def threshold(self, features: Mapping[str, Floats]) -> float:
        """Return the probability below which nothing answers in such a memory."""
        return self.none["agent" if features["agent"].any() else "people"]

    def probability(self, scores: Floats, features: Mapping[str, Floats]) -> float:
        """Return the probability that one of the best candidates answers the question."""
        if not len(scores):
            return 0.0
        z = (describe(scores, features) - self.mean) / self.deviation
        return float(1 / (1 + np.exp(-(np.clip(z, -6, 6) @ self.weights + self.bias))))


def describe(scores: Floats, features: Mapping[str, Floats]) -> Floats:
    """Return the features of an answer: how the best candidates stand out, and how they fit."""
    order = np.argsort(-scores, kind="stable")
    best = order[:BEST]
    first = best[0]
    odds = np.exp(scores - scores[first])
    cosine, covered = features["cosine"], features["covered"]
    values = (
        scores[first] - scores[order[min(1, len(order) - 1)]],
        scores[first] - scores[best].mean(),
        float(odds[best].sum() / odds.sum()),
        cosine[first],
        cosine[best].max(),
        cosine[best].mean(),
        covered[first],
        covered[best].max(),
        features["covered_near"][best].max(),
        features["covered_close"][best].max(),
        features["keyword"][first],
        features["exact"][best].max(),
        features["pairs"][best].max(),
        features["people"][first],
        features["agent"][first],
    )
    return np.array(values, np.float64)


@cache
def load_confidence() -> ConfidenceModel:
    """Return the model shipped with the package."""
    raw = fusion.read_data("confidence")
    arrays = {key: np.array(raw[key], np.float64) for key in ("mean", "deviation", "weights")}
    return ConfidenceModel(**arrays, bias=raw["bias"], none=raw["none"])
