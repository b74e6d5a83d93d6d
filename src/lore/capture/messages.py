"""Messages on their way in: everything that is derived from them, computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lore import clock
from lore.capture import projects
from lore.capture.projects import Projects
from lore.errors import InvalidInput
from lore.records import (
    ORIGINS,
    PART_KINDS,
    ROLES,
    Channel,
    Message,
    NewMessage,
    Origin,
    Part,
    Role,
)
from lore.store import messages, sessions
from lore.store.db import Connection, Database
from lore.store.messages import PreparedMessage
from lore.store.places import Place
from lore.text import digests, instructions, parts, tokens, words
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
    channel: Channel = "push"


def capture(database: Database, conversation: Conversation, new: Sequence[NewMessage]) -> list[str]:
    """Store messages of a conversation, each once, and return their ids in order."""
    if not conversation.session.strip():
        msg = "A session needs a name."
        raise InvalidInput(msg)
    if not new:
        return []
    prepared = [prepare(message) for message in _keyed(new)]
    cleaned = _cleaned(conversation)
    place = Projects().find(cleaned.project)
    return database.write(lambda db: _store(db, cleaned, place, prepared, now=database.now()))


def _cleaned(conversation: Conversation) -> Conversation:
    return Conversation(
        session=words.clean(conversation.session),
        agent=words.clean(conversation.agent),
        project=words.clean(conversation.project),
        title=words.clean(conversation.title),
        branch=words.clean(conversation.branch),
        parent=words.clean(conversation.parent),
        files=tuple(words.clean(file) for file in conversation.files),
        channel=conversation.channel,
    )


def _store(
    db: Connection,
    conversation: Conversation,
    place: Place | None,
    prepared: Sequence[PreparedMessage],
    *,
    now: datetime,
) -> list[str]:
    """Write messages of a conversation, in the transaction of the caller."""
    project_n = projects.ensure(db, conversation.project, place, now=now)
    parent_n = sessions.get_number(db, conversation.parent) if conversation.parent else None
    if project_n is None and parent_n is not None:
        project_n = sessions.project_number(db, parent_n)
    session_n = sessions.ensure_session(
        db,
        conversation.session,
        agent=conversation.agent,
        project_n=project_n,
        started_at=prepared[0].new.created_at,
        branch=conversation.branch,
        parent_n=parent_n,
    )
    if conversation.title or conversation.files:
        sessions.describe(db, session_n, title=conversation.title, files=conversation.files)
    return messages.add(db, session_n, prepared, now=now, channel=conversation.channel)


def _keyed(new: Sequence[NewMessage]) -> list[NewMessage]:
    """Give every message a key: its own, or one made of what it says and how often before."""
    seen: dict[str, int] = {}
    keyed = []
    for message in new:
        key = message.key
        if not key:
            at = clock.to_us(message.created_at)
            body = f"{message.role}\0{message.speaker}\0{at}\0" + "\0".join(
                f"{part.kind}\0{part.name}\0{part.call_id}\0{part.text}" for part in message.parts
            )
            digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:24]
            seen[digest] = seen.get(digest, 0) + 1
            key = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        keyed.append(replace(message, key=key))
    return keyed


def prepare(message: NewMessage, *, id: str = "") -> PreparedMessage:
    """Derive all that the store keeps beside a message."""
    _check(message)
    cleaned = tuple(map(_cleaned_part, message.parts))
    message = replace(
        message,
        parts=cleaned,
        origin=message.origin or _ORIGINS[message.role],
        key=words.clean(message.key),
        speaker=words.clean(message.speaker),
        model=words.clean(message.model),
    )
    said = parts.said(cleaned)
    standing = standing_in(message)
    searchable = parts.searchable(cleaned)
    return PreparedMessage(
        new=message,
        id=id or clock.new_id(message.created_at),
        key=message.key,
        tokens=tokens.count(parts.readable(cleaned)),
        embeds=message.role in ("user", "assistant") and bool(said.strip()),
        traits=traits_of(searchable, message.role, standing=bool(standing)),
        standing=standing,
        digest=digests.digest_of(message.role, cleaned),
        searchable=searchable,
    )


def _cleaned_part(part: Part) -> Part:
    text, name, call_id = words.clean(part.text), words.clean(part.name), words.clean(part.call_id)
    if text is part.text and name is part.name and call_id is part.call_id:
        return part
    return replace(part, text=text, name=name, call_id=call_id)


def standing_in(message: NewMessage | Message) -> tuple[str, ...]:
    """Return the standing instructions of the person, without what others say in a message."""
    if message.role != "user" or message.speaker:
        return ()
    origin = message.origin or _ORIGINS[message.role]
    own = [part for part in message.parts if parts.origin_of(part, origin) == "user"]
    return instructions.standing(parts.said(own))


def _check(message: NewMessage) -> None:
    if message.role not in ROLES:
        msg = f"'{message.role}' is no role."
        raise InvalidInput(msg, hint=f"Roles: {', '.join(ROLES)}.")
    for part in message.parts:
        if part.kind not in PART_KINDS:
            msg = f"'{part.kind}' is no kind of part."
            raise InvalidInput(msg, hint=f"Kinds: {', '.join(PART_KINDS)}.")
    for origin in (message.origin, *(part.origin for part in message.parts)):
        if origin is not None and origin not in ORIGINS:
            msg = f"'{origin}' is no origin."
            raise InvalidInput(msg, hint=f"Origins: {', '.join(ORIGINS)}.")


def message_of(role: Role, text: str, created_at: datetime) -> NewMessage:
    """Return a plain message of one text."""
    return NewMessage(role, (Part("text", text),), created_at)
