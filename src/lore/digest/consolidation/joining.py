"""Joining: the pairs of roots that are close, of one project, with at least one that is new."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lore.digest.consolidation.near import near_pairs
from lore.digest.consolidation.phase import Joined, Near, Work
from lore.store import consolidation, cycles, vectors
from lore.store.consolidation import Embedding

ABOVE = 0.8
"""Roots that are closer are compared by the phases, each with a line of its own."""

_NO_VECTORS = "there are no vectors to compare: no embedder was used here yet"


def find_embedding(work: Work) -> Embedding | None:
    """Return the embedder whose vectors are compared; without one the phase is skipped."""
    with work.database.read() as db:
        found = consolidation.find_embedding(db)
    if found is None:
        work.skip(_NO_VECTORS)
    return found


def join(work: Work, embedding: Embedding, mark: str) -> Joined:
    """Compare roots that came or changed since a mark, or a child of theirs, with all."""
    with work.database.read() as db:
        since = cycles.find_mark(db, mark)
    if since not in work.joins:
        work.joins[since] = _join(work, embedding, since)
    return work.joins[since]


def _join(work: Work, embedding: Embedding, since: int) -> Joined:
    with work.database.read() as db:
        newest = vectors.newest_seq(db)
        if since >= newest:
            return Joined([], since, 0)
        roots, matrix = consolidation.roots(db, embedding)
        children = consolidation.newest_children(db)
    changed = [max(root.seq, children.get(root.n, 0)) > since for root in roots]
    fresh = np.array(changed, bool)
    places = np.array([root.project_n for root in roots], np.int64)
    pairs: list[Near] = []
    for mine in _by_project(places):
        found = near_pairs(matrix[mine], fresh[mine], above=ABOVE)
        pairs += [
            Near(roots[mine[a]], roots[mine[b]], float(cosine))
            for a, b, cosine in zip(found.a, found.b, found.cosine, strict=True)
        ]
    pairs.sort(key=lambda pair: (-pair.cosine, pair.a.n, pair.b.n))
    return Joined(pairs, newest, int(fresh.sum()))


def _by_project(places: consolidation.Numbers) -> Iterator[consolidation.Numbers]:
    """Yield the rows of each project, and of what belongs to none."""
    order = np.argsort(places, kind="stable")
    cuts = np.flatnonzero(np.diff(places[order])) + 1
    yield from np.split(order, cuts)
