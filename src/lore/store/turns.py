"""Turns: the answers that followed a message before the person spoke again."""

from __future__ import annotations

from lore.records import Message
from lore.store import items, messages
from lore.store.packing import pack_role
from lore.store.sqlite import Connection

_LAST_LOOKED_AT = 8
"""The words of a turn stand near its end; the calls of tools before them are many."""

_FAR = 2_000
"""Where nobody spoke again, no more than so many messages are walked."""


def answers_to(db: Connection, id_: str) -> list[Message]:
    """Return the last messages of the assistant in the turn that a message began, last first."""
    place = db.find(
        "SELECT session_n, ordinal FROM messages WHERE n = :n", n=items.find_number(db, id_)
    )
    if place is None:
        return []
    session_n, ordinal = place
    rows = db.rows(
        "SELECT n FROM messages WHERE session_n = :session_n AND role = :role"
        " AND ordinal > :ordinal AND ordinal < coalesce((SELECT min(ordinal) FROM messages"
        " WHERE session_n = :session_n AND ordinal > :ordinal AND role = :asked), :ordinal + :far)"
        " ORDER BY ordinal DESC LIMIT :most",
        session_n=session_n,
        ordinal=ordinal,
        role=pack_role("assistant"),
        asked=pack_role("user"),
        far=_FAR,
        most=_LAST_LOOKED_AT,
    )
    ns = [row[0] for row in rows]
    found = messages.by_number(db, ns)
    return [found[n] for n in ns if n in found]
