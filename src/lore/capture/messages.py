"""Messages on their way in: everything that is derived from them, computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lore import clock
from lore.errors import InvalidInput
from lore.records import NewMessage, Origin, Part, Role
from lore.store import messages, sessions
from lore.store.db import Connection, Database
from lore.store.messages import PreparedMessage
from lore.text import instructions, parts, tokens, words
from lore.text.traits import traits_of

_ORIGINS: dict[Role, Origin] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "system": "tool",
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where messages belong: one session of one agent, in a project or none."""

    session: str
    agent: str = "library"
    project: str = ""
    title: str = ""
    branch: str = ""
    parent: str = ""
    files: tuple[str, ...] = ()


def capture(
    database: Database, conversation: Conversation, new: Sequence[NewMessage]
) -> list[str]:
    """Store messages of a conversation, each once, and return their ids in order."""
    if not conversation.session.strip():
        msg = "A session needs a name."
        raise InvalidInput(msg)
    if not new:
        return []
    prepared = [prepare(message) for message in _keyed(new)]
    return database.write(lambda db: _store(database, db, conversation, prepared))


def _store(
    database: Database,
    db: Connection,
    conversation: Conversation,
    prepared: Sequence[PreparedMessage],
) -> list[str]:
    now = database.now()
    started_at = prepared[0].new.created_at
    project_n = (
        sessions.ensure_project(db, conversation.project, now=now) if conversation.project else None
    )
    parent_n = sessions.get_number(db, conversation.parent) if conversation.parent else None
    session_n = sessions.ensure_session(
        db,
        conversation.session,
        agent=conversation.agent,
        project_n=project_n,
        started_at=started_at,
        branch=conversation.branch,
        parent_n=parent_n,
    )
    if conversation.title or conversation.files:
        sessions.describe(
            db, session_n, title=words.clean(conversation.title), files=conversation.files
        )
    return messages.add(db, session_n, prepared, now=now)


def _keyed(new: Sequence[NewMessage]) -> list[NewMessage]:
    """Give every message a key: its own, or one made of what it says and how often before."""
    seen: dict[str, int] = {}
    keyed = []
    for message in new:
        key = message.key
        if not key:
            body = f"{message.role}\0{message.created_at.isoformat()}\0" + "\0".join(
                f"{part.kind}\0{part.call_id}\0{part.text}" for part in message.parts
            )
            digest = hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:24]
            seen[digest] = seen.get(digest, 0) + 1
            key = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        keyed.append(replace(message, key=key))
    return keyed


def prepare(message: NewMessage, *, id: str = "") -> PreparedMessage:  # noqa: A002 - the domain's word
    """Derive all that the store keeps beside a message."""
    cleaned = tuple(replace(part, text=words.clean(part.text)) for part in message.parts)
    origin = message.origin or _ORIGINS[message.role]
    message = replace(message, parts=cleaned, origin=origin, speaker=words.clean(message.speaker))
    said = parts.said(cleaned)
    by_person = message.role == "user" and not message.speaker
    standing = instructions.standing(said) if by_person else ()
    return PreparedMessage(
        new=message,
        id=id or clock.new_id(message.created_at),
        key=message.key,
        tokens=tokens.count(parts.readable(cleaned)),
        embeds=message.role in ("user", "assistant") and bool(said.strip()),
        traits=traits_of(parts.searchable(cleaned), message.role, standing=bool(standing)),
        standing=standing,
    )


def message_of(role: Role, text: str, created_at: datetime) -> NewMessage:
    """Return a plain message of one text."""
    return NewMessage(role, (Part("text", text),), created_at)
