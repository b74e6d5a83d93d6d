"""Phase 0, digest: sessions that are idle are distilled and curated."""

from __future__ import annotations

from datetime import timedelta

from lore.digest.consolidation.phase import DigestSession, Work
from lore.errors import BadReply, BudgetSpent, LoreError, ProviderError
from lore.store import consolidation, jobs, session_states, steps
from lore.store.consolidation import Waiting
from lore.store.db import Connection

_FAILURES_IN_A_ROW = 3
"""After so many failures the provider is down, not the session at fault."""

_UNENDED = "It was begun and did not end."


def digest(work: Work) -> None:
    """Digest the sessions that wait for it; one that fails stays staged and is told."""
    if not work.means.digest:
        work.skip("nothing to digest with was given")
        return
    with work.database.read() as db:
        waiting = _waiting(db, work)
    if work.dry_run:
        work.count("sessions", len(waiting))
        return
    failures = 0
    for done, session in enumerate(waiting):
        work.advance(done, len(waiting))
        try:
            failures = 0 if _digest_one(work, session) else failures + 1
        except BudgetSpent as error:
            work.tell(f"{len(waiting) - done} sessions stay staged: {error}")
            break
        if failures == _FAILURES_IN_A_ROW:
            work.tell(f"stopped after {failures} failures in a row; the rest stays staged")
            break
    if work.means.embed_waiting is not None:
        work.means.embed_waiting()


def _waiting(db: Connection, work: Work) -> list[Waiting]:
    """Return the sessions to digest, those that failed least first.

    One that always fails holds no other up, and is left alone while its job is put aside.
    """
    idle = timedelta(seconds=work.means.idle_s)
    found = consolidation.waiting_sessions(db, idle=idle, now=work.now)
    held = jobs.held(db, work.means.digest, now=work.database.now())
    failures = jobs.failures(db, work.means.digest)
    free = (session for session in found if session.id not in held)
    return sorted(free, key=lambda session: failures.get(session.id, 0))


def _digest_one(work: Work, session: Waiting) -> bool:
    try:
        for kind, digest_session in work.means.digest.items():
            _work_off(work, session, kind, digest_session)
    except BudgetSpent:
        raise
    except LoreError as error:
        work.count("failed")
        # What a provider says may quote the talk, which may be forgotten one day.
        why = type(error).__name__ if isinstance(error, ProviderError) else str(error)
        work.tell(f"session {session.id} stays staged: {why}")
        return False
    work.count("sessions")

    def settle(db: Connection, _cycle_n: int) -> None:
        session_states.put(db, session.n, "digested", session.last_message_at, now=work.now)

    work.write(settle)
    return True


def _work_off(work: Work, session: Waiting, kind: str, digest_session: DigestSession) -> None:
    """Do the job of one kind for a session; it counts as failed until it ends."""
    now = work.database.now

    def begin(db: Connection) -> int:
        job = jobs.ensure(db, kind, session.id, total=1, now=now())
        jobs.fail(db, job.id, _UNENDED, now=now())
        return job.id

    n = work.database.write(begin)
    try:
        counts = digest_session(session.id, steps.into(work.cycle_n))
    except BudgetSpent as error:
        why, until = str(error), error.until or now()
        work.database.write(lambda db: jobs.postpone(db, n, why, until=until, now=now()))
        raise
    except BadReply as error:
        why = str(error)
        work.database.write(lambda db: jobs.park(db, n, why, now=now()))
        raise
    except LoreError as error:
        why = str(error)
        work.database.write(lambda db: jobs.explain(db, n, why))
        raise
    work.database.write(lambda db: jobs.finish(db, n, now=now()))
    for what, by in counts.items():
        work.count(what, by)
