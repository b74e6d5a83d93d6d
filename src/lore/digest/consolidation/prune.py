"""Phases prune_edges and prune_fragments: decay edges, and hide and remove faded fragments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from lore.digest.consolidation.phase import PhaseRun, label
from lore.store import consolidation, forgetting, fragments, graph, reversible_changes
from lore.store.database import Connection
from lore.store.forgetting import ForgetSelection


def prune_edges(run: PhaseRun) -> None:
    """Decay associative edges by the days since the last decay; hierarchical ones never."""

    def fade(db: Connection, cycle_n: int) -> None:
        faded, dropped = reversible_changes.decay_edges(db, cycle_n, now=run.now)
        run.count("faded", faded)
        run.count("dropped", dropped)

    run.write(fade)


UNREAD_LIMIT = (0.02, timedelta(days=60))
ANY_LIMIT = (0.01, timedelta(days=90))
"""Relevance below and age above which fragments are pruned: unread ones, and any."""

_PRUNE_BATCH = 200


def prune_fragments(run: PhaseRun) -> None:
    """Remove what was hidden a day ago, then hide what has faded; roots never."""
    _remove(run)
    with run.database.read() as db:
        faded = consolidation.prunable_fragments(
            db, unread=UNREAD_LIMIT, any_=ANY_LIMIT, now=run.now
        )
    for piece in run.batches(faded, _PRUNE_BATCH):
        run.write(partial(_hide, ns=piece, run=run))


def _remove(run: PhaseRun) -> None:
    """Remove hidden fragments whose cycles can no longer be undone."""
    with run.database.read() as db:
        past = consolidation.cycles_past_undo(db, running=run.cycle_n, now=run.now)
        hidden = {
            step.fragment_n: step.at
            for n in past
            for step in consolidation.steps_of_cycle(db, n, "hidden")
        }
        hidden_ns = sorted(n for n in hidden if n is not None)
        doomed = [n for n in hidden_ns if fragments.find_deleted_at(db, n) == hidden[n]]

    def remove(db: Connection, _cycle_n: int) -> None:
        if doomed:
            ids = forgetting.forget(db, ForgetSelection(tuple(doomed)), now=run.now)
            run.count("removed", len(ids))
        consolidation.drop_steps(db, past)

    if past:
        run.write(remove)
    if doomed and not run.dry_run:
        if run.context.forget_vectors is not None:
            run.context.forget_vectors(doomed)
        run.database.erase_traces()


def _hide(db: Connection, cycle_n: int, *, ns: Sequence[int], run: PhaseRun) -> None:
    recorder = consolidation.step_recorder(cycle_n)
    by_number = fragments.by_number(db, ns)
    deleted = fragments.deleted_among(db, ns)
    for n in ns:
        parent = graph.find_parent(db, n)
        if n not in by_number or n in deleted or parent is None:
            continue
        children = graph.all_children(db, n)
        for child in children:
            reversible_changes.reparent(db, child, parent, now=run.now, recorder=recorder)
        reversible_changes.hide_fragment(db, n, now=run.now, recorder=recorder)
        run.count("pruned")
        run.count("children moved", len(children))
        run.report_line(label(by_number[n]))
    consolidation.request_overviews(db, ns)
