"""Throttle: how long a request waits, by the budget of the day and the provider's quota."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MOST_S = 60.0
"""The longest delay of either formula."""

EASY_SHARE = 0.5
"""Until half of the budget is spent nothing presses."""

EASY_UTILISATION = 0.8
"""Until so much of a quota is used nothing presses."""

LEAST_S = 0.5
"""A shorter delay changes nothing, and is left out."""

CACHE_SHARE = 0.5
"""Of the time that the cache still lives at most so much is waited: a bust costs more than it
saves."""

_OVERSHOOT_SCALE = 3.0
"""At four times the rate that the budget allows the delay is three quarters of the longest."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a day's money goes: what is spent, how fast, and how long it has to last."""

    budget_usd: float
    spent_usd: float
    rate_usd_per_h: float
    hours_left: float

    @property
    def pressure(self) -> float:
        """Return how near the end of the budget is: 0 up to half of it, 1 when it is spent."""
        if self.budget_usd <= 0:
            return 1.0
        return _within(self.spent_usd / self.budget_usd, EASY_SHARE)

    @property
    def overshoot(self) -> float:
        """Return by how much the rate exceeds the one that would last: 1 is twice as fast."""
        if self.rate_usd_per_h <= 0:
            return 0.0
        left_usd = self.budget_usd - self.spent_usd
        if left_usd <= 0:
            return math.inf
        return max(0.0, self.rate_usd_per_h * self.hours_left / left_usd - 1)

    @property
    def exceeds(self) -> bool:
        """Tell whether the budget would be exceeded if it went on like this."""
        return self.spent_usd + self.rate_usd_per_h * self.hours_left > self.budget_usd


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of one of a provider's entitlements is used, and when it is there again."""

    utilisation: float
    resets_at: datetime | None = None


def budget_delay_s(pace: Pace) -> float:
    """Return how long the budget lets a request wait."""
    return MOST_S * pace.pressure**2 * math.tanh(pace.overshoot / _OVERSHOOT_SCALE)


def quota_delay_s(quotas: Iterable[Quota], now: datetime) -> float:
    """Return how long the quotas let a request wait, none past the time that they are reset."""
    longest = 0.0
    for quota in quotas:
        delay = MOST_S * _within(quota.utilisation, EASY_UTILISATION) ** 2
        if quota.resets_at is not None:
            delay = min(delay, max(0.0, (quota.resets_at - now).total_seconds()))
        longest = max(longest, delay)
    return longest


def delay_s(budget_s: float, quota_s: float, *, cache_left_s: float | None = None) -> float:
    """Return how long a request waits; `cache_left_s` is None where nothing is cached."""
    delay = max(budget_s, quota_s)
    if cache_left_s is not None:
        delay = min(delay, max(0.0, cache_left_s) * CACHE_SHARE)
    return delay if delay >= LEAST_S else 0.0


def quotas_of(headers: Mapping[str, str], now: datetime) -> tuple[Quota, ...]:
    """Return what the headers of an answer (by lower-case names) tell about quotas."""
    found = [_utilised(name, headers, now) for name in headers if name.endswith("-utilization")]
    found += [_counted(name, headers, now) for name in headers if _LIMIT.fullmatch(name)]
    return tuple(quota for quota in found if quota is not None)


_LIMIT = re.compile(r"anthropic-ratelimit-[a-z0-9-]+-limit|x-ratelimit-limit(-(requests|tokens))?")
"""`anthropic-ratelimit-input-tokens-limit` stands beside `…-remaining` and `…-reset`,
`x-ratelimit-limit-tokens` beside `x-ratelimit-remaining-tokens` and `x-ratelimit-reset-tokens`."""

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
"""A time to wait such as `6m0s` or `20ms`."""

_EPOCH_S = 1_000_000_000
"""A larger number of seconds is a moment, not a span."""


def _utilised(name: str, headers: Mapping[str, str], now: datetime) -> Quota | None:
    """Read an entitlement of a subscription: `anthropic-ratelimit-unified-5h-utilization`."""
    share = _number(headers[name])
    if not name.startswith("anthropic-ratelimit-") or share is None:
        return None
    reset = headers.get(f"{name.removesuffix('-utilization')}-reset", "")
    return Quota(share, _moment(reset, now))


def _counted(name: str, headers: Mapping[str, str], now: datetime) -> Quota | None:
    """Read a limit with what remains of it."""
    if name.startswith("x-"):
        remaining, reset = (
            name.replace("limit-limit", "limit-remaining"),
            name.replace("limit-limit", "limit-reset"),
        )
    else:
        begin = name.removesuffix("-limit")
        remaining, reset = f"{begin}-remaining", f"{begin}-reset"
    limit, left = _number(headers[name]), _number(headers.get(remaining, ""))
    if not limit or limit < 0 or left is None:
        return None
    return Quota(1 - left / limit, _moment(headers.get(reset, ""), now))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(text: str, now: datetime) -> datetime | None:
    """Return when a quota is reset: told as a time, as seconds of the epoch, or as a span."""
    text = text.strip()
    try:
        if (seconds := _number(text)) is not None:
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


def _within(share: float, easy: float) -> float:
    """Return where a share stands between the easy part and all of it, from 0 to 1."""
    return min(1.0, max(0.0, (share - easy) / (1 - easy)))
