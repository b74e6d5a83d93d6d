"""Phase learn: what finished tasks taught, and the retention of their episodes."""

from __future__ import annotations

from lore.digest.consolidation.phase import PhaseRun
from lore.store import consolidation


def learn(run: PhaseRun) -> None:
    """Consolidate new episodes into patterns and skills, and summarize or archive old ones."""
    if run.context.learn_from_tasks is None:
        run.skipped = "no task memory was given"
        return
    if run.dry_run:
        run.skipped = "a dry run learns nothing"
        return
    counts = run.context.learn_from_tasks(consolidation.step_recorder(run.cycle_n))
    for what, by in counts.items():
        run.count(what, by)
    if run.context.embed_pending is not None:
        run.context.embed_pending()
