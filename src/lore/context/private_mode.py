"""Private mode: find the entries of a dialogue that must not be stored.

The command that switches it is part of the dialogue and is sent with every request. So it applies
under any session name, and without stored state.
"""

from __future__ import annotations

from collections.abc import Sequence

from lore.records.gateway import Entry
from lore.text import chat_commands


def find_private_entries(entries: Sequence[Entry], *, joined: bool) -> frozenset[int]:
    """Return the numbers of the entries in private mode, without the commands themselves.

    If entries are not `joined` from several texts, only an entry with a single text is a command.
    """
    numbers: list[int] = []
    is_on, command = False, ""
    for number, entry in enumerate(entries):
        if entry.voice == "user":
            command = chat_commands.find_command(entry.typed(joined=joined))
            is_on = _apply_command(command, is_on=is_on)
        if is_on and not command and entry.voice != "system":
            numbers.append(number)
    return frozenset(numbers)


def is_private(entries: Sequence[Entry], *, joined: bool) -> bool:
    """Return whether a dialogue ends in private mode."""
    is_on = False
    for entry in entries:
        if entry.voice == "user":
            is_on = _apply_command(
                chat_commands.find_command(entry.typed(joined=joined)), is_on=is_on
            )
    return is_on


def _apply_command(command: str, *, is_on: bool) -> bool:
    switch = chat_commands.private_switch(command)
    return is_on if switch is None else switch
