"""Near pairs: which rows of a matrix of unit vectors are close, without comparing all with all.

Few rows are compared exactly. Many are cut into leaves by trees of random directions, several
times over, and compared within their leaves; a pair that is close shares a leaf in at least one
tree nearly always (`benchmarks/consolidate.py` measures how often).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numkong as nk
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Places = NDArray[np.int64]

_EXACT = 40_000_000
"""So many comparisons are made exactly: half a second of one core with 384 dimensions."""

_BLOCK = 512
_LEAF = 256
_TREES = 20
_AXES = 128
"""Cuts are found in fewer dimensions than the rows have."""

_SAMPLE = 128
"""Rows that a cut is found by."""

_MOST_EACH = 16
"""A row keeps so many of its nearest in one comparison: a thousand copies of one text must not
make a million pairs."""

_SEED = 7


class Pairs(NamedTuple):
    """Pairs of rows with their cosines: the lower row first, nearest pairs first."""

    a: Places
    b: Places
    cosine: Matrix

    def __len__(self) -> int:
        return len(self.a)


def near_pairs(matrix: Matrix, fresh: NDArray[np.bool_], *, above: float) -> Pairs:
    """Return the pairs closer than a cosine of which at least one row is fresh."""
    places = np.flatnonzero(fresh)
    if not len(places):
        return _sorted([])
    if len(places) * len(matrix) <= _EXACT:
        return _sorted(list(_exact(matrix, places, above)))
    found = _sorted(list(_by_trees(matrix, above)))
    wanted = fresh[found.a] | fresh[found.b]
    return Pairs(found.a[wanted], found.b[wanted], found.cosine[wanted])


def _exact(matrix: Matrix, places: Places, above: float) -> Iterator[Pairs]:
    for start in range(0, len(places), _BLOCK):
        rows = places[start : start + _BLOCK]
        yield _above(_cosines(matrix[rows], matrix), rows, np.arange(len(matrix)), above)


def _cosines(rows: Matrix, others: Matrix) -> Matrix:
    """Compare rows on this thread alone: numpy would wake others for each of many small blocks,
    and on a busy machine they wait for each other four times as long as they work."""
    found: Matrix = np.asarray(nk.cdist(rows, others, "dot", threads=1)).astype(np.float32)
    return found


def _above(cosines: Matrix, rows: Places, columns: Places, above: float) -> Pairs:
    """Return the close pairs of one comparison, of each row the nearest."""
    cosines[rows[:, None] == columns[None, :]] = -1.0
    if cosines.shape[1] > _MOST_EACH:
        crowded = np.flatnonzero((cosines > above).sum(axis=1) > _MOST_EACH)
        for row in crowded:
            least = np.partition(cosines[row], -_MOST_EACH)[-_MOST_EACH]
            cosines[row, cosines[row] < least] = -1.0
    at, to = np.nonzero(cosines > above)
    a, b = rows[at], columns[to]
    return Pairs(np.minimum(a, b), np.maximum(a, b), cosines[at, to])


def _by_trees(matrix: Matrix, above: float) -> Iterator[Pairs]:
    draw = np.random.default_rng(_SEED)
    axes = draw.standard_normal((matrix.shape[1], _AXES), dtype=np.float32)
    outline = matrix @ axes
    for _ in range(_TREES):
        for leaf in _leaves(outline, draw):
            rows = matrix[leaf]
            yield _above(_cosines(rows, rows), leaf, leaf, above)


def _leaves(outline: Matrix, draw: np.random.Generator) -> Iterator[Places]:
    """Cut rows in two equal halves, and those again, down to the leaves."""
    waiting = [np.arange(len(outline))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= _LEAF:
            yield rows
            continue
        half = len(rows) // 2
        order = np.argpartition(outline[rows] @ _direction(outline, rows, draw), half)
        waiting += [rows[order[:half]], rows[order[half:]]]


def _direction(outline: Matrix, rows: Places, draw: np.random.Generator) -> Matrix:
    """Return the direction between two crowds among the rows: along it they spread most."""
    sample = outline[draw.choice(rows, size=_SAMPLE, replace=False)]
    centres = sample[:2]
    for _ in range(2):
        across = centres[0] - centres[1]
        first = (sample - centres.mean(axis=0)) @ across > 0
        if first.all() or not first.any():
            break
        centres = np.stack([sample[first].mean(axis=0), sample[~first].mean(axis=0)])
    direction: Matrix = centres[0] - centres[1]
    return direction


def _sorted(found: list[Pairs]) -> Pairs:
    """Return all pairs once, nearest first."""
    if not found:
        nothing = np.empty(0, np.int64)
        return Pairs(nothing, nothing, np.empty(0, np.float32))
    a, b, cosine = (np.concatenate(part) for part in zip(*found, strict=True))
    high = int(b.max()) + 1 if len(b) else 1
    _, first = np.unique(a * high + b, return_index=True)
    a, b, cosine = a[first], b[first], cosine[first]
    order = np.lexsort((b, a, -cosine))
    return Pairs(a[order], b[order], cosine[order])
