"""A turn: one request of a conversation, and what was said by its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lore.gateway.recalling import Recalling
from lore.gateway.wires import keys
from lore.gateway.wires.wire import Reply, Request, Wire
from lore.memory.holding import Composed
from lore.records import Entry, Speaker


@dataclass(frozen=True, slots=True)
class Turn:
    """One request that is a turn of a conversation, and the body that it was sent as."""

    request: Request
    speaker: Speaker
    composed: Composed
    wire: Wire
    path: str
    body: bytes
    recalling: Recalling | None = None

    def said(self, replies: Sequence[Reply]) -> tuple[Entry, ...]:
        """Return all that was said, as the client's next request will say it.

        Between the answers to one request stand the results that the gateway found.
        """
        entries = self.request.dialogue.entries
        if self.recalling is not None and self.recalling.asked:
            sent = len(self.wire.read(self.body, self.path).dialogue.entries)
            asked = self.wire.read(self.recalling.asked, self.path).dialogue.entries
            for entry in asked[sent:]:
                entries = (*entries, keys.following(entries, entry))
        last = replies[-1].entry if replies else None
        # One that was cut off may hold nothing.
        if last is not None and last.blocks:
            entries = (*entries, keys.following(entries, last))
        return entries
