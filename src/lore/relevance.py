"""The forgetting curve: how strong a fragment is now, given how it was learned and read."""

from __future__ import annotations

from math import exp, log

VISIBLE = 0.05
"""Search shows fragments of at least this relevance."""

BELIEVED = 0.2
"""Search shows fragments of more confidence than this."""

NEIGHBOUR_BOOST = 0.1
"""What reading a fragment gives to a neighbour, times the weight of the edge between them."""

MOST_BOOST = 1.0

_FASTEST_DECAY_PER_DAY = 0.07
_DECAY_SPARED_BY_IMPORTANCE = 0.06
_FRESH_STRENGTH = 0.3
_STRENGTH_PER_LOG_ACCESS = 0.15
_FLOOR_SHARE = 0.3
_LASTING_IMPORTANCE = 0.5
_PATIENCE_DAYS = 7
"""A file may be gone for so long before what was said of it is doubted: branches change."""

_DOUBT_PER_DAY = 0.1


def decay_rate(importance: float) -> float:
    """Return the share of strength lost per day for a fragment of this importance."""
    return _FASTEST_DECAY_PER_DAY - _DECAY_SPARED_BY_IMPORTANCE * importance


def strength(access_count: int) -> float:
    """Return how firmly a fragment sits after so many readings, at most 1."""
    return min(1.0, _FRESH_STRENGTH + _STRENGTH_PER_LOG_ACCESS * log(1 + access_count))


def relevance(
    importance: float,
    access_count: int,
    days_since_reinforced: float,
    boost: float = 0.0,
    days_since_boosted: float = 0.0,
) -> float:
    """Return the current relevance, 0..1.

    What mattered (importance of at least 0.5) never falls below a floor; the floor of what
    did not matter melts away too, so that it can be forgotten. What reading its neighbours gave
    comes on top.
    """
    rate = decay_rate(importance)
    days = max(0.0, days_since_reinforced)
    floor = _FLOOR_SHARE * importance
    if importance < _LASTING_IMPORTANCE:
        floor *= exp(-rate * days / 3)
    value = importance * strength(access_count) * exp(-rate * days) + floor
    return min(1.0, max(0.0, value + faded(boost, importance, days_since_boosted)))


def faded(boost: float, importance: float, days: float) -> float:
    """Return what is left of a boost: it decays as fast as its fragment does."""
    return boost * exp(-decay_rate(importance) * max(0.0, days))


def doubt(days_missing: float) -> float:
    """Return what confidence loses by files that are gone for so many days, at most 1."""
    return min(1.0, max(0.0, _DOUBT_PER_DAY * (days_missing - _PATIENCE_DAYS)))
