"""Check with a chat, at the end of a session, whether what was extracted from it lasted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from lore.digest.consolidation.phase import MAX_CONSECUTIVE_FAILURES, PhaseRun
from lore.digest.consolidation.summaries import withdraw_overviews
from lore.errors import BadReply, BudgetSpent, PromptTooLong, ProviderError
from lore.records import UNASKED_TRUST, Fragment, MessageText
from lore.store import (
    consolidation,
    fragments,
    graph,
    items,
    messages,
    reversible_changes,
    sessions,
)
from lore.store.consolidation import UndigestedSession
from lore.store.database import Connection
from lore.text import transcript_text

IDLE = timedelta(hours=1)
"""A session that was quiet for so long has ended, for now: it is checked again if it goes on."""

RECENT = timedelta(days=14)
"""Sessions that were digested earlier, by a Lore that did not check, are left as they are."""

MOST_SESSIONS = 20
"""Sessions of a cycle; the others wait for the next one."""

MIN_FACTS = 2
"""A single fact was just read with all that is said around it."""

MAX_FACTS = 60
"""The latest facts of a session; with more a chat mixes up the numbers."""

_MAX_MESSAGES = 10_000


def check_sessions(run: PhaseRun) -> None:
    """Archive facts that their session overturned or that nobody would miss.

    What has a person's trust is not asked about, without a chat nothing is, and of a session in
    which nobody spoke there is nothing that a fact could be compared with. A session whose check
    fails waits for the next cycle, behind those that failed less often.
    """
    if not run.is_paid:
        return
    with run.database.read() as db:
        waiting = consolidation.unchecked_sessions(db, idle=IDLE, recent=RECENT, now=run.now)
    if run.dry_run:
        run.count("sessions to check", len(waiting))
        return
    checked = failures = 0
    for place, session in enumerate(waiting[:MOST_SESSIONS]):
        run.advance(place, len(waiting))
        try:
            _check_session(run, session)
        except BudgetSpent as error:
            run.report_line(f"stopped checking sessions: {error}")
            break
        except ProviderError as error:
            failures += 1
            run.report_line(f"session {session.id} is not checked: {type(error).__name__}")
            run.write(partial(_count_failure, session=session, run=run))
        else:
            checked, failures = checked + 1, 0
        if failures == MAX_CONSECUTIVE_FAILURES:
            run.report_line(f"stopped checking sessions after {failures} failures in a row")
            break
    run.count("sessions waiting", len(waiting) - checked)


def _check_session(run: PhaseRun, session: UndigestedSession) -> None:
    with run.database.read() as db:
        facts = _facts_of(db, session.n)
        again = sessions.find_session_state(db, session.n, "checked") is not None
        spoken = _read_session(db, session.n) if facts else []
    is_worth_asking = bool(spoken) and (again or len(facts) >= MIN_FACTS)
    groups = _split_by_trust(facts) if is_worth_asking else []
    for group in groups:
        rejected = _find_rejected(run, group, spoken)
        run.write(partial(_archive, facts=rejected, session=session, run=run))
    run.write(partial(_mark_checked, session=session, run=run))
    run.count("facts checked", sum(map(len, groups)))


def _facts_of(db: Connection, session_n: int) -> dict[int, Fragment]:
    """Return the facts that this session alone told, in the order of extraction.

    What another session confirmed is not this one's to archive.
    """
    ns = consolidation.facts_of_session(db, session_n)
    by_number = fragments.by_number(db, ns)
    told_by = {n: set(by_number[n].source_messages) for n in ns if n in by_number}
    numbers = items.numbers_of(db, sorted(set[str]().union(*told_by.values())))
    own = set(items.of_sessions(db, sorted(numbers.values()), [session_n]))
    elsewhere = {id_ for id_, n in numbers.items() if n not in own}
    return {n: by_number[n] for n, sources in told_by.items() if not sources & elsewhere}


def _read_session(db: Connection, session_n: int) -> list[MessageText]:
    """Return what a person and the assistant said, the last of a very long session."""
    first = max(0, messages.last_ordinal(db, session_n) + 1 - _MAX_MESSAGES)
    read = messages.messages_of_session(db, session_n, first=first, limit=_MAX_MESSAGES)
    texts = transcript_text.render_messages(read, transcript_text.FOR_KNOWLEDGE)
    return [one for one in texts if one.text and one.origin in ("user", "assistant")]


def _split_by_trust(facts: dict[int, Fragment]) -> list[dict[int, Fragment]]:
    """Return what assistants said apart from the rest: a fact may speak to the chat that reads it.

    What a tool or a page said must not decide about more trusted facts beside it.
    """
    trusted = {n: one for n, one in facts.items() if one.trust >= UNASKED_TRUST}
    others = {n: one for n, one in facts.items() if n not in trusted}
    return [dict(list(group.items())[-MAX_FACTS:]) for group in (trusted, others) if group]


def _find_rejected(
    run: PhaseRun, facts: dict[int, Fragment], spoken: Sequence[MessageText]
) -> dict[int, Fragment]:
    try:
        verdicts = run.context.summarizer.check(list(facts.values()), spoken)
    except (BadReply, PromptTooLong):  # without a usable answer everything stays
        run.count("sessions unchecked")
        return {}
    both = zip(facts.items(), verdicts, strict=True)
    return {n: fact for (n, fact), verdict in both if verdict != "keep"}


def _archive(
    db: Connection,
    cycle_n: int,
    *,
    facts: dict[int, Fragment],
    session: UndigestedSession,
    run: PhaseRun,
) -> None:
    """Archive facts that may still be archived and say the same; what is below one moves up."""
    recorder = consolidation.step_recorder(cycle_n)
    there = _facts_of(db, session.n)
    unchanged = [n for n, fact in facts.items() if n in there and there[n].version == fact.version]
    for n in unchanged:
        parent = graph.find_parent(db, n)
        for child in graph.children(db, n, deleted=True):
            reversible_changes.reparent(db, child, parent, now=run.now, recorder=recorder)
        reversible_changes.archive(db, n, now=run.now, recorder=recorder)
        run.count("archived")
    withdraw_overviews(db, unchanged, recorder, run)


def _mark_checked(
    db: Connection, _cycle_n: int, *, session: UndigestedSession, run: PhaseRun
) -> None:
    at = session.last_message_at
    sessions.put_session_state(db, session.n, "checked", at, now=run.now)
    if sessions.find_session_state(db, session.n, "check_failures"):
        sessions.put_session_state(db, session.n, "check_failures", 0, now=run.now)
    run.count("sessions checked")


def _count_failure(
    db: Connection, _cycle_n: int, *, session: UndigestedSession, run: PhaseRun
) -> None:
    before = sessions.find_session_state(db, session.n, "check_failures") or 0
    sessions.put_session_state(db, session.n, "check_failures", before + 1, now=run.now)
