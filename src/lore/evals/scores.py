"""Scores: recall, hits and reciprocal rank of ranked answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean, median


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question brought."""

    category: str
    ranked: tuple[str, ...]
    gold: frozenset[str]
    took_ms: float
    at_hand: frozenset[str] = frozenset()

    def recall(self, k: int) -> float:
        """Return the share of the gold units among the first k."""
        return len(self.gold & set(self.ranked[:k])) / len(self.gold)

    def recall_with_standing(self, k: int) -> float:
        """Return the same where standing instructions count as found: they are at hand."""
        return len(self.gold & (set(self.ranked[:k]) | self.at_hand)) / len(self.gold)

    def hit(self, k: int) -> float:
        """Return 1 if any gold unit is among the first k."""
        return float(bool(self.gold & set(self.ranked[:k])))

    def reciprocal_rank(self) -> float:
        """Return 1 / rank of the first gold unit, 0 if there is none."""
        for rank, unit in enumerate(self.ranked, 1):
            if unit in self.gold:
                return 1 / rank
        return 0.0


@dataclass(frozen=True, slots=True)
class Scores:
    """The means over some questions."""

    n: int
    r5: float
    r10: float
    r20: float
    h1: float
    h5: float
    h10: float
    mrr: float
    ms_p50: float
    r10_standing: float
    by_category: dict[str, Scores] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the scores under the names that programs read."""
        values: dict[str, object] = {
            "n": self.n,
            **{name: round(getattr(self, name), 4) for name in
               ("r5", "r10", "r20", "h1", "h5", "h10", "mrr", "r10_standing")},
        }  # fmt: skip
        if self.by_category:
            values["by_category"] = {k: v.as_json() for k, v in self.by_category.items()}
        values["ms_p50"] = round(self.ms_p50, 2)
        return values


def score(outcomes: Sequence[Outcome], apart: frozenset[str] = frozenset()) -> Scores:
    """Average outcomes; categories that stand apart count only for themselves."""
    counted = [o for o in outcomes if o.category not in apart] or list(outcomes)
    categories = sorted({o.category for o in outcomes})
    split = {name: _means([o for o in outcomes if o.category == name]) for name in categories}
    return _means(counted, split)


def _means(outcomes: Sequence[Outcome], split: dict[str, Scores] | None = None) -> Scores:
    if not outcomes:
        return Scores(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return Scores(
        n=len(outcomes),
        r5=mean(o.recall(5) for o in outcomes),
        r10=mean(o.recall(10) for o in outcomes),
        r20=mean(o.recall(20) for o in outcomes),
        h1=mean(o.hit(1) for o in outcomes),
        h5=mean(o.hit(5) for o in outcomes),
        h10=mean(o.hit(10) for o in outcomes),
        mrr=mean(o.reciprocal_rank() for o in outcomes),
        ms_p50=median(o.took_ms for o in outcomes),
        r10_standing=mean(o.recall_with_standing(10) for o in outcomes),
        by_category=split or {},
    )
