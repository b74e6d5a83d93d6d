"""One search over the vector index: which rows may be found, which come near, how near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lore.store.vector_scan import (
    BLOCK_ROWS,
    Float32s,
    Int64s,
    SlotLookup,
    candidate_count,
    dot_codes,
    encode,
    nearest_by_sign,
    sign_planes,
    unit_rows,
)

if TYPE_CHECKING:
    from lore.store.vector_layout import Views

__all__ = ["Snapshot", "Where", "rescore"]

# Measured per row at 384 dimensions: gathering a code 0.2 us, scanning codes in sequence
# 0.02 us, scanning signs 0.009 us. So many rows in sequence cost as much as one gathered.
CODES_PER_GATHER = 8
SIGNS_PER_GATHER = 32
# Up to so many values a filter compares each in turn, which is quicker than a set lookup.
FEW_VALUES = 8
# An unsorted tail longer than this is merged into the sorted part of the slot lookup.
LOOKUP_TAIL_ROWS = 4_096

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Where:
    """Which items a search may return; `since_us` is included, `until_us` is not."""

    projects: tuple[int, ...] | None = None
    types: tuple[int, ...] | None = None
    since_us: int | None = None
    until_us: int | None = None
    ns: Int64s | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows up to `count` of one mapping, which writers never move."""

    views: Views
    count: int
    mean: Float32s | None
    lookup: SlotLookup

    def flat(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column of all rows as one array."""
        return column.reshape(-1)[: self.count]

    def living(self) -> Bools:
        """Return which rows are neither replaced nor removed."""
        mask: Bools = self.flat(self.views.alive) != 0
        return mask

    def slots_of(self, ns: Int64s) -> Int64s:
        """Return the living slots of the sorted `ns`; the caller's lock guards the lookup."""
        start = self.lookup.rows
        block, row = divmod(start, BLOCK_ROWS)
        tail = self.views.n[block:].reshape(-1)[row : row + max(0, self.count - start)]
        if len(tail) > LOOKUP_TAIL_ROWS:
            self.lookup.extend(tail)
            tail = tail[:0]
        if not len(ns):
            return np.empty(0, np.int64)
        slots: Int64s = self.lookup.find(ns, tail)
        slots = slots[slots < self.count]
        at = np.divmod(slots, BLOCK_ROWS)
        living: Bools = self.views.alive[at] != 0
        numbers: Int64s = self.views.n[at]
        named: Bools = ns[np.searchsorted(ns[:-1], numbers)] == numbers
        return slots[living & named]

    def allowed(self, where: Where | None, named: Int64s | None) -> Bools:
        """Return which rows the filter lets through; `named` are the slots of `where.ns`."""
        mask = self.living()
        if where is None:
            return mask
        if named is not None:
            chosen = np.zeros(self.count, np.bool_)
            chosen[named] = True
            mask &= chosen
        if where.projects is not None:
            mask &= _any_of(self.flat(self.views.project), where.projects)
        if where.types is not None:
            mask &= _any_of(self.flat(self.views.type), where.types)
        if where.since_us is not None:
            mask &= self.flat(self.views.created) >= where.since_us
        if where.until_us is not None:
            mask &= self.flat(self.views.created) < where.until_us
        return mask

    def candidates(self, unit: Float32s, k: int, allowed: Bools) -> Int64s:
        """Return the allowed slots worth scoring: all if they are few, else the nearest."""
        rows = int(np.count_nonzero(allowed))
        wanted = candidate_count(k, rows, unit.shape[1])
        if self.mean is None or rows <= wanted + self.count // SIGNS_PER_GATHER:
            return np.flatnonzero(allowed)
        query = sign_planes(*encode(unit), self.mean)[:, 0]
        return nearest_by_sign(self.views.planes, query, allowed, wanted)

    def scores(self, unit: Float32s, slots: Int64s) -> Float32s:
        """Return the int8 cosine of each slot with the query."""
        code, scale = encode(unit)
        if len(slots) * CODES_PER_GATHER > self.count:
            dots = self._scan(code[0])[slots]
        else:
            dots = self._gather(code[0], slots)
        # Damaged scales may be anything; such rows rank last and must not warn.
        with np.errstate(all="ignore"):
            scores: Float32s = dots * self.views.scale[np.divmod(slots, BLOCK_ROWS)] * scale[0]
        scores[~np.isfinite(scores)] = -1
        return scores

    def _scan(self, code: NDArray[np.int8]) -> Float32s:
        dots = np.empty(self.count, np.float32)
        for start in range(0, self.count, BLOCK_ROWS):
            part = dots[start : start + BLOCK_ROWS]
            part[:] = dot_codes(code, self.views.codes[start // BLOCK_ROWS, : len(part)])
        return dots

    def _gather(self, code: NDArray[np.int8], slots: Int64s) -> Float32s:
        dots = np.empty(len(slots), np.float32)
        for start in range(0, len(slots), BLOCK_ROWS):
            part = slots[start : start + BLOCK_ROWS]
            rows = self.views.codes[np.divmod(part, BLOCK_ROWS)]
            dots[start : start + len(part)] = dot_codes(code, rows)
        return dots


def rescore(ns: Int64s, vectors: NDArray[np.floating], unit: Float32s) -> tuple[Int64s, Float32s]:
    """Return the items that are still there, and their exact cosines."""
    units = unit_rows(vectors)
    there = units.any(axis=1)
    return ns[there], units[there] @ unit


def _any_of(values: NDArray[Any], wanted: tuple[int, ...]) -> Bools:
    if len(wanted) > FEW_VALUES:
        return np.isin(values, wanted)
    mask = np.zeros(len(values), np.bool_)
    for value in wanted:
        mask |= values == value
    return mask
