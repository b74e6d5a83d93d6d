"""What the person typed in a message, and the standing instructions among it."""

from __future__ import annotations

from lore.records import Message, NewMessage
from lore.text import instructions, parts


def standing_in(message: NewMessage | Message) -> tuple[str, ...]:
    """Return the standing instructions of the person, without what others say in a message."""
    said = person_said(message)
    return instructions.standing(said) if said else ()


def person_said(message: NewMessage | Message) -> str:
    """Return what the person typed: no tool's words, no other speaker's, no document's."""
    if message.role != "user" or message.speaker:
        return ""
    origin = message.origin or "user"
    own = [part for part in message.parts if parts.origin_of(part, origin) == "user"]
    return parts.said(part for part in own if part.kind == "text")
