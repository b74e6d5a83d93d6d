"""Dialogues on their way into the store: entries of a prompt as the messages they are.

Agents write each block of an entry into a transcript line of its own, so each becomes a message:
what comes in by both ways is then known to be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lore.capture import searches
from lore.capture.adapters import asides, blocks, tools
from lore.records import Block, Entry, NewMessage, Origin, Part
from lore.text import chat_commands

_OWN = 12
"""Digits of the entry before that name an entry: a 'yes' said twice stays two."""

_RECALL = "recall"
"""The tool that the gateway offers; a client that has one of this name is offered none, and what
that gives is memory as well."""

_STOPPED = "[Request interrupted by user"
"""What Claude Code puts between results and what a person says instead."""


@dataclass(frozen=True, slots=True)
class Told:
    """The messages of a dialogue, and for each the number of its entry."""

    messages: tuple[NewMessage, ...]
    entries: tuple[int, ...]
    newest: int = 0
    """The number of the entry from which on nothing was said in a request before."""

    @property
    def keys(self) -> list[str]:
        """Return the keys of the messages."""
        return [message.key for message in self.messages]


def tell(
    entries: Sequence[Entry],
    at: datetime,
    *,
    first: int = 0,
    model: str = "",
    helper: bool = False,
    joined: bool = True,
) -> Told:
    """Return what entries say from the `first` on, as messages.

    In a helper's session nobody is a person. If an agent's entries are not `joined` of what was
    typed, one that has several texts may hold what anyone has written. What is typed to Lore
    itself is no part of the talk, and neither is its answer.
    """
    names = {
        block.call_id: block.tool
        for entry in entries
        for block in entry.blocks
        if block.kind == "call"
    }
    told: list[NewMessage] = []
    places: list[int] = []
    seen: Counter[str] = Counter()
    before, is_command = "", False
    for number, entry in enumerate(entries):
        own = f"{before[:_OWN]}{entry.key}"
        seen[own] += 1
        key = own if seen[own] == 1 else f"{own}-{seen[own]}"
        before = entry.key
        if entry.voice == "user":
            is_command = bool(chat_commands.find(entry.typed(joined=joined)))
        if number < first or (is_command and entry.voice != "system"):
            continue
        # A marker that nobody can put back any more is no word of a model's.
        for message in searches.taken_apart(_messages(entry, key, at, names, joined=joined)):
            spoken = replace(message, model=model) if message.role == "assistant" else message
            told.append(_from_agent(spoken) if helper else spoken)
            places.append(number)
    return Told(tuple(told), tuple(places), _newest(entries))


def _newest(entries: Sequence[Entry]) -> int:
    """Return where that begins which is said for the first time: results, or the last prompt.

    Agents that condense a talk put all former prompts before it. Searches are part of an answer.
    """
    at = len(entries)
    while at and not _is_asked(entries[at - 1]):
        at -= 1
    while at and _is_asked(entries[at - 1]):
        at -= 1
        if entries[at].begins_turn:
            break
    return at


def _is_asked(entry: Entry) -> bool:
    if entry.voice == "assistant":
        return False
    found = [block.kind == "result" and block.tool == _RECALL for block in entry.blocks]
    return not found or not all(found)


def _texts(entry: Entry) -> list[str]:
    return [block.text for block in entry.blocks if block.kind == "text" and block.text.strip()]


def _from_agent(message: NewMessage) -> NewMessage:
    """Return a message of a helper: what it is asked was written by its parent."""
    if message.role != "user":
        return message
    return replace(message, speaker="agent", origin="assistant")


def _messages(
    entry: Entry, key: str, at: datetime, names: dict[str, str], *, joined: bool
) -> Iterator[NewMessage]:
    beside: list[Block] = []
    origin: Origin | None = None if _is_typed(entry, joined=joined) else "tool"
    for place, block in enumerate(entry.blocks):
        if entry.voice == "assistant":
            yield from _spoken(block, f"{key}:{place}", at)
        elif block.kind == "result":
            yield from _asked(entry, beside, f"{key}:{place}-", at, origin)
            beside = []
            name = block.tool or names.get(block.call_id, "")
            yield _result(replace(block, tool=name), key, at)
        else:
            beside.append(block)
    yield from _asked(entry, beside, key, at, origin)


def _is_typed(entry: Entry, *, joined: bool) -> bool:
    """Tell whether a person typed the texts of an entry in a person's place.

    Beside results that is so only where the person has stopped the agent. Reminders and such are
    told apart by their own marks.
    """
    texts = _texts(entry)
    if any(block.kind == "result" for block in entry.blocks):
        return any(text.startswith(_STOPPED) for text in texts)
    return joined or len(entry.texts) < 2


def _spoken(block: Block, key: str, at: datetime) -> Iterator[NewMessage]:
    if block.kind == "call":
        part = blocks.call(block.tool, block.text, block.call_id)
        yield NewMessage("assistant", (part,), at, _by_call("call", block, key))
        return
    if block.kind == "result":
        yield _result(block, key, at)
        return
    parts = blocks.thought(block.text) if block.kind == "reasoning" else asides.said(block.text)
    if parts:
        yield NewMessage("assistant", parts, at, key)


def _result(block: Block, key: str, at: datetime) -> NewMessage:
    text = asides.GIVEN if block.tool == _RECALL else block.text
    parts = blocks.result(text, block.tool, block.call_id, failed=block.failed)
    return NewMessage(
        "tool", parts, at, _by_call("result", block, key), origin=tools.origin_of(block.tool)
    )


def _by_call(what: str, block: Block, key: str) -> str:
    """Return the key of a call or a result: the id of the call, wherever and however it stands."""
    return f"{what}:{block.call_id}" if block.call_id else f"{key}:{what}"


def _asked(
    entry: Entry, beside: Sequence[Block], key: str, at: datetime, origin: Origin | None
) -> Iterator[NewMessage]:
    parts: list[Part] = []
    for block in beside:
        if not block.text.strip():
            continue
        if entry.voice == "system":
            parts.append(asides.aside(block.text))
        elif block.kind == "text":
            parts += asides.typed(block.text, origin)
        else:
            parts.append(Part("opaque", block.text, block.kind))
    if parts:
        yield asides.from_person(NewMessage("user", (), at, key), parts)
