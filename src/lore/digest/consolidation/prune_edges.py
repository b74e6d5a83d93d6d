"""Phase 7, prune edges: associative edges fade day by day, and the faded go."""

from __future__ import annotations

from lore.digest.consolidation.phase import Work
from lore.store import weights
from lore.store.db import Connection


def prune_edges(work: Work) -> None:
    """Let associative edges fade by the days since they last did; hierarchical ones never."""

    def fade(db: Connection, cycle_n: int) -> None:
        faded, dropped = weights.fade(db, cycle_n, now=work.now)
        work.count("faded", faded)
        work.count("dropped", dropped)

    work.write(fade)
