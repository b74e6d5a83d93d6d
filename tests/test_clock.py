from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import clock
from lore.errors import InvalidInput

NOON = datetime(2026, 5, 13, 12, tzinfo=UTC)
EARLIEST = datetime.min.replace(tzinfo=UTC)

moments = st.integers(clock.to_us(EARLIEST), clock.to_us(datetime.max.replace(tzinfo=UTC))).map(
    clock.from_us
)


@given(moments)
def test_a_moment_comes_back_from_its_number(moment):
    assert clock.from_us(clock.to_us(moment)) == moment


@pytest.mark.parametrize(
    ("moment", "us"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC), 1_000_001),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None), 0),
    ],
)
def test_a_moment_is_microseconds_since_1970(moment, us):
    assert clock.to_us(moment) == us


def test_a_moment_without_a_zone_is_read_as_utc():
    assert clock.from_us(clock.to_us(NOON.replace(tzinfo=None))) == NOON


def test_the_present_is_aware_and_in_utc():
    assert clock.now().utcoffset() == timedelta(0)


@given(moments)
def test_an_id_lies_between_the_bounds_of_its_time(moment):
    us = clock.to_us(moment)
    first, last = clock.id_bounds(us, us + 1)
    assert first <= clock.new_id(moment) <= last


@given(moments)
def test_an_id_is_a_uuid_of_version_7_that_carries_its_time(moment):
    made = uuid.UUID(clock.new_id(moment))
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert made.int >> 80 == max(0, clock.to_us(moment) // 1000)


def test_an_id_is_written_in_lower_case_with_dashes():
    made = clock.new_id(NOON)
    assert str(uuid.UUID(made)) == made


@given(moments, moments)
def test_ids_sort_by_time(one, other):
    first, second = sorted([one, other])
    apart = clock.to_us(second) // 1000 > max(0, clock.to_us(first) // 1000)
    if apart:
        assert clock.new_id(first) < clock.new_id(second)


def test_ids_of_one_millisecond_keep_their_order():
    made = [clock.new_id(NOON) for _ in range(20_000)]
    # The counter starts over once in 67 million ids; here it may do so once at most.
    falls = sum(one >= other for one, other in pairwise(made))
    assert falls <= 1
    assert len(set(made)) == len(made)


def test_ids_are_unique_under_threads():
    made: list[str] = []

    def make() -> None:
        made.extend([clock.new_id(NOON) for _ in range(2_000)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 16_000


def test_a_process_can_start_at_another_time_for_tests():
    offset = clock.offset_of("2031-01-01T00:00:00Z", NOON)
    assert NOON + offset == datetime(2031, 1, 1, tzinfo=UTC)
    assert clock.offset_of("2031-01-01", NOON) == offset
    assert clock.offset_of("", NOON) == timedelta()
    with pytest.raises(InvalidInput, match="LORE_NOW must be a time"):
        clock.offset_of("tomorrow", NOON)
