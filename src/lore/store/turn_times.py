"""Turn times: how many turns the sessions of a project had, and how long lay between them."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from lore import clock
from lore.records import PastTurns
from lore.store.packing import pack_role
from lore.store.sqlite import Connection

_SESSIONS = 30
"""The latest that are looked at: ways of working change."""

_ROWS = 20_000

_US = 1_000_000


def past_turns(db: Connection, project_n: int | None, *, before: datetime) -> PastTurns:
    """Return the turns of the latest sessions that were silent since a moment.

    A turn begins where the assistant speaks after anybody else did.
    """
    rows = db.rows(
        "SELECT m.session_n, m.role, i.created_at FROM messages m JOIN items i ON i.n = m.n"
        " WHERE m.session_n IN (SELECT n FROM sessions WHERE last_message_at < :before"
        " AND (:project_n IS NULL OR project_n = :project_n)"
        " ORDER BY last_message_at DESC LIMIT :sessions)"
        " ORDER BY m.session_n DESC, m.ordinal LIMIT :rows",
        before=clock.to_us(before),
        project_n=project_n,
        sessions=_SESSIONS,
        rows=_ROWS,
    )
    times: dict[int, list[int]] = {}
    assistant = pack_role("assistant")
    previous = (0, assistant)
    for session_n, role, at in rows:
        begins = role == assistant and previous != (session_n, assistant)
        previous = (session_n, role)
        if begins:
            times.setdefault(session_n, []).append(at)
    pairs = (pair for told in times.values() for pair in pairwise(told))
    gaps = tuple(max(0, later - earlier) / _US for earlier, later in pairs)
    return PastTurns(tuple(len(told) for told in times.values()), gaps)
