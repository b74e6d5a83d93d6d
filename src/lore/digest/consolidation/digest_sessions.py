"""Phase digest: distill and curate the idle sessions, and check what was kept of them."""

from __future__ import annotations

from datetime import timedelta

from lore.digest.consolidation.phase import MAX_CONSECUTIVE_FAILURES, DigestSession, PhaseRun
from lore.digest.consolidation.session_check import check_sessions
from lore.errors import BadReply, BudgetSpent, LoreError, ProviderError
from lore.store import consolidation, jobs, sessions
from lore.store.consolidation import UndigestedSession
from lore.store.database import Connection

_UNFINISHED = "It was begun and did not end."


def digest(run: PhaseRun) -> None:
    """Digest the waiting sessions; one that fails stays staged and is reported."""
    if not run.context.digest_steps:
        run.skipped = "no digest steps were given"
        return
    with run.database.read() as db:
        waiting = _waiting_sessions(db, run)
    if run.dry_run:
        run.count("sessions", len(waiting))
        check_sessions(run)
        return
    failures = 0
    for done, session in enumerate(waiting):
        run.advance(done, len(waiting))
        try:
            failures = 0 if _digest_one(run, session) else failures + 1
        except BudgetSpent as error:
            run.report_line(f"{len(waiting) - done} sessions stay staged: {error}")
            break
        if failures == MAX_CONSECUTIVE_FAILURES:
            run.report_line(f"stopped after {failures} failures in a row; the rest stays staged")
            break
    check_sessions(run)
    if run.context.embed_pending is not None:
        run.context.embed_pending()


def _waiting_sessions(db: Connection, run: PhaseRun) -> list[UndigestedSession]:
    """Return the sessions to digest, those with fewest failures first.

    A session that always fails blocks no other, and is skipped while its job is parked.
    """
    idle = timedelta(seconds=run.context.idle_s)
    idle_sessions = consolidation.undigested_sessions(db, idle=idle, now=run.now)
    held_ids = jobs.held_subjects(db, run.context.digest_steps, now=run.database.now())
    failures = jobs.failure_counts(db, run.context.digest_steps)
    free = (session for session in idle_sessions if session.id not in held_ids)
    return sorted(free, key=lambda session: failures.get(session.id, 0))


def _digest_one(run: PhaseRun, session: UndigestedSession) -> bool:
    try:
        for kind, digest_session in run.context.digest_steps.items():
            _run_job(run, session, kind, digest_session)
    except BudgetSpent:
        raise
    except LoreError as error:
        run.count("failed")
        # A provider's message may quote the conversation, which may be forgotten one day.
        why = type(error).__name__ if isinstance(error, ProviderError) else str(error)
        run.report_line(f"session {session.id} stays staged: {why}")
        return False
    run.count("sessions")

    def settle(db: Connection, _cycle_n: int) -> None:
        sessions.put_session_state(db, session.n, "digested", session.last_message_at, now=run.now)

    run.write(settle)
    return True


def _run_job(
    run: PhaseRun, session: UndigestedSession, kind: str, digest_session: DigestSession
) -> None:
    """Run the job of one kind for a session; it counts as failed until it ends."""
    now = run.database.now

    def begin(db: Connection) -> int:
        job = jobs.ensure(db, kind, session.id, total=1, now=now())
        jobs.fail(db, job.id, _UNFINISHED, now=now())
        return job.id

    n = run.database.write(begin)
    try:
        counts = digest_session(session.id, consolidation.step_recorder(run.cycle_n))
    except BudgetSpent as error:
        why, until = str(error), error.until or now()
        run.database.write(lambda db: jobs.postpone(db, n, why, until=until, now=now()))
        raise
    except BadReply as error:
        why = str(error)
        run.database.write(lambda db: jobs.park(db, n, why, now=now()))
        raise
    except LoreError as error:
        why = str(error)
        run.database.write(lambda db: jobs.set_error(db, n, why))
        raise
    run.database.write(lambda db: jobs.finish(db, n, now=now()))
    for what, by in counts.items():
        run.count(what, by)
