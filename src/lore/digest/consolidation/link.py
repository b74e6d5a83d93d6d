"""Phase 3, link: children of roots that are close are linked where they are close themselves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from lore.digest.consolidation.joining import find_embedding, join
from lore.digest.consolidation.phase import Near, Work
from lore.store import consolidation, cycles, steps, watched_edges
from lore.store.consolidation import Embedding
from lore.store.db import Connection
from lore.store.edges import EdgeRow

ABOVE_CHILDREN = 0.7
MARK = "link"

_BATCH = 200
_MOST_CHILDREN = 200
"""Of each root so many children, the newest, are compared."""

_MOST_EACH = 8
"""A child is linked with so many of the other root's at most: the nearest say enough."""


def link(work: Work) -> None:
    """Draw associative edges between near children of near roots; none twice."""
    embedding = find_embedding(work)
    if embedding is None:
        return
    joined = join(work, embedding, MARK)
    work.count("compared", joined.compared)
    work.count("near roots", len(joined.pairs))
    for piece in work.pieces(joined.pairs, _BATCH):
        found = _edges(work, piece, embedding)
        work.write(partial(_draw, found=found, work=work))
    work.write(lambda db, _: cycles.set_mark(db, MARK, joined.seq))


def _edges(work: Work, pairs: Sequence[Near], embedding: Embedding) -> list[EdgeRow]:
    """Return the edges between the children of some pairs of roots."""
    with work.database.read() as db:
        roots = sorted({root.n for pair in pairs for root in (pair.a, pair.b)})
        children = consolidation.children_of(db, roots)
        ns = sorted({n for below in children.values() for n in below[-_MOST_CHILDREN:]})
        matrix = consolidation.vectors_of(db, ns, embedding)
    place = {n: i for i, n in enumerate(ns)}
    found: list[EdgeRow] = []
    for pair in pairs:
        mine, theirs = (children.get(n, [])[-_MOST_CHILDREN:] for n in (pair.a.n, pair.b.n))
        if not mine or not theirs:
            continue
        cosines = matrix[[place[n] for n in mine]] @ matrix[[place[n] for n in theirs]].T
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :_MOST_EACH]
        for row, columns in enumerate(nearest):
            found += [
                EdgeRow(mine[row], theirs[column], "associative", float(cosines[row, column]))
                for column in columns
                if cosines[row, column] > ABOVE_CHILDREN and mine[row] != theirs[column]
            ]
    return found


def _draw(db: Connection, cycle_n: int, *, found: Sequence[EdgeRow], work: Work) -> None:
    watch = steps.into(cycle_n)
    there = consolidation.associated(db, sorted({edge.source_n for edge in found}))
    for edge in found:
        ends = (min(edge[:2]), max(edge[:2]))
        if ends not in there:
            there.add(ends)
            watched_edges.draw(db, edge, now=work.now, watch=watch)
            work.count("linked")
