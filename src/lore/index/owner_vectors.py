"""The vectors of one owner in arrays of this process, searched exactly.

They never change: a later state is another object, so that a search under way needs no lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lore.index.numbers import is_among
from lore.index.quantization import best_first, dot_codes, encode, unit_rows
from lore.index.vector_index import MOST_PASSAGES, PASSAGES
from lore.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lore.index.nearest_items import Nearest
    from lore.index.quantization import Float32s, Int8s, Int64s
    from lore.index.vector_index import VectorFilter

    Bools = NDArray[np.bool_]


_COMPARED = 96
"""Passages that are compared with the query itself: those of the first 48 items or so."""


@dataclass(frozen=True, slots=True)
class OwnerVectors:
    """A row for each passage, in the order of their change numbers."""

    codes: Int8s
    scale: Float32s
    seq: Int64s
    n: Int64s
    project: Int64s
    type: Int64s
    created: Int64s

    @classmethod
    def of(cls, vectors: Float32s, seq: Int64s, *columns: Int64s) -> OwnerVectors:
        """Return vectors with their change numbers, items, projects, types and times."""
        codes, scale = encode(unit_rows(vectors))
        return cls(codes, scale, seq, *columns)

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def size(self) -> int:
        """Return the memory that the arrays take in bytes."""
        return sum(column.nbytes for column in self._columns())

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return (
            self.codes, self.scale, self.seq, self.n, self.project, self.type, self.created,
        )  # fmt: skip

    def changed(self, gone: Sequence[int] | Int64s, added: OwnerVectors) -> OwnerVectors:
        """Return these vectors without some change numbers, and with others."""
        stays = ~is_among(self.seq, gone)
        # Change numbers grow: what is added comes last, unless a backup was loaded.
        is_ordered = not len(added) or not len(self) or added.seq[0] > self.seq[-1]
        columns = []
        for old, new in zip(self._columns(), added._columns(), strict=True):
            columns.append(np.concatenate((old[stays] if len(gone) else old, new)))
        whole = OwnerVectors(*columns)
        if is_ordered:
            return whole
        order = np.argsort(whole.seq, kind="stable")
        return OwnerVectors(*(column[order] for column in columns))

    def search(self, query: Float32s, k: int, where: VectorFilter | None) -> Nearest:
        """Return the numbers and cosines of the k nearest items, best first.

        The cosines of the first are those of the query itself, the others' of its int8 code.
        """
        scores = self._scores(query)
        allowed = self._filter(where)
        places = None if allowed is None else np.flatnonzero(allowed)
        if places is not None:
            scores = scores[places]
        ns, best = self._best_items(query, places, scores, PASSAGES * k)
        if len(ns) < k and PASSAGES * k < len(scores):  # a few long texts took most of the rows
            ns, best = self._best_items(query, places, scores, MOST_PASSAGES * k)
        return ns[:k], best[:k]

    def cosines(self, query: Float32s, ns: Int64s) -> NDArray[np.float64]:
        """Return the int8 cosine of each item's best passage; 0 for an item without a vector."""
        places = np.flatnonzero(is_among(self.n, ns))
        best: dict[int, float] = {}
        scores = self._scores(query, places).tolist()
        for n, score in zip(self.n[places].tolist(), scores, strict=True):
            best[n] = max(score, best.get(n, -1.0))
        return np.array([best.get(n, 0.0) for n in ns.tolist()], np.float64)

    def _scores(self, query: Float32s, places: Int64s | None = None) -> Float32s:
        code, scale = encode(unit_rows(query))
        codes = self.codes if places is None else self.codes[places]
        scores = dot_codes(code[0], codes)
        scores *= self.scale if places is None else self.scale[places]
        scores *= scale[0]
        return scores

    def _filter(self, where: VectorFilter | None) -> Bools | None:
        """Return which rows pass a filter; None if all do."""
        if where is None:
            return None
        tests = []
        if where.projects is not None:
            of_projects = is_among(self.project, where.projects)
            if where.beside is not None:
                of_projects |= is_among(self.n, where.beside)
            tests.append(of_projects)
        if where.types is not None:
            tests.append(is_among(self.type, where.types))
        if where.ns is not None:
            tests.append(is_among(self.n, where.ns))
        if where.since_us is not None:
            tests.append(self.created >= where.since_us)
        if where.until_us is not None:
            tests.append(self.created < where.until_us)
        return np.logical_and.reduce(tests) if tests else None

    def _best_items(
        self, query: Float32s, places: Int64s | None, scores: Float32s, rows: int
    ) -> Nearest:
        best = best_first(scores, rows)
        best_scores = scores[best]
        slots = best if places is None else places[best]
        head = self._compare(query, slots[:_COMPARED])
        order = np.argsort(-head, kind="stable")
        slots[: len(head)] = slots[order]
        best_scores[: len(head)] = head[order]
        ns = self.n[slots]
        first = np.sort(np.unique(ns, return_index=True)[1])
        return ns[first], best_scores[first]

    def _compare(self, query: Float32s, slots: Int64s) -> Float32s:
        """Return the cosines of some rows with a query that is not rounded to a code."""
        unit = unit_rows(query)[0]
        rows = self.codes[slots, : len(unit)].astype(np.float32)
        cosines: Float32s = (rows @ unit) * self.scale[slots]
        return cosines
