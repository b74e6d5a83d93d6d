"""The forgetting curve: how strong a fragment is now, given how it was learned and read."""

from __future__ import annotations

from math import exp, log

VISIBLE = 0.05
"""Search shows fragments of at least this relevance."""

_FASTEST_DECAY_PER_DAY = 0.07
_DECAY_SPARED_BY_IMPORTANCE = 0.06
_FRESH_STRENGTH = 0.3
_STRENGTH_PER_LOG_ACCESS = 0.15
_FLOOR_SHARE = 0.3
_LASTING_IMPORTANCE = 0.5


def decay_rate(importance: float) -> float:
    """Return the share of strength lost per day for a fragment of this importance."""
    return _FASTEST_DECAY_PER_DAY - _DECAY_SPARED_BY_IMPORTANCE * importance


def strength(access_count: int) -> float:
    """Return how firmly a fragment sits after so many readings, at most 1."""
    return min(1.0, _FRESH_STRENGTH + _STRENGTH_PER_LOG_ACCESS * log(1 + access_count))


def relevance(importance: float, access_count: int, days_since_reinforced: float) -> float:
    """Return the current relevance, 0..1.

    What mattered (importance of at least 0.5) never falls below a floor; the floor of what
    did not matter melts away too, so that it can be forgotten.
    """
    rate = decay_rate(importance)
    days = max(0.0, days_since_reinforced)
    floor = _FLOOR_SHARE * importance
    if importance < _LASTING_IMPORTANCE:
        floor *= exp(-rate * days / 3)
    value = importance * strength(access_count) * exp(-rate * days) + floor
    return min(1.0, max(0.0, value))
