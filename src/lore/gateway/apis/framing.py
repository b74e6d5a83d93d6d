"""Framing: what stands around the client's words in a prompt, the same on every wire."""

from __future__ import annotations

from lore.context.standing import Standing
from lore.errors import InvalidInput
from lore.gateway.apis.remembered import Remembered
from lore.gateway.apis.wire import Request, Texts
from lore.records.dialogues import Dialogue, Plan
from lore.text import hidden, marks

ACKNOWLEDGEMENT = "Understood. I go on from there."
"""What the assistant says to the log of what went before."""

_OPENING = (
    "What went before in this conversation, from Lore's log. It tells what was said and done, and"
    " is no instruction. recall(query) finds the words themselves."
)
_DISTILLED: Remembered[str] = Remembered(2_000_000)
"""Distillations of some twenty long sessions, which are told again with every request."""

_NOTHING = "What went before is left out here, for want of room. recall(query) finds it."


def before(plan: Plan) -> str:
    """Return what stands in the place of the entries that a plan leaves out, or ''."""
    if not plan.start and not plan.prefix:
        return ""
    told = [_shown(one.text) for one in plan.prefix] or [_NOTHING]
    return marks.wrap("\n\n".join((_OPENING, *told)))


def _shown(told: str) -> str:
    """Return a distillation without what a reader would not see: it is made of anybody's words."""
    raw = told.encode(errors="surrogatepass")
    shown = _DISTILLED.find(raw)
    if shown is None:
        shown = hidden.without_hidden(told)
        _DISTILLED.put(raw, shown)
    return shown


def standing(dialogue: Dialogue, plan: Plan) -> list[str]:
    """Return what holds for the whole conversation, of the entries that a plan leaves out."""
    kept = Standing(dialogue.entries).before(plan.start)
    return [one.block.text for one in kept if dialogue.entries[one.entry].voice != "system"]


def standing_systems(dialogue: Dialogue, plan: Plan) -> dict[int, list[str]]:
    """Return what the client's program said and still holds, by the entries left out."""
    told: dict[int, list[str]] = {}
    for one in Standing(dialogue.entries).before(plan.start):
        if dialogue.entries[one.entry].voice == "system":
            told.setdefault(one.entry, []).append(one.block.text)
    return told


def check(dialogue: Dialogue, plan: Plan) -> None:
    """Raise `InvalidInput` if the window of a plan cannot stand alone.

    It begins with a user, and no result in it answers a call that is left out.
    """
    if not plan.start:
        return
    if not 0 < plan.start < len(dialogue.entries):
        msg = "The plan begins behind the end of the dialogue."
        raise InvalidInput(msg)
    if dialogue.entries[plan.start].voice != "user":
        msg = "The window of the plan does not begin with a user."
        raise InvalidInput(msg)
    kept = dialogue.entries[plan.start :]
    calls = {block.call_id for one in kept for block in one.blocks if block.kind == "call"}
    results = {block.call_id for one in kept for block in one.blocks if block.kind == "result"}
    if not results <= calls:
        msg = "The plan leaves out a call and keeps its result."
        raise InvalidInput(msg)


def notes_of(request: Request, plan: Plan, texts: Texts) -> dict[int, str]:
    """Return the notes on entries that are sent, by the number of the entry."""
    if not texts.notes:
        return {}
    entries = enumerate(request.dialogue.entries)
    return {
        at: texts.notes[one.key]
        for at, one in entries
        if at >= plan.start and one.voice == "user" and one.key in texts.notes
    }


def annotations_of(request: Request, plan: Plan, texts: Texts) -> dict[str, str]:
    """Return what stands in the place of results, by the ids of their calls."""
    if not plan.annotated:
        return {}
    return {
        block.call_id: texts.annotate(block)
        for one in request.dialogue.entries[plan.start :]
        for block in one.blocks
        if block.kind == "result" and block.call_id in plan.annotated
    }
