"""Breakpoints: where a rewritten prompt tells its provider to cache it."""

from __future__ import annotations

from collections.abc import Sequence

from lore.records.dialogues import Dialogue, Entry, Plan

MOST = 4
"""Anthropic takes no more in one prompt, the client's included (its documentation)."""

LOOKED_BACK = 20
"""So many blocks before a breakpoint are looked at for what is cached (its documentation)."""

PREFIX = -1
"""Stands for the end of the prefix among the numbers of entries."""


def breakpoints(dialogue: Dialogue, plan: Plan) -> tuple[int, ...]:
    """Return after which entries there is one, beside those that the client set before them."""
    return tuple(useful(dialogue.entries, plan)[: left(dialogue.breakpoints)])


def left(taken: int) -> int:
    """Return how many there are for us: one at least, for which a client's has to go."""
    return max(1, MOST - taken)


def useful(entries: Sequence[Entry], plan: Plan) -> list[int]:
    """Return after which entries there is any use for one, the most useful first.

    The end matters most: the next prompt begins with this one. Then the end of the prefix,
    which outlive a window, and then where the last prompt ended. That one matters more once it is
    so far from the end that the provider does not look there by itself.
    """
    ends = [PREFIX] if plan.prefix or plan.start else []
    spoken = [n for n in range(plan.start, len(entries)) if entries[n].voice != "system"]
    if not spoken:
        return ends
    former = _former_end(entries, spoken)
    since = sum(len(one.blocks) for one in entries[former[0] + 1 :]) if former else 0
    others = [*former, *ends] if since >= LOOKED_BACK else [*ends, *former]
    return [spoken[-1], *others]


def _former_end(entries: Sequence[Entry], spoken: Sequence[int]) -> list[int]:
    """Return the entry with which the last prompt ended, if it is sent: what was answered last."""
    answer = next((n for n in reversed(spoken) if entries[n].voice == "assistant"), -1)
    return [n for n in spoken if n < answer][-1:]
