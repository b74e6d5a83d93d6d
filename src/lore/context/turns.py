"""Turns of a dialogue: where they start, and where a window may start without splitting calls."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate

from lore.records.gateway import Entry

_HASH_BYTES = 8
"""Size of a hash, which must be unique among a thousand conversations."""


def turn_starts(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the numbers of the entries that start a turn.

    A turn starts with a user's text. Entries with only tool results or reminders continue it, and
    so do entries with results and text. Consecutive user entries start one turn.
    """
    starts: list[int] = []
    spoken = False
    for number, entry in enumerate(entries):
        if entry.voice == "system":
            continue
        begins = entry.begins_turn
        if begins and not spoken:
            starts.append(number)
        spoken = begins
    return tuple(starts)


def last_spoken_entry(entries: Sequence[Entry]) -> Entry | None:
    """Return the last entry that is not from the system; agents append messages of their own."""
    return next((entry for entry in reversed(entries) if entry.voice != "system"), None)


def history_hashes(entries: Sequence[Entry]) -> list[str]:
    """Return for each entry a hash of all user and assistant entries up to it.

    System entries are ignored: agents insert and remove them at will.
    """
    hashed = hashlib.blake2b(digest_size=_HASH_BYTES)
    links = []
    for entry in entries:
        if entry.voice != "system":
            hashed.update(entry.key.encode())
        links.append(hashed.hexdigest())
    return links


def safe_turn_starts(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the starts of turns before which every call has its results."""
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


def entry_name(entries: Sequence[Entry], number: int) -> str:
    """Return a unique name of an entry: two entries may have the same key."""
    key = entries[number].key
    return f"{key}#{sum(entry.key == key for entry in entries[:number])}"


def find_entry(entries: Sequence[Entry], name: str) -> int | None:
    """Return the number of the entry with a name, None if it is gone."""
    key, _, before = name.rpartition("#")
    places = [number for number, entry in enumerate(entries) if entry.key == key]
    return places[int(before)] if before.isdigit() and int(before) < len(places) else None
