"""Time and ids: the only module that reads the clock, so that tests can replace it."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from lore.errors import InvalidInput

Clock = Callable[[], datetime]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_COUNTER_BITS = 26
"""12 bits beside the time and 14 more: at 100,000 ids a second it wraps around hourly."""

_CHANCE_BYTES = 6
"""The random bytes of an id beside its time and counter."""

_counter_lock = threading.Lock()
_counter = secrets.randbits(_COUNTER_BITS - 1)


NOW_VARIABLE = "LORE_NOW"
"""For tests only: the ISO time at which the clock of a process starts; it runs on from there."""


def now() -> datetime:
    """Return the current time, aware and in UTC."""
    return datetime.now(UTC) + _offset()


@cache
def _offset() -> timedelta:
    """Return how far the clock of this process is ahead, by `LORE_NOW`."""
    return offset_of(os.environ.get(NOW_VARIABLE, ""), datetime.now(UTC))


def offset_of(start: str, real: datetime) -> timedelta:
    """Return the difference between an ISO time and the real one; none for an empty text."""
    if not start:
        return timedelta()
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        msg = f"{NOW_VARIABLE} must be a time such as 2026-05-13T12:00:00Z, not '{start}'."
        raise InvalidInput(msg) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - real


def to_us(moment: datetime) -> int:
    """Return a datetime as microseconds since 1970, the form in the store."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """Return the datetime of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=us)


def new_id(moment: datetime) -> str:
    """Return a UUIDv7 for `moment`; ids sort by time.

    A counter follows the time, so that ids of one process in one millisecond stay in order.
    """
    return new_ids([moment])[0]


def new_ids(moments: Sequence[datetime]) -> list[str]:
    """Return an id for each moment with a single request for random bytes."""
    global _counter  # noqa: PLW0603 - one counter for the process, under its lock
    with _counter_lock:
        first = _counter + 1
        _counter = (_counter + len(moments)) % (1 << _COUNTER_BITS)
    chance = os.urandom(_CHANCE_BYTES * len(moments)).hex()
    ids = []
    for place, moment in enumerate(moments):
        ms = f"{max(0, to_us(moment) // 1000) & 0xFFFF_FFFF_FFFF:012x}"
        high, low = divmod((first + place) % (1 << _COUNTER_BITS), 1 << 14)
        drawn = chance[2 * _CHANCE_BYTES * place : 2 * _CHANCE_BYTES * (place + 1)]
        ids.append(f"{ms[:8]}-{ms[8:]}-7{high:03x}-{0b10 << 14 | low:04x}-{drawn}")
    return ids


def id_bounds(start_us: int, end_us: int) -> tuple[str, str]:
    """Return the lowest and the highest id of a time span."""
    low, high = (max(0, us // 1000) & 0xFFFF_FFFF_FFFF for us in (start_us, end_us))
    return _spelled(low << 80), _spelled((high << 80) | ((1 << 80) - 1))


def _spelled(value: int) -> str:
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
