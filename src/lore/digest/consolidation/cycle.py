"""The cycle: its phases in their order, and the one who runs them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lore import clock
from lore.digest.consolidation import lock
from lore.digest.consolidation.contradict import contradict
from lore.digest.consolidation.digest import digest
from lore.digest.consolidation.link import link
from lore.digest.consolidation.merge import merge
from lore.digest.consolidation.phase import Means, Phase, Progress, Stopped, Work
from lore.digest.consolidation.prune_edges import prune_edges
from lore.digest.consolidation.prune_fragments import prune_fragments
from lore.digest.consolidation.reflect import reflect
from lore.digest.consolidation.rescore import rescore
from lore.digest.consolidation.resummarize import resummarize
from lore.errors import BudgetSpent, InvalidInput, StoreBusy, StoreFull, told
from lore.records import CycleReport, PhaseReport, PhaseState
from lore.store import cycles
from lore.store.db import Connection, Database

PHASES: tuple[Phase, ...] = (
    digest,
    rescore,
    merge,
    link,
    resummarize,
    reflect,
    contradict,
    prune_edges,
    prune_fragments,
)

log = logging.getLogger("lore.digest.consolidation")


def phase_names() -> tuple[str, ...]:
    """Return the names of the phases in their order."""
    return tuple(phase.__name__ for phase in PHASES)


def run_cycle(
    database: Database,
    means: Means,
    *,
    only: Sequence[str] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> CycleReport:
    """Run all phases, or only some, and report what each did.

    A whole cycle that was stopped goes on with the phase it was in. A phase that fails is
    reported, and the others go on. A dry run counts what would be done and writes nothing.
    While another process runs a cycle on the database, none is begun.
    """
    chosen = [phase for phase in PHASES if not only or phase.__name__ in only]
    unknown = sorted(set(only) - set(phase_names()))
    if unknown:
        msg = f"'{unknown[0]}' is no phase."
        raise InvalidInput(msg, hint=f"Phases: {', '.join(phase_names())}.")
    work = Work(database, means, "", 0, database.now(), dry_run, progress, stopping)
    if dry_run:
        return _rehearse(work, chosen)
    with lock.hold(database.path):
        return _run_all(work, chosen)


def _run_all(work: Work, chosen: Sequence[Phase]) -> CycleReport:
    """Run phases one after the other, those that are done in the cycle that goes on left out."""
    database = work.database
    names = [phase.__name__ for phase in chosen]
    with database.read() as db:
        open_cycle = cycles.find_open(db, names)
    work.cycle_n = (
        open_cycle.n
        if open_cycle
        else database.write(lambda db: cycles.begin(db, names, now=work.now))
    )
    done = {one.phase: one for one in open_cycle.report.phases} if open_cycle else {}
    for phase in chosen:
        before = done.get(phase.__name__, PhaseReport(phase.__name__, "pending"))
        if before.state == "pending":
            try:
                report = _run(phase, work, before)
            except Stopped:
                break
            database.write(partial(_save, n=work.cycle_n, report=report))
    else:
        database.write(lambda db: cycles.end(db, work.cycle_n, now=database.now()))
    with database.read() as db:
        return cycles.get(db, work.cycle_n)


def _save(db: Connection, *, n: int, report: PhaseReport) -> None:
    cycles.save(db, n, report)


def _rehearse(work: Work, chosen: Sequence[Phase]) -> CycleReport:
    """Run phases without keeping what they do; those after a stop stay pending."""
    reports = {phase.__name__: PhaseReport(phase.__name__, "pending") for phase in chosen}
    try:
        for phase in chosen:
            reports[phase.__name__] = _run(phase, work, reports[phase.__name__])
    except Stopped:
        ended = None
    else:
        ended = work.database.now()
    id_ = clock.new_id(work.now)
    return CycleReport(id_, work.now, ended, tuple(reports.values()), dry_run=True)


def _run(phase: Phase, work: Work, before: PhaseReport) -> PhaseReport:
    """Run one phase and return how it ended; what it did before it was stopped counts too."""
    started = time.monotonic()
    mine = replace(work, phase=phase.__name__, counts=dict(before.counts), told=list(before.told))
    mine.advance(0, 1)
    state: PhaseState = "done"
    reason = ""
    try:
        phase(mine)
        if mine.skipped:
            state, reason = "skipped", mine.skipped
    except (Stopped, StoreFull, StoreBusy):
        raise  # The phase stays pending, and goes on when it can.
    except BudgetSpent as error:
        state, reason = "skipped", str(error)
    except Exception as error:  # noqa: BLE001 - a phase that fails must not stop the others
        state, reason = "failed", told(error)
        log.warning("phase failed", extra={"phase": mine.phase, "error": type(error).__name__})
    seconds = before.seconds + time.monotonic() - started
    return replace(mine.report(), state=state, reason=reason, seconds=round(seconds, 3))
