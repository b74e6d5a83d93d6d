"""Silences: what was said while nothing was to be stored, as a talk itself tells.

A person types that into the talk, and it is sent with all that follows: so it holds under
whatever name a client goes on, and without anything that was kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from lore.records.dialogues import Entry
from lore.text import chat_commands


def find_silent(entries: Sequence[Entry], *, joined: bool) -> frozenset[int]:
    """Return the numbers of the entries that were said in amnesia, beside what Lore was told.

    If entries are not `joined` of what was typed, only one of a single text holds a command.
    """
    found: list[int] = []
    is_on, command = False, ""
    for number, entry in enumerate(entries):
        if entry.voice == "user":
            command = chat_commands.find(entry.typed(joined=joined))
            is_on = _switched(command, is_on=is_on)
        if is_on and not command and entry.voice != "system":
            found.append(number)
    return frozenset(found)


def is_silent(entries: Sequence[Entry], *, joined: bool) -> bool:
    """Tell whether a talk is in amnesia where it ends."""
    is_on = False
    for entry in entries:
        if entry.voice == "user":
            is_on = _switched(chat_commands.find(entry.typed(joined=joined)), is_on=is_on)
    return is_on


def _switched(command: str, *, is_on: bool) -> bool:
    switch = chat_commands.switch_of(command)
    return is_on if switch is None else switch
