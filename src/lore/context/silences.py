"""Silences: what was said while nothing was to be stored, as a talk itself tells.

A person types that into the talk, and it is sent with all that follows: so it holds under
whatever name a client goes on, and without anything that was kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from lore.records.dialogues import Entry
from lore.text import chat_commands


def find_silent(entries: Sequence[Entry]) -> frozenset[int]:
    """Return the numbers of the entries that were said in amnesia, beside what Lore was told."""
    found: list[int] = []
    is_on = is_command = False
    for number, entry in enumerate(entries):
        if entry.voice == "user":
            is_command = bool(chat_commands.find(_texts(entry)))
        is_on = _switched(entries, number, is_on=is_on)
        if is_on and not is_command and entry.voice != "system":
            found.append(number)
    return frozenset(found)


def is_silent(entries: Sequence[Entry]) -> bool:
    """Tell whether a talk is in amnesia where it ends."""
    is_on = False
    for number in range(len(entries)):
        is_on = _switched(entries, number, is_on=is_on)
    return is_on


def _switched(entries: Sequence[Entry], number: int, *, is_on: bool) -> bool:
    entry = entries[number]
    if entry.voice != "user":
        return is_on
    switch = chat_commands.find_switch(_texts(entry))
    return is_on if switch is None or _was_late(entries, number) else switch


def _texts(entry: Entry) -> list[str]:
    return [block.text for block in entry.blocks if block.kind == "text"]


def _was_late(entries: Sequence[Entry], number: int) -> bool:
    """Tell whether the person was asked to say it once more."""
    answers = (entry for entry in entries[number + 1 :] if entry.voice != "system")
    answer = next(answers, None)
    return answer is not None and any(block.text == chat_commands.LATE for block in answer.blocks)
