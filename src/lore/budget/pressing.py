"""Pressing: what the pace of a day's money asks of requests, as it was seen a moment ago."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lore.budget.throttle import Pace, budget_delay_s
from lore.records import SpendPressure
from lore.store import spend

if TYPE_CHECKING:
    from lore.store.db import Connection

FRESH = timedelta(seconds=5)
"""So long a look at the pace of the day is good for."""

AT_HAND = timedelta(minutes=10)
"""So long it does for who cannot look again: the pace is that of an hour."""

_DAY = timedelta(days=1)

_SHORTEST_H = 1 / 12
"""A rate is that of five minutes at least: one dear request is no rate."""


class Pressing:
    """Remembers what the budget asks of requests; for many threads."""

    def __init__(self) -> None:
        self._seen: tuple[datetime, float, SpendPressure] | None = None

    def find(
        self, now: datetime, budget_usd: float, good_for: timedelta = FRESH
    ) -> SpendPressure | None:
        """Return what was seen on this day, if that is not too long ago and the budget the same."""
        if self._seen is None:
            return None
        at, seen_usd, pressure = self._seen
        is_of_today = at.date() == now.date() and seen_usd == budget_usd
        return pressure if is_of_today and timedelta() <= now - at < good_for else None

    def learn(self, now: datetime, pace: Pace) -> SpendPressure:
        """Take note of a pace."""
        pressure = SpendPressure(budget_delay_s(pace), pace.exceeds)
        self._seen = (now, pace.budget_usd, pressure)
        return pressure


def look(db: Connection, now: datetime, budget_usd: float) -> Pace:
    """Return how the money of the day goes."""
    begun, hour_ago = midnight(now), now - timedelta(hours=1)
    spent_usd = spend.whole(db, since=begun, until=begun + _DAY)
    lately_usd = spend.whole(db, since=hour_ago, until=begun + _DAY)
    first = spend.first_at(db, since=hour_ago) or now
    hours = max((now - first) / timedelta(hours=1), _SHORTEST_H)
    left_h = (begun + _DAY - now) / timedelta(hours=1)
    return Pace(budget_usd, spent_usd, lately_usd / hours, left_h)


def midnight(moment: datetime) -> datetime:
    """Return when the day of a moment began."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
