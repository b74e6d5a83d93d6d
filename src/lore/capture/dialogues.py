"""Convert the entries of a prompt into messages.

Agents write each block of an entry into a transcript line of its own, so each becomes a message: a
message that arrives both ways is then recognized as a duplicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lore.capture import message_capture
from lore.capture.adapters import content_blocks, injected_text
from lore.records import Block, Entry, NewMessage, Origin, Part
from lore.text import chat_commands

_PREFIX_DIGITS = 12
"""Digits of the previous entry's key in an entry's key: a 'yes' said twice stays two."""

_RECALL = "recall"
"""The tool that the gateway offers; the results of a client's own tool of this name are memory as
well."""

_STOPPED = "[Request interrupted by user"
"""What Claude Code puts between results and what a person says instead."""


@dataclass(frozen=True, slots=True)
class DialogueMessages:
    """The messages of a dialogue, and for each the number of its entry."""

    messages: tuple[NewMessage, ...]
    entries: tuple[int, ...]
    newest: int = 0
    """The number of the first entry that was in no earlier request."""

    @property
    def keys(self) -> list[str]:
        """Return the keys of the messages."""
        return [message.key for message in self.messages]


def to_messages(
    entries: Sequence[Entry],
    at: datetime,
    *,
    first: int = 0,
    model: str = "",
    helper: bool = False,
    joined: bool = True,
) -> DialogueMessages:
    """Return the entries from `first` on as messages.

    In a helper's session no one is a person. If an agent's entries are not `joined` from typed
    text, one with several texts may hold text from anyone. Commands to Lore and their responses are
    dropped.
    """
    keys = [entry.key for entry in entries]
    names = _call_names(entries, first)
    converted: list[NewMessage] = []
    places: list[int] = []
    is_command = _is_command_before(entries, first, joined=joined)
    for number in range(first, len(entries)):
        entry = entries[number]
        if entry.voice == "user":
            is_command = _is_command(entry, joined=joined)
        if is_command and entry.voice != "system":
            continue
        # Search markers are not the model's own words.
        for message in message_capture.split_at_search_marks(
            _entry_messages(entry, _message_key(keys, number), at, names, joined=joined)
        ):
            spoken = replace(message, model=model) if message.role == "assistant" else message
            converted.append(injected_text.from_agent(spoken) if helper else spoken)
            places.append(number)
    return DialogueMessages(tuple(converted), tuple(places), _find_newest(entries))


def _message_key(keys: Sequence[str], number: int) -> str:
    """Return the key of the messages of an entry: its own and that of the entry before it, and a
    number where both came before."""
    before = keys[number - 1][:_PREFIX_DIGITS] if number else ""
    key = f"{before}{keys[number]}"
    if keys.count(keys[number]) == 1:
        return key
    pairs = zip(("", *keys[:number]), keys[: number + 1], strict=True)
    count = sum(f"{one[:_PREFIX_DIGITS]}{two}" == key for one, two in pairs)
    return key if count == 1 else f"{key}-{count}"


def _call_names(entries: Sequence[Entry], first: int) -> dict[str, str]:
    """Return the tools of all calls, if an entry from `first` on has a result that names none."""
    if not any(
        block.kind == "result" and not block.tool
        for number in range(first, len(entries))
        for block in entries[number].blocks
    ):
        return {}
    calls = (block for entry in entries for block in entry.blocks if block.kind == "call")
    return {block.call_id: block.tool for block in calls}


def _is_command(entry: Entry, *, joined: bool) -> bool:
    """Return whether a user's entry is a command to Lore."""
    return entry.may_be_command and bool(chat_commands.find_command(entry.typed(joined=joined)))


def _is_command_before(entries: Sequence[Entry], first: int, *, joined: bool) -> bool:
    """Return whether the last user's entry before `first` is a command to Lore."""
    for number in range(first - 1, -1, -1):
        if entries[number].voice == "user":
            return _is_command(entries[number], joined=joined)
    return False


def _find_newest(entries: Sequence[Entry]) -> int:
    """Return where the new part of a request begins: results, or the last prompt.

    Agents that compact a conversation put all former prompts before it. Searches are part of a
    response.
    """
    at = len(entries)
    while at and not _is_request(entries[at - 1]):
        at -= 1
    while at and _is_request(entries[at - 1]):
        at -= 1
        if entries[at].begins_turn:
            break
    return at


def _is_request(entry: Entry) -> bool:
    if entry.voice == "assistant":
        return False
    are_recall_results = [
        block.kind == "result" and block.tool == _RECALL for block in entry.blocks
    ]
    return not are_recall_results or not all(are_recall_results)


def _entry_messages(
    entry: Entry, key: str, at: datetime, names: dict[str, str], *, joined: bool
) -> Iterator[NewMessage]:
    beside: list[Block] = []
    origin: Origin | None = None if _is_typed(entry, joined=joined) else "tool"
    for place, block in enumerate(entry.blocks):
        if entry.voice == "assistant":
            yield from _assistant_messages(block, f"{key}:{place}", at)
        elif block.kind == "result":
            yield from _user_messages(entry, beside, f"{key}:{place}-", at, origin)
            beside = []
            name = block.tool or names.get(block.call_id, "")
            yield _result_message(replace(block, tool=name), key, at)
        else:
            beside.append(block)
    yield from _user_messages(entry, beside, key, at, origin)


def _is_typed(entry: Entry, *, joined: bool) -> bool:
    """Return whether a person typed the texts of a user entry.

    Beside tool results only where the person has stopped the agent. Reminders and the like are
    recognized by their own marks.
    """
    if any(block.kind == "result" for block in entry.blocks):
        return any(b.kind == "text" and b.text.startswith(_STOPPED) for b in entry.blocks)
    return joined or len(entry.texts) < 2


def _assistant_messages(block: Block, key: str, at: datetime) -> Iterator[NewMessage]:
    if block.kind == "call":
        part = content_blocks.call_part(block.tool, block.text, block.call_id)
        yield NewMessage("assistant", (part,), at, _call_key("call", block, key))
        return
    if block.kind == "result":
        yield _result_message(block, key, at)
        return
    parts = (
        content_blocks.reasoning_parts(block.text)
        if block.kind == "reasoning"
        else injected_text.split_spoken(block.text)
    )
    if parts:
        yield NewMessage("assistant", parts, at, key)


def _result_message(block: Block, key: str, at: datetime) -> NewMessage:
    text = injected_text.MEMORY_PLACEHOLDER if block.tool == _RECALL else block.text
    parts = content_blocks.result_parts(text, block.tool, block.call_id, failed=block.failed)
    return NewMessage(
        "tool",
        parts,
        at,
        _call_key("result", block, key),
        origin=content_blocks.tool_origin(block.tool),
    )


def _call_key(what: str, block: Block, key: str) -> str:
    """Return the key of a call or a result: the id of the call, wherever it is."""
    return f"{what}:{block.call_id}" if block.call_id else f"{key}:{what}"


def _user_messages(
    entry: Entry, beside: Sequence[Block], key: str, at: datetime, origin: Origin | None
) -> Iterator[NewMessage]:
    parts: list[Part] = []
    for block in beside:
        if not block.text.strip():
            continue
        if entry.voice == "system":
            parts.append(injected_text.injected_part(block.text))
        elif block.kind == "text":
            parts += injected_text.split_typed(block.text, origin)
        else:
            parts.append(Part("opaque", block.text, block.kind))
    yield from injected_text.user_messages(NewMessage("user", (), at, key), parts)
