"""The forgetting curve: the current strength of a fragment by importance, access and age."""

from __future__ import annotations

from math import exp, inf, log

VISIBLE = 0.05
"""Search returns fragments of at least this relevance."""

BELIEVED = 0.2
"""Search returns fragments of more confidence than this."""

NEIGHBOUR_BOOST = 0.1
"""The boost of a neighbor when a fragment is read, times the weight of the edge."""

USED_DAYS = 90
"""A fragment that was read, recalled or injected in so many days stays visible, and its edges do
not fade.
"""

_FASTEST_DECAY_PER_DAY = 0.07
_DECAY_SPARED_BY_IMPORTANCE = 0.06
_FRESH_STRENGTH = 0.3
_STRENGTH_PER_LOG_ACCESS = 0.15
_FLOOR_SHARE = 0.3
_LASTING_IMPORTANCE = 0.5


def decay_rate(importance: float) -> float:
    """Return the decay per day for a fragment of this importance."""
    return _FASTEST_DECAY_PER_DAY - _DECAY_SPARED_BY_IMPORTANCE * importance


def strength(access_count: int) -> float:
    """Return the strength after a number of accesses, at most 1."""
    return min(1.0, _FRESH_STRENGTH + _STRENGTH_PER_LOG_ACCESS * log(1 + access_count))


def relevance(
    importance: float,
    access_count: int,
    days_since_reinforced: float,
    boost: float = 0.0,
    days_since_boosted: float = 0.0,
    days_since_used: float = inf,
) -> float:
    """Return the current relevance, 0..1.

    Important fragments (at least 0.5) never fall below a floor; the floor of others decays too, so
    that they can be forgotten. The boost by neighbors is added. What was used lately stays visible.
    """
    rate = decay_rate(importance)
    days = max(0.0, days_since_reinforced)
    floor = _FLOOR_SHARE * importance
    if importance < _LASTING_IMPORTANCE:
        floor *= exp(-rate * days / 3)
    value = importance * strength(access_count) * exp(-rate * days) + floor
    value += decayed_boost(boost, importance, days_since_boosted)
    return min(1.0, max(value, VISIBLE if days_since_used < USED_DAYS else 0.0))


def decayed_boost(boost: float, importance: float, days: float) -> float:
    """Return the rest of a boost, which decays like its fragment."""
    return boost * exp(-decay_rate(importance) * max(0.0, days))
