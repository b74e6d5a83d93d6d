"""What the person typed in a message, and the standing instructions among it."""

from __future__ import annotations

from lore.records import Message, NewMessage
from lore.text import instructions, parts, withdrawals


def standing_in(message: NewMessage | Message) -> tuple[str, ...]:
    """Return what the person wants from now on or takes back, without what others say."""
    cut = list(instructions.sentences(person_said(message)))
    before = ["", *(masked for _, masked in cut)]
    behind = [*(masked for _, masked in cut[1:]), ""]
    return tuple(
        said
        for (said, masked), *beside in zip(cut, before, behind, strict=False)
        if instructions.lasts(masked) or withdrawals.find_beside(said, *beside)
    )


def person_said(message: NewMessage | Message) -> str:
    """Return what the person typed: no tool's words, no other speaker's, no document's."""
    if message.role != "user" or message.speaker:
        return ""
    origin = message.origin or "user"
    own = [part for part in message.parts if parts.origin_of(part, origin) == "user"]
    return parts.said(part for part in own if part.kind == "text")
