"""Phase 8, prune fragments: what has faded for long is hidden, and a day later removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from lore.digest.consolidation.phase import Work, named
from lore.store import consolidation, cycles, edges, forgetting, fragments, lifetimes, steps, trees
from lore.store.db import Connection
from lore.store.forgetting import Doomed

UNREAD = (0.02, timedelta(days=60))
ANY = (0.01, timedelta(days=90))
"""Below this relevance and older than this goes what was never read, and what was."""

_BATCH = 200


def prune_fragments(work: Work) -> None:
    """Remove what was hidden a day ago, then hide what has faded; roots never."""
    _remove(work)
    with work.database.read() as db:
        faded = consolidation.prunable(db, unread=UNREAD, any_=ANY, now=work.now)
    for piece in work.pieces(faded, _BATCH):
        work.write(partial(_hide, ns=piece, work=work))


def _remove(work: Work) -> None:
    """Remove for good what cycles hid that can no longer be taken back."""
    with work.database.read() as db:
        past = cycles.beyond_undo(db, running=work.cycle_n, now=work.now)
        hidden = {
            step.fragment_n: step.at for n in past for step in steps.of_cycle(db, n, "hidden")
        }
        gone = sorted(n for n in hidden if n is not None)
        doomed = [n for n in gone if fragments.find_deleted_at(db, n) == hidden[n]]

    def remove(db: Connection, _cycle_n: int) -> None:
        if doomed:
            ids = forgetting.forget(db, Doomed(tuple(doomed)), now=work.now)
            work.count("removed", len(ids))
        steps.drop(db, past)

    if past:
        work.write(remove)
    if doomed and not work.dry_run:
        if work.means.forget_vectors is not None:
            work.means.forget_vectors(doomed)
        work.database.erase_traces()


def _hide(db: Connection, cycle_n: int, *, ns: Sequence[int], work: Work) -> None:
    """Hide fragments, and hang what is below them where they hung."""
    watch = steps.into(cycle_n)
    found = fragments.by_number(db, ns)
    gone = fragments.deleted_among(db, ns)
    for n in ns:
        parent = edges.find_parent(db, n)
        if n not in found or n in gone or parent is None:
            continue
        children = edges.all_children(db, n)
        for child in children:
            trees.reparent(db, child, parent, now=work.now, watch=watch)
        lifetimes.hide(db, n, now=work.now, watch=watch)
        work.count("pruned")
        work.count("children moved", len(children))
        work.tell(named(found[n]))
    consolidation.ask_for_overviews(db, ns)
