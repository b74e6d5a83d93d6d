"""Breakpoints: where a rewritten prompt tells its provider to cache it."""

from __future__ import annotations

from typing import NamedTuple

from lore.records.dialogues import Dialogue, Plan

MOST = 4
"""A provider takes no more in one prompt, the client's included."""


class Breakpoints(NamedTuple):
    """After which entries of the dialogue there is one, and whether one ends the summaries."""

    entries: tuple[int, ...] = ()
    prefix: bool = False


def breakpoints(dialogue: Dialogue, plan: Plan) -> Breakpoints:
    """Return where to set breakpoints, beside those that the client set before the first entry.

    The end matters most: the next prompt begins with this one. Then the end of the summaries,
    which outlive a window, and then where the last prompt ended: a provider looks back only so
    far for what it has cached.
    """
    left = MOST - dialogue.breakpoints
    last = len(dialogue.entries) - 1
    if left < 1 or last < plan.start:
        return Breakpoints()
    prefix = bool(plan.prefix) and left > 1
    left -= 1 + prefix
    former = _former_end(dialogue, plan.start)
    entries = (former, last) if left > 0 and former is not None else (last,)
    return Breakpoints(entries, prefix)


def _former_end(dialogue: Dialogue, start: int) -> int | None:
    """Return the entry with which the last prompt ended: what the last answer answers."""
    entries = dialogue.entries
    said = (n for n in range(len(entries) - 1, start, -1) if entries[n].voice == "assistant")
    answer = next(said, None)
    return answer - 1 if answer is not None and answer - 1 >= start else None
