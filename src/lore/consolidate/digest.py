"""Phase 0, digest: sessions that are idle are distilled and curated."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from lore.consolidate.phase import Work
from lore.curate.means import Deed
from lore.errors import BudgetSpent, LoreError, ProviderError
from lore.store import consolidation, session_states, steps
from lore.store.consolidation import Waiting
from lore.store.db import Connection
from lore.store.steps import Step

IDLE = timedelta(minutes=5)
"""Who pauses longer is done for now; distilling alone begins sooner."""

_FAILURES_IN_A_ROW = 3
"""After so many failures the provider is down, not the session at fault."""


def digest(work: Work) -> None:
    """Digest the sessions that wait for it; one that fails stays staged and is told."""
    with work.database.read() as db:
        waiting = consolidation.waiting_sessions(db, idle=IDLE, now=work.now)
    if not work.means.digest:
        work.skip("nothing to digest with was given")
        return
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


def _digest_one(work: Work, session: Waiting) -> bool:
    work.database.write(lambda db: _keep(db, session, "digest_tries", session.tries + 1, work))
    watch = partial(_watch, work.cycle_n)
    try:
        for digest_session in work.means.digest:
            for what, by in digest_session(session.id, watch).items():
                work.count(what, by)
    except BudgetSpent:
        work.database.write(lambda db: session_states.remove(db, session.n, "digest_tries"))
        raise
    except LoreError as error:
        work.count("failed")
        # What a provider says may quote the talk, which may be forgotten one day.
        why = type(error).__name__ if isinstance(error, ProviderError) else str(error)
        work.tell(f"session {session.id} stays staged: {why}")
        return False
    work.count("sessions")

    def settle(db: Connection, _cycle_n: int) -> None:
        _keep(db, session, "digested", session.last_message_at, work)
        session_states.remove(db, session.n, "digest_tries")

    work.write(settle)
    return True


def _watch(cycle_n: int, db: Connection, deed: Deed, n: int, other: int) -> None:
    """Write down what curation does to fragments, so that it can be taken back."""
    if deed == "store":
        steps.learn(db, cycle_n, n)
    elif deed == "supersede":
        steps.record(db, cycle_n, Step("superseded", n, other))
    elif deed == "contradict":
        steps.record(db, cycle_n, Step("edge_added", n, other, "contradicts"))
    else:
        steps.confirm(db, cycle_n, n)


def _keep(
    db: Connection, session: Waiting, name: session_states.Name, value: int, work: Work
) -> None:
    session_states.put(db, session.n, name, value, now=work.now)
