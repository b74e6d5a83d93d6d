"""Find pairs of similar fragments: exactly, or in random projection trees where there are many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numkong as nk
import numpy as np
from numpy.typing import NDArray

from lore.digest.consolidation.phase import PhaseRun, RootPair, SimilarRoots
from lore.store import consolidation, vectors
from lore.store.consolidation import ActiveEmbedder
from lore.store.database import Database

Matrix = NDArray[np.float32]
Places = NDArray[np.int64]

_MAX_EXACT_COMPARISONS = 40_000_000
"""So many comparisons are made exactly: half a second of one core with 384 dimensions."""

_BLOCK = 512
_LEAF = 256
_TREES = 20
_AXES = 128
"""Cuts are found in fewer dimensions than the rows have."""

_SAMPLE = 128
"""Rows from which a cut is computed."""

_MAX_PER_ROW = 16
"""The nearest rows that each row keeps per comparison:

a thousand copies of one text must not make a million pairs.
"""

_SEED = 7


class Pairs(NamedTuple):
    """Pairs of rows with their cosines: the lower row first, nearest pairs first."""

    a: Places
    b: Places
    cosine: Matrix

    def __len__(self) -> int:
        return len(self.a)


def similar_pairs(matrix: Matrix, fresh: NDArray[np.bool_], *, above: float) -> Pairs:
    """Return the pairs above a cosine of which at least one row is fresh."""
    places = np.flatnonzero(fresh)
    if not len(places):
        return _deduplicate([])
    if len(places) * len(matrix) <= _MAX_EXACT_COMPARISONS:
        return _deduplicate(list(_compare_all(matrix, places, above)))
    pairs = _deduplicate(list(_compare_in_trees(matrix, above)))
    has_fresh = fresh[pairs.a] | fresh[pairs.b]
    return Pairs(pairs.a[has_fresh], pairs.b[has_fresh], pairs.cosine[has_fresh])


def _compare_all(matrix: Matrix, places: Places, above: float) -> Iterator[Pairs]:
    for start in range(0, len(places), _BLOCK):
        rows = places[start : start + _BLOCK]
        yield _pairs_above(_cosines(matrix[rows], matrix), rows, np.arange(len(matrix)), above)


def _cosines(rows: Matrix, others: Matrix) -> Matrix:
    """Compare rows on this thread alone.

    Numpy would wake other threads for each of many small blocks, and on a busy machine they wait
    for each other four times as long as they work.
    """
    cosines: Matrix = np.asarray(nk.cdist(rows, others, "dot", threads=1)).astype(np.float32)
    return cosines


def _pairs_above(cosines: Matrix, rows: Places, columns: Places, above: float) -> Pairs:
    """Return the similar pairs of one comparison, limited to the nearest of each row."""
    cosines[rows[:, None] == columns[None, :]] = -1.0
    if cosines.shape[1] > _MAX_PER_ROW:
        crowded = np.flatnonzero((cosines > above).sum(axis=1) > _MAX_PER_ROW)
        for row in crowded:
            least = np.partition(cosines[row], -_MAX_PER_ROW)[-_MAX_PER_ROW]
            cosines[row, cosines[row] < least] = -1.0
    at, to = np.nonzero(cosines > above)
    a, b = rows[at], columns[to]
    return Pairs(np.minimum(a, b), np.maximum(a, b), cosines[at, to])


def _compare_in_trees(matrix: Matrix, above: float) -> Iterator[Pairs]:
    draw = np.random.default_rng(_SEED)
    axes = draw.standard_normal((matrix.shape[1], _AXES), dtype=np.float32)
    outline = matrix @ axes
    for _ in range(_TREES):
        for leaf in _leaves(outline, draw):
            rows = matrix[leaf]
            yield _pairs_above(_cosines(rows, rows), leaf, leaf, above)


def _leaves(outline: Matrix, draw: np.random.Generator) -> Iterator[Places]:
    """Split rows into equal halves, recursively, down to the leaves."""
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
    """Return the direction between two clusters among the rows, along which they spread most."""
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


def _deduplicate(parts: list[Pairs]) -> Pairs:
    if not parts:
        nothing = np.empty(0, np.int64)
        return Pairs(nothing, nothing, np.empty(0, np.float32))
    a, b, cosine = (np.concatenate(part) for part in zip(*parts, strict=True))
    high = int(b.max()) + 1 if len(b) else 1
    _, first = np.unique(a * high + b, return_index=True)
    a, b, cosine = a[first], b[first], cosine[first]
    order = np.lexsort((b, a, -cosine))
    return Pairs(a[order], b[order], cosine[order])


SIMILAR_ABOVE = 0.8
"""The phases look at roots above this cosine, each with a threshold of its own."""

_NO_VECTORS = "there are no vectors to compare: no embedder was used here yet"


def find_embedder(run: PhaseRun) -> ActiveEmbedder | None:
    """Return the embedder whose vectors are compared; skip the phase if there is none."""
    with run.database.read() as db:
        embedder = consolidation.find_active_embedder(db)
    if embedder is None:
        run.skipped = _NO_VECTORS
    return embedder


def find_similar_roots(run: PhaseRun, embedding: ActiveEmbedder, mark: str) -> SimilarRoots:
    """Compare the roots that changed since a progress mark, or their children, with all roots."""
    with run.database.read() as db:
        since = consolidation.get_progress(db, mark)
    return find_similar_roots_since(run, embedding, since)


def find_similar_roots_since(run: PhaseRun, embedding: ActiveEmbedder, since: int) -> SimilarRoots:
    """Compare the roots that changed since a change number, once in a cycle."""
    if since not in run.similar_roots:
        run.similar_roots[since] = compare_roots(run.database, embedding, since)
    return run.similar_roots[since]


def compare_roots(database: Database, embedding: ActiveEmbedder, since: int) -> SimilarRoots:
    """Compare the roots that changed since a change number, or their children, with all roots."""
    with database.read() as db:
        newest = vectors.newest_seq(db)
        if since >= newest:
            return SimilarRoots([], since, 0)
        roots, matrix = consolidation.embedded_roots(db, embedding)
        children = consolidation.newest_child_changes(db)
    changed = [max(root.seq, children.get(root.n, 0)) > since for root in roots]
    fresh = np.array(changed, bool)
    places = np.array([root.scope for root in roots], np.int64)
    pairs: list[RootPair] = []
    for mine in _rows_by_project(places):
        similar = similar_pairs(matrix[mine], fresh[mine], above=SIMILAR_ABOVE)
        pairs += [
            RootPair(roots[mine[a]], roots[mine[b]], float(cosine))
            for a, b, cosine in zip(similar.a, similar.b, similar.cosine, strict=True)
        ]
    pairs.sort(key=lambda pair: (-pair.cosine, pair.a.n, pair.b.n))
    return SimilarRoots(pairs, newest, int(fresh.sum()))


def _rows_by_project(places: consolidation.Numbers) -> Iterator[consolidation.Numbers]:
    order = np.argsort(places, kind="stable")
    cuts = np.flatnonzero(np.diff(places[order])) + 1
    yield from np.split(order, cuts)
