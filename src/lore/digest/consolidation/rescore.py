"""Phase 1, rescore: every fragment fades to what it is now; lost files make it doubtful."""

from __future__ import annotations

from lore.digest.consolidation import files
from lore.digest.consolidation.phase import Work
from lore.store import fragments, missing
from lore.store.db import Connection


def rescore(work: Work) -> None:
    """Compute the relevance of all fragments, and the confidence of those about files."""
    with work.database.read() as db:
        checked = files.check(db)

    def fade(db: Connection, _cycle_n: int) -> None:
        missing.mark(db, checked.gone, checked.back, now=work.now)
        work.count("doubted", missing.doubt(db, now=work.now))
        work.count("files missing", len(checked.gone))
        work.count("files back", len(checked.back))
        work.count("rescored", fragments.rescore(db, now=work.now))

    work.write(fade)
