"""Throttle: how long a request is delayed by the pace of the daily budget and by rate limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lore.records import SpendPressure
from lore.store import spend

if TYPE_CHECKING:
    from lore.store.database import Connection


MAX_DELAY_S = 60.0
"""Maximum delay of either formula."""

UNTHROTTLED_SHARE = 0.5
"""No delay until half of the budget is spent."""

UNTHROTTLED_UTILISATION = 0.8
"""No delay until this share of a quota is used."""

MIN_DELAY_S = 0.5
"""A shorter delay has no effect and is left out."""

CACHE_TTL_SHARE = 0.5
"""Wait at most this share of the cache's remaining time: a bust costs more than the delay saves."""

_OVERSHOOT_SCALE = 3.0
"""At four times the sustainable rate, the delay is three quarters of the maximum."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a day's spend: the amount, the rate, and the remaining time."""

    budget_usd: float
    spent_usd: float
    rate_usd_per_h: float
    hours_left: float

    @property
    def pressure(self) -> float:
        """Return how close the budget is to its end: 0 up to half of it, 1 when it is spent."""
        if self.budget_usd <= 0:
            return 1.0
        return _scale_above(self.spent_usd / self.budget_usd, UNTHROTTLED_SHARE)

    @property
    def overshoot(self) -> float:
        """Return the excess over the sustainable rate: 1 means twice as fast."""
        if self.rate_usd_per_h <= 0:
            return 0.0
        left_usd = self.budget_usd - self.spent_usd
        if left_usd <= 0:
            return math.inf
        return max(0.0, self.rate_usd_per_h * self.hours_left / left_usd - 1)

    @property
    def exceeds(self) -> bool:
        """Return whether this rate would exceed the budget by the end of the day."""
        return self.spent_usd + self.rate_usd_per_h * self.hours_left > self.budget_usd


@dataclass(frozen=True, slots=True)
class Quota:
    """The used share of a provider's quota, and when it resets."""

    utilisation: float
    resets_at: datetime | None = None


def budget_delay_s(pace: Pace) -> float:
    """Return the delay that the budget demands."""
    return MAX_DELAY_S * pace.pressure**2 * math.tanh(pace.overshoot / _OVERSHOOT_SCALE)


def quota_delay_s(quotas: Iterable[Quota], now: datetime) -> float:
    """Return the delay that the rate limits demand, at most until they reset."""
    longest = 0.0
    for quota in quotas:
        delay = MAX_DELAY_S * _scale_above(quota.utilisation, UNTHROTTLED_UTILISATION) ** 2
        if quota.resets_at is not None:
            delay = min(delay, max(0.0, (quota.resets_at - now).total_seconds()))
        longest = max(longest, delay)
    return longest


def request_delay_s(budget_s: float, quota_s: float, *, cache_left_s: float | None = None) -> float:
    """Return the delay of a request; `cache_left_s` is None if nothing is cached."""
    delay = max(budget_s, quota_s)
    if cache_left_s is not None:
        delay = min(delay, max(0.0, cache_left_s) * CACHE_TTL_SHARE)
    return delay if delay >= MIN_DELAY_S else 0.0


def parse_quotas(headers: Mapping[str, str], now: datetime) -> tuple[Quota, ...]:
    """Return the quotas in response headers (lower-case names)."""
    quotas = [
        _parse_utilization(name, headers, now) for name in headers if name.endswith("-utilization")
    ]
    quotas += [
        _parse_limit(name, headers, now) for name in headers if _LIMIT_HEADER.fullmatch(name)
    ]
    return tuple(quota for quota in quotas if quota is not None)


_LIMIT_HEADER = re.compile(
    r"anthropic-ratelimit-[a-z0-9-]+-limit|x-ratelimit-limit(-(requests|tokens))?"
)
"""`anthropic-ratelimit-input-tokens-limit` comes with `…-remaining` and `…-reset`,
`x-ratelimit-limit-tokens` with `x-ratelimit-remaining-tokens` and `x-ratelimit-reset-tokens`."""

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
"""A duration such as `6m0s` or `20ms`."""

_EPOCH_S = 1_000_000_000
"""A larger number of seconds is a timestamp, not a duration."""


def _parse_utilization(name: str, headers: Mapping[str, str], now: datetime) -> Quota | None:
    """Parse a quota of a subscription: `anthropic-ratelimit-unified-5h-utilization`."""
    share = _parse_number(headers[name])
    if not name.startswith("anthropic-ratelimit-") or share is None:
        return None
    reset = headers.get(f"{name.removesuffix('-utilization')}-reset", "")
    return Quota(share, _parse_reset(reset, now))


def _parse_limit(name: str, headers: Mapping[str, str], now: datetime) -> Quota | None:
    """Parse a rate limit and its remaining amount."""
    if name.startswith("x-"):
        remaining, reset = (
            name.replace("limit-limit", "limit-remaining"),
            name.replace("limit-limit", "limit-reset"),
        )
    else:
        begin = name.removesuffix("-limit")
        remaining, reset = f"{begin}-remaining", f"{begin}-reset"
    limit, remaining_count = _parse_number(headers[name]), _parse_number(headers.get(remaining, ""))
    if not limit or limit < 0 or remaining_count is None:
        return None
    return Quota(1 - remaining_count / limit, _parse_reset(headers.get(reset, ""), now))


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _parse_reset(text: str, now: datetime) -> datetime | None:
    """Return when a quota resets; the header has a time, epoch seconds or a duration."""
    text = text.strip()
    try:
        if (seconds := _parse_number(text)) is not None:
            if seconds > _EPOCH_S:
                return datetime.fromtimestamp(seconds, UTC)
            return now + timedelta(seconds=seconds)
        if text and (span := _SPAN.fullmatch(text)):
            days, hours, minutes, seconds_, ms = (float(part or 0) for part in span.groups())
            return now + timedelta(
                days=days, hours=hours, minutes=minutes, seconds=seconds_, milliseconds=ms
            )
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _scale_above(share: float, easy: float) -> float:
    """Return where a share lies between the unthrottled part and 1, from 0 to 1."""
    return min(1.0, max(0.0, (share - easy) / (1 - easy)))


PACE_TTL = timedelta(seconds=5)
"""How long a measured pace is used."""

STALE_PACE_TTL = timedelta(minutes=10)
"""How long it is used if the store cannot be read: the rate is that of an hour."""

_DAY = timedelta(days=1)

_MIN_RATE_HOURS = 1 / 12
"""A rate is measured over at least five minutes: one expensive request is no rate."""


class PaceCache:
    """Cache of the delay that the budget demands; thread-safe."""

    def __init__(self) -> None:
        self._seen: tuple[datetime, float, SpendPressure] | None = None

    def find(
        self, now: datetime, budget_usd: float, good_for: timedelta = PACE_TTL
    ) -> SpendPressure | None:
        """Return the cached value if it is recent, of today and for the same budget."""
        if self._seen is None:
            return None
        at, seen_usd, pressure = self._seen
        is_of_today = at.date() == now.date() and seen_usd == budget_usd
        return pressure if is_of_today and timedelta() <= now - at < good_for else None

    def learn(self, now: datetime, pace: Pace) -> SpendPressure:
        """Store a measured pace, and return its delay."""
        pressure = SpendPressure(budget_delay_s(pace), pace.exceeds)
        self._seen = (now, pace.budget_usd, pressure)
        return pressure


def measure_pace(db: Connection, now: datetime, budget_usd: float) -> Pace:
    """Measure the pace of the day's spend."""
    begun, hour_ago = start_of_day(now), now - timedelta(hours=1)
    spent_usd = spend.total_spent(db, since=begun, until=begun + _DAY)
    lately_usd = spend.total_spent(db, since=hour_ago, until=begun + _DAY)
    first = spend.first_entry_at(db, since=hour_ago) or now
    hours = max((now - first) / timedelta(hours=1), _MIN_RATE_HOURS)
    left_h = (begun + _DAY - now) / timedelta(hours=1)
    return Pace(budget_usd, spent_usd, lately_usd / hours, left_h)


def start_of_day(moment: datetime) -> datetime:
    """Return the start of a moment's day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
