"""Undoing a cycle: everything it did is taken back, for a day."""

from __future__ import annotations

from lore.digest.consolidation import lock
from lore.errors import InvalidInput, NotFound
from lore.records import UndoneCycle
from lore.store import cycles, fragments, judgements, reversing, steps, trees
from lore.store.cycles import CycleRow
from lore.store.db import Connection, Database
from lore.store.judgements import Judgement
from lore.store.steps import Step


def undo_cycle(database: Database, id_: str = "") -> UndoneCycle:
    """Take back all that a cycle did, the last one or that of an id.

    What it learned, merged, pruned, judged and reflected on is not done again by later cycles.
    The logs that it made stay: they are what was said.
    """
    with lock.hold(database.path):
        return database.write(lambda db: _undo(db, database, id_))


def _undo(db: Connection, database: Database, id_: str) -> UndoneCycle:
    now = database.now()
    cycle = _find(db, id_)
    ended = cycle.report.ended_at or cycle.report.started_at
    if now - ended >= cycles.UNDO_FOR:
        msg = f"The cycle ended {ended:%Y-%m-%d %H:%M} UTC, and only a day can be taken back."
        raise InvalidInput(msg, hint="'lore undo ID' undoes what was done to one fragment.")
    done = steps.of_cycle(db, cycle.n)
    left = sum(not reversing.take_back(db, step, now=now) for step in done)
    trees.settle(db, done, now=now)
    kept = [one for step in done for one in _kept(step)]
    there = fragments.by_number(db, sorted({n for one in kept for n in (one.a_n, one.b_n)}))
    judgements.put(db, (one for one in kept if {one.a_n, one.b_n} <= there.keys()), now=now)
    steps.drop(db, [cycle.n])
    cycles.mark_undone(db, cycle.n, now=now)
    return UndoneCycle(cycle.report.id, len(done) - left, left)


def _find(db: Connection, id_: str) -> CycleRow:
    cycle = cycles.find(db, id_) if id_ else cycles.find_last(db, standing=True)
    if cycle is None:
        msg = f"No cycle starts with '{id_}'." if id_ else "There is no cycle to take back."
        raise NotFound(msg)
    if cycle.report.undone:
        msg = "That cycle was taken back already."
        raise InvalidInput(msg)
    return cycle


def _kept(step: Step) -> list[Judgement]:
    """Return what later cycles must know, so that they do not do the same again."""
    n, other = step.fragment_n or 0, step.other_n or 0
    if step.verb == "superseded":
        return [Judgement(min(n, other), max(n, other), "merge", "apart")]
    if step.verb == "hidden":
        return [Judgement(n, n, "prune", "kept")]
    return []
