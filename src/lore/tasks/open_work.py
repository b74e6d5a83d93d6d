"""Open work: which working states and handoffs a new session in a project is given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lore.records.task_records import Handoff, OpenWork
from lore.store import handoff_rows, items, project_rows, sessions
from lore.store.database import Connection
from lore.store.handoff_rows import HandoffRow, StateRow
from lore.tasks import session_work
from lore.tasks.working_state import TrackedState
from lore.text import words

FRESH = timedelta(days=14)
"""Older work was finished elsewhere or given up."""

_SESSIONS_READ, MOST_OPEN = 4, 2
"""Of the latest sessions, two may have open work: more is a backlog, not work in progress."""

_SAME_TASK = 0.5
"""Two tasks that share this part of their words are one."""


def find_open_work(
    db: Connection, project_n: int | None, *, without: Sequence[int], now: datetime
) -> list[OpenWork]:
    """Return what the latest sessions of a project left open, the latest first.

    What a later session finished is left out.
    """
    rows = handoff_rows.recent_working_states(db, project_n, limit=_SESSIONS_READ, without=without)
    later: list[TrackedState] = []
    states: list[OpenWork] = []
    for row in rows:
        state = session_work.parse_state(row.body)
        is_taken_over = any(_continues(one, state) for one in later)
        if state.is_open and not is_taken_over and now - row.updated_at <= FRESH:
            states.append(open_work_of(db, row, state))
        later.append(state)
    return states[:MOST_OPEN]


def find_own_work(db: Connection, session_n: int) -> OpenWork | None:
    """Return the working state of one session; None without a task."""
    row = handoff_rows.find_working_state(db, session_n)
    if row is None:
        return None
    state = session_work.parse_state(row.body)
    return open_work_of(db, row, state) if state.task.text else None


def open_work_of(db: Connection, row: StateRow, state: TrackedState) -> OpenWork:
    """Return a stored state with the session that it belongs to."""
    session = sessions.get_session(db, row.session_n)
    record = session_work.to_record(state, updated_at=row.updated_at)
    return OpenWork(session.id, session.agent, row.updated_at, record, _source(db, state))


def _source(db: Connection, state: TrackedState) -> str:
    """Return the message that states the task, if it still exists."""
    id_ = state.task.source
    return id_ if id_ and items.numbers_of(db, [id_]) else ""


def _continues(later: TrackedState, earlier: TrackedState) -> bool:
    """Return whether a later session worked on the task of an earlier one."""
    if set(later.context.files) & set(earlier.context.files):
        return True
    own = set(words.search_terms(earlier.task.text))
    shared = own & set(words.search_terms(later.task.text))
    return bool(own) and len(shared) >= _SAME_TASK * len(own)


def find_handoffs(
    db: Connection,
    project_n: int | None,
    *,
    to_agent: str,
    without: Sequence[int],
    now: datetime,
) -> list[Handoff]:
    """Return the unread handoffs for an agent in a project, the latest first.

    An agent whose name is unknown gets those that are for any agent, and those for another agent
    too: only the caller knows who it is.
    """
    rows = handoff_rows.handoffs(
        db, project_n, to_agent=to_agent, unread=True, since=now - FRESH, limit=_SESSIONS_READ
    )
    return [load_handoff(db, row) for row in rows if row.session_n not in without]


def load_handoff(db: Connection, row: HandoffRow) -> Handoff:
    """Return a handoff as callers see it; fields that do not fit are left out."""
    texts = {name: _texts(row.body.get(name)) for name in HANDOFF_LISTS}
    session = sessions.get_session(db, row.session_n).id if row.session_n is not None else ""
    known = project_rows.all_projects(db)
    project = known[row.project_n].id if row.project_n in known else ""
    return Handoff(
        id=row.id,
        from_agent=row.from_agent,
        to_agent=row.to_agent,
        timestamp=row.created_at,
        what_was_done=str(row.body.get("what_was_done", "")),
        git_state=str(row.body.get("git_state", "")),
        **texts,
        session_id=session,
        project_id=project,
        read_at=row.read_at,
    )


HANDOFF_LISTS = (
    "artifacts", "needs_testing", "known_issues", "relevant_patterns", "next", "decisions",
)  # fmt: skip


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def handoff_body(handoff: Handoff) -> dict[str, object]:
    """Return the stored fields of a handoff."""
    return {
        "what_was_done": handoff.what_was_done,
        "git_state": handoff.git_state,
        **{name: list(getattr(handoff, name)) for name in HANDOFF_LISTS},
    }
