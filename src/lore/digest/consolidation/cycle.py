"""The consolidation cycle: PHASES in order, the lock around them, and the undo of a cycle."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from lore import clock, telemetry
from lore.digest.consolidation.contradict import contradict
from lore.digest.consolidation.digest_sessions import digest
from lore.digest.consolidation.learn import learn
from lore.digest.consolidation.merge import link, merge
from lore.digest.consolidation.phase import CycleContext, Phase, PhaseRun, Progress, Stopped
from lore.digest.consolidation.prune import prune_edges, prune_fragments, rescore
from lore.digest.consolidation.summaries import reflect, resummarize
from lore.errors import (
    BudgetSpent,
    CycleRunning,
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreFull,
    describe_error,
)
from lore.records import CycleReport, CycleUndo, PhaseReport, PhaseState
from lore.store import consolidation, fragments, reversible_changes
from lore.store.consolidation import CycleRow, Judgement, Step
from lore.store.database import Connection, Database

_LOCK_SUFFIX = "-cycle.lock"


@contextmanager
def hold_lock(database: Path) -> Iterator[None]:
    """Hold the lock of a database's cycles; the system releases it when the process ends.

    The file stays, because removing it would be a race; it holds the pid of the owner.
    """
    path = database.with_name(database.name + _LOCK_SUFFIX)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _cycle_running_error(os.pread(file, 20, 0)) from None
        with suppress(OSError):  # on a full disk the owner stays unknown
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def _cycle_running_error(holder: bytes) -> CycleRunning:
    pid = holder.decode(errors="replace").strip()
    who = f" (pid {pid})" if pid.isdecimal() else ""
    msg = f"Another process runs a cycle on this memory{who}."
    return CycleRunning(msg, hint="Try again when it has ended; the daemon runs cycles itself.")


PHASES: tuple[Phase, ...] = (
    learn,
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
    """Return the names of the phases in order."""
    return tuple(phase.__name__ for phase in PHASES)


def run_cycle(
    database: Database,
    context: CycleContext,
    *,
    only: Sequence[str] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> CycleReport:
    """Run all phases, or only some, and report what each did.

    A complete cycle that was stopped continues with the phase it was in. A phase that fails is
    reported, and the others continue. A dry run counts what would be done and writes nothing. Raise
    `CycleRunning` while another process runs a cycle on the database.
    """
    chosen = [phase for phase in PHASES if not only or phase.__name__ in only]
    unknown = sorted(set(only) - set(phase_names()))
    if unknown:
        msg = f"'{unknown[0]}' is not a phase."
        raise InvalidInput(msg, hint=f"Phases: {', '.join(phase_names())}.")
    run = PhaseRun(database, context, "", 0, database.now(), dry_run, progress, should_stop)
    if dry_run:
        return _dry_run(run, chosen)
    with hold_lock(database.path):
        return _run_all(run, chosen)


def _run_all(run: PhaseRun, chosen: Sequence[Phase]) -> CycleReport:
    """Run phases in order, without those that an interrupted cycle has completed."""
    database = run.database
    names = [phase.__name__ for phase in chosen]
    with database.read() as db:
        open_cycle = consolidation.find_open_cycle(db, names)
    run.cycle_n = (
        open_cycle.n
        if open_cycle
        else database.write(lambda db: consolidation.begin_cycle(db, names, now=run.now))
    )
    previous = {one.phase: one for one in open_cycle.report.phases} if open_cycle else {}
    for phase in chosen:
        before = previous.get(phase.__name__, PhaseReport(phase.__name__, "pending"))
        if before.state == "pending":
            try:
                report = _run(phase, run, before)
            except Stopped:
                break
            database.write(partial(consolidation.save_phase, n=run.cycle_n, phase=report))
    else:
        database.write(lambda db: consolidation.end_cycle(db, run.cycle_n, now=database.now()))
    with database.read() as db:
        return consolidation.get_report(db, run.cycle_n)


def _dry_run(run: PhaseRun, chosen: Sequence[Phase]) -> CycleReport:
    """Run phases and roll back what they do; those after a stop stay pending."""
    reports = {phase.__name__: PhaseReport(phase.__name__, "pending") for phase in chosen}
    try:
        for phase in chosen:
            reports[phase.__name__] = _run(phase, run, reports[phase.__name__])
    except Stopped:
        ended = None
    else:
        ended = run.database.now()
    id_ = clock.new_id(run.now)
    return CycleReport(id_, run.now, ended, tuple(reports.values()), dry_run=True)


def _run(phase: Phase, run: PhaseRun, before: PhaseReport) -> PhaseReport:
    """Run one phase and return its report, with the counts from before an interruption."""
    started = time.monotonic()
    mine = replace(run, phase=phase.__name__, counts=dict(before.counts), lines=list(before.told))
    mine.advance(0, 1)
    state: PhaseState = "done"
    reason = ""
    try:
        with telemetry.span(f"consolidate {phase.__name__}") as span:
            phase(mine)
            span.set("lore.changes", sum(mine.counts.values()))
        if mine.skipped:
            state, reason = "skipped", mine.skipped
    except (Stopped, StoreFull, StoreBusy):
        raise  # The phase stays pending, and continues when it can.
    except BudgetSpent as error:
        state, reason = "skipped", str(error)
    except Exception as error:  # noqa: BLE001 - a phase that fails must not stop the others
        state, reason = "failed", describe_error(error)
        log.warning("phase failed", extra={"phase": mine.phase, "error": type(error).__name__})
    seconds = before.seconds + time.monotonic() - started
    return replace(mine.report(), state=state, reason=reason, seconds=round(seconds, 3))


def undo_cycle(database: Database, id_: str = "") -> CycleUndo:
    """Undo everything that a cycle did, the last one or that of an id.

    Later cycles do not repeat what it merged, pruned, judged and reflected on. Its distillations
    stay.
    """
    with hold_lock(database.path):
        return database.write(lambda db: _undo(db, database, id_))


def _undo(db: Connection, database: Database, id_: str) -> CycleUndo:
    now = database.now()
    cycle = _find_undoable(db, id_)
    ended = cycle.report.ended_at or cycle.report.started_at
    if now - ended >= consolidation.UNDO_PERIOD:
        msg = f"The cycle ended {ended:%Y-%m-%d %H:%M} UTC, and can be undone for one day only."
        raise InvalidInput(msg, hint="'lore undo ID' undoes what was done to one fragment.")
    steps = consolidation.steps_of_cycle(db, cycle.n)
    failed = sum(not reversible_changes.undo_step(db, step, now=now) for step in steps)
    reversible_changes.restore_parents(db, steps, now=now)
    guards = [one for step in steps for one in _repeat_guards(step)]
    there = fragments.by_number(db, sorted({n for one in guards for n in (one.a_n, one.b_n)}))
    consolidation.put_judgements(
        db, (one for one in guards if {one.a_n, one.b_n} <= there.keys()), now=now
    )
    consolidation.drop_steps(db, [cycle.n])
    consolidation.mark_cycle_undone(db, cycle.n, now=now)
    return CycleUndo(cycle.report.id, len(steps) - failed, failed)


def _find_undoable(db: Connection, id_: str) -> CycleRow:
    cycle = (
        consolidation.find_cycle(db, id_)
        if id_
        else consolidation.find_last_cycle(db, not_undone=True)
    )
    if cycle is None:
        msg = f"No cycle starts with '{id_}'." if id_ else "There is no cycle to undo."
        raise NotFound(msg)
    if cycle.report.undone:
        msg = "That cycle is undone already."
        raise InvalidInput(msg)
    return cycle


def _repeat_guards(step: Step) -> list[Judgement]:
    """Return judgements that keep later cycles from repeating an undone step."""
    n, other = step.fragment_n or 0, step.other_n or 0
    if step.verb == "superseded":
        return [Judgement(min(n, other), max(n, other), "merge", "apart")]
    if step.verb in ("hidden", "archived"):
        return [Judgement(n, n, "prune", "kept")]
    return []
