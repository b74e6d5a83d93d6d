"""A turn: one request of a conversation, and what was said by its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lore.context import turns
from lore.gateway.apis import keys
from lore.gateway.apis.wire import Reply, Request, Tool, Wire
from lore.gateway.recalling import Recalling
from lore.memory.holding import Composed
from lore.records import Entry, Speaker
from lore.text import marks

_HOOKED = frozenset({"claude-code"})
"""Agents that have hooks wherever they have the tools of Lore."""

_MOST_ASKED_CHARS = 20_000
"""What is longer was not typed; what it asks for stands at its beginning."""


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
        return with_answer(entries, replies)


def with_answer(entries: tuple[Entry, ...], replies: Sequence[Reply]) -> tuple[Entry, ...]:
    """Return entries with the last answer to them; one that was cut off may hold nothing."""
    last = replies[-1].entry if replies else None
    if last is None or not last.blocks:
        return entries
    return (*entries, keys.following(entries, last))


def is_given(speaker: Speaker, request: Request) -> bool:
    """Tell whether a session is given memory without the gateway: its agent's hooks do that.

    What they gave stands in the place of a person's words; where they had nothing to give, an agent
    that has both hooks and tools of Lore shows its tools.
    """
    if speaker.agent in _HOOKED and has_own_memory(request):
        return True
    return any(
        marks.may_have_memory(block.text)
        for entry in request.dialogue.entries
        if entry.voice != "assistant"
        for block in entry.blocks
        if block.kind == "text"
    )


def has_own_memory(request: Request) -> bool:
    """Tell whether a client has the tools of Lore by itself."""
    return any("lore" in name.lower() and name.endswith("recall") for name in request.tools)


def may_offer(request: Request, tool: Tool, wanted: str) -> bool:
    """Tell whether a model may be offered a tool on top of its client's, as settings want it."""
    offers = wanted == "on" or (wanted == "auto" and not has_own_memory(request))
    return offers and request.may_recall and tool.name not in request.tools


def new_prompt(request: Request) -> str:
    """Return what a person asks for with a request, '' where it only goes on with a turn."""
    last = turns.last_said(request.dialogue.entries)
    if last is None or not last.begins_turn:
        return ""
    asked = "\n".join(block.text for block in last.blocks if block.kind == "text")
    return asked[:_MOST_ASKED_CHARS]


def told_headers(composed: Composed, delay_s: float) -> tuple[tuple[str, str], ...]:
    """Return what a client is told of its prompt."""
    plan = composed.plan
    told = [("x-lore-layer", str(plan.layer)), ("x-lore-tokens", str(plan.tokens))]
    if plan.busts:
        told.append(("x-lore-bust", plan.why))
    if plan.notes:
        told.append(("x-lore-unfit", "; ".join(plan.notes)))
    return (*told, *delay_headers(delay_s))


def delay_headers(delay_s: float) -> tuple[tuple[str, str], ...]:
    """Return what a client is told of a request that was held back."""
    return (("x-lore-delay-s", f"{delay_s:.1f}"),) if delay_s else ()
