"""Summing: what several answers of an upstream took together, in the words of their wire."""

from __future__ import annotations

from collections.abc import Sequence

from lore.gateway.apis.shapes import Json

_MOST = 2**63 - 1
"""No longer number can be written."""


def summed(rounds: Sequence[Json]) -> Json:
    """Return the numbers of several usages added up, at every depth; the rest of the last one.

    Each of them stands below `iterations`, as Anthropic tells what the rounds of its own tools
    took: clients take the last for the size of the conversation.
    """
    if len(rounds) == 1:
        return dict(rounds[0])
    total: Json = {}
    for one in rounds:
        total = _added(total, one)
    return {**total, "iterations": [{**one, "type": "message"} for one in rounds]}


def added(rounds: Sequence[Json]) -> Json:
    """Return the numbers of several usages added up, at every depth; the rest of the last one."""
    total: Json = {}
    for one in rounds:
        total = _added(total, one)
    return total


def _added(total: Json, more: Json) -> Json:
    made = dict(total)
    for name, value in more.items():
        held = made.get(name)
        if isinstance(value, dict):
            made[name] = _added(held if isinstance(held, dict) else {}, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            made[name] = min(_MOST, value + (held if isinstance(held, int) else 0))
        elif value is not None:
            made[name] = value
        else:
            made.setdefault(name, None)
    return made
