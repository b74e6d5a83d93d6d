"""Working state: what a session is at when a turn ends, for the next session to know."""

from __future__ import annotations

from lore.records import Message
from lore.store import messages, session_states, sessions
from lore.store.db import Connection, Database
from lore.text import goals, lines
from lore.text.parts import is_said, origin_of

_LOOKED_AT = 400
"""The person's last words stand before all that the agent did about them."""

_CHARS = 240


def keep(database: Database, session: str) -> None:
    """Keep what a session was last asked for."""
    with database.read() as db:
        n = sessions.get_number(db, session)
        state = _asked_last(db, n)
    if state and not database.read_only:
        now = database.now()
        database.write(lambda db: session_states.put(db, n, "working", state, now=now))


def _asked_last(db: Connection, n: int) -> dict[str, str]:
    last = messages.last_ordinal(db, n)
    for message in reversed(messages.of_session(db, n, first=max(0, last - _LOOKED_AT))):
        if message.role == "user" and (asked := _request(message)):
            return {"id": message.id, "asked": asked}
    return {}


def _request(message: Message) -> str:
    typed = [
        part.text
        for part in message.parts
        if is_said(part) and origin_of(part, message.origin) == "user"
    ]
    request = goals.request_of("\n".join(typed))
    return lines.one_line(request.text, _CHARS) if request and not request.command else ""
