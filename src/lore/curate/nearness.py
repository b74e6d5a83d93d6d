"""Nearness: the known fragments that are near to something new, and still stand."""

from __future__ import annotations

from collections.abc import Sequence

from lore.curate.means import Nearest, Scores
from lore.curate.merging import Candidate
from lore.curate.placing import Neighbour
from lore.store import fragments, items
from lore.store.db import Connection
from lore.store.vector_index import Where

OWN_NEIGHBOURS, OTHER_NEIGHBOURS = 48, 8
"""Fragments that are looked at as nearest: of the own project, and of any."""


def neighbours(nearest: Nearest, vector: Scores | None, project_n: int | None) -> list[Neighbour]:
    """Return the fragments nearest to a vector, of its own project and of any."""
    if vector is None:
        return []
    kind = (items.type_number("fragment"),)
    own = Where(projects=(project_n, 0) if project_n else (0,), types=kind)
    found: dict[int, float] = {}
    for where, k in ((own, OWN_NEIGHBOURS), (Where(types=kind), OTHER_NEIGHBOURS)):
        ns, scores = nearest(vector, k, where=where)
        found |= dict(zip(ns.tolist(), scores.tolist(), strict=True))
    return [Neighbour(n, cosine) for n, cosine in found.items()]


def candidates(db: Connection, found: Sequence[Neighbour]) -> list[Candidate]:
    """Return the neighbours that still stand, each once, nearest first.

    One that has faded is among them: what is learned again is not new.
    """
    best: dict[int, float] = {}
    for one in found:
        best[one.n] = max(one.cosine, best.get(one.n, -1.0))
    gone = fragments.deleted_among(db, list(best))
    there = fragments.by_number(db, sorted(best.keys() - gone))
    known = [
        Candidate(n, best[n], fragment)
        for n, fragment in there.items()
        if fragment.superseded_by is None
    ]
    return sorted(known, key=lambda candidate: (-candidate.cosine, candidate.n))
