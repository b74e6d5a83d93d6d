"""Cache breakpoints: where a rewritten prompt asks its provider to cache it."""

from __future__ import annotations

from collections.abc import Sequence

from lore.records.gateway import Dialogue, Entry, Plan

MAX_BREAKPOINTS = 4
"""Anthropic's limit per prompt, including those of the client (from its documentation)."""

LOOKBACK_BLOCKS = 20
"""Anthropic looks this many blocks before a breakpoint for a cached prefix (its documentation)."""

PREFIX = -1
"""Stands for the end of the prefix among the entry numbers."""


def choose_breakpoints(dialogue: Dialogue, plan: Plan) -> tuple[int, ...]:
    """Return the entries after which to set a breakpoint, besides those of the client."""
    return tuple(
        rank_breakpoints(dialogue.entries, plan)[: available_breakpoints(dialogue.breakpoints)]
    )


def available_breakpoints(used: int) -> int:
    """Return how many breakpoints are available: at least one, even if a client's must go."""
    return max(1, MAX_BREAKPOINTS - used)


def rank_breakpoints(entries: Sequence[Entry], plan: Plan) -> list[int]:
    """Return the entries after which a breakpoint is useful, the most useful first.

    The end comes first, as the next prompt starts with this one. Then comes the end of the prefix,
    which outlives a window, and then the end of the last prompt. The latter comes second if it is
    so far from the end that the provider would not find it.
    """
    ends = [PREFIX] if plan.prefix or plan.start else []
    spoken = [n for n in range(plan.start, len(entries)) if entries[n].voice != "system"]
    if not spoken:
        return ends
    former = _previous_end(entries, spoken)
    since = sum(len(one.blocks) for one in entries[former[0] + 1 :]) if former else 0
    others = [*former, *ends] if since >= LOOKBACK_BLOCKS else [*ends, *former]
    return [spoken[-1], *others]


def _previous_end(entries: Sequence[Entry], spoken: Sequence[int]) -> list[int]:
    """Return the last entry of the previous prompt, if this prompt contains it."""
    answer = next((n for n in reversed(spoken) if entries[n].voice == "assistant"), -1)
    return [n for n in spoken if n < answer][-1:]
