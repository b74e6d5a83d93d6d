"""Turns: where they begin in a dialogue, and where a window may begin without breaking a pair."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate

from lore.records.dialogues import Entry

_CHAINED = 8
"""Bytes of a link: it is looked for among those of a thousand conversations."""


def turn_starts(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the numbers of the entries with which turns begin.

    That is what a person says: entries that only give results or reminders go on with a turn, and
    so does an entry that gives results beside words. What is said at once in several entries
    begins one turn.
    """
    found: list[int] = []
    spoken = False
    for number, entry in enumerate(entries):
        if entry.voice == "system":
            continue
        begins = entry.begins_turn
        if begins and not spoken:
            found.append(number)
        spoken = begins
    return tuple(found)


def last_said(entries: Sequence[Entry]) -> Entry | None:
    """Return the last entry of a person or a model; agents put messages of their own behind it."""
    return next((entry for entry in reversed(entries) if entry.voice != "system"), None)


def chain(entries: Sequence[Entry]) -> list[str]:
    """Return for each entry a name of all that people and models said up to it.

    What an agent says itself counts for nothing: it puts that in and takes it out at will.
    """
    hashed = hashlib.blake2b(digest_size=_CHAINED)
    links = []
    for entry in entries:
        if entry.voice != "system":
            hashed.update(entry.key.encode())
        links.append(hashed.hexdigest())
    return links


def whole_starts(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the starts of turns before which no call is left without its results."""
    cuts = [0] * (len(entries) + 1)
    called: dict[str, int] = {}
    for number, entry in enumerate(entries):
        for block in entry.blocks:
            if block.kind == "call":
                called[block.call_id] = number
            elif block.kind == "result" and block.call_id in called:
                cuts[called[block.call_id] + 1] += 1
                cuts[number + 1] -= 1
    open_calls = list(accumulate(cuts))
    return tuple(start for start in turn_starts(entries) if not open_calls[start])


def name_of(entries: Sequence[Entry], number: int) -> str:
    """Return the name by which an entry is known again: two may say the same."""
    key = entries[number].key
    return f"{key}#{sum(entry.key == key for entry in entries[:number])}"


def find_named(entries: Sequence[Entry], name: str) -> int | None:
    """Return the number of the entry of a name, None if it is gone."""
    key, _, before = name.rpartition("#")
    places = [number for number, entry in enumerate(entries) if entry.key == key]
    return places[int(before)] if before.isdigit() and int(before) < len(places) else None
