from __future__ import annotations

from datetime import timedelta
from math import inf, tanh

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.budget.throttle import (
    Pace,
    Quota,
    budget_delay_s,
    parse_quotas,
    quota_delay_s,
    request_delay_s,
)
from tests.fakes import NOON


@pytest.mark.parametrize(
    ("spent", "pressure"), [(0, 0), (5, 0), (6, 0.2), (7.5, 0.5), (10, 1), (12, 1)]
)
def test_the_pressure_begins_at_half_of_the_budget(spent, pressure):
    assert Pace(10, spent, 1, 12).pressure == pytest.approx(pressure)


@pytest.mark.parametrize(
    ("rate", "hours", "overshoot"),
    [
        # $5 are left of $10: over 10 hours they last at $0.50.
        (0.5, 10, 0),
        (0.25, 10, 0),
        (1.0, 10, 1),
        (2.0, 10, 3),
        (0.0, 10, 0),
    ],
)
def test_the_overshoot_is_the_rate_above_the_one_that_lasts(rate, hours, overshoot):
    assert Pace(10, 5, rate, hours).overshoot == pytest.approx(overshoot)


def test_where_nothing_is_left_any_rate_is_too_high():
    assert Pace(10, 10, 0.1, 1).overshoot == inf
    assert budget_delay_s(Pace(10, 10, 0.1, 1)) == 60


@pytest.mark.parametrize(
    ("pace", "seconds"),
    [
        (Pace(10, 4, 50, 12), 0),
        (Pace(10, 7.5, 2.5 / 10, 10), 0),
        # Twice as fast as it lasts, at half the pressure.
        (Pace(10, 7.5, 0.5, 10), 60 * 0.25 * tanh(1 / 3)),
        (Pace(10, 9, 0.4, 10), 60 * 0.64 * tanh(1)),
        (Pace(10, 10, 1, 1), 60),
        (Pace(0, 0, 1, 1), 60),
        (Pace(0, 0, 0, 1), 0),
    ],
)
def test_the_delay_by_the_budget(pace, seconds):
    assert budget_delay_s(pace) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("pace", "exceeds"),
    [(Pace(10, 5, 0.5, 10), False), (Pace(10, 5, 0.6, 10), True), (Pace(10, 0, 0, 10), False)],
)
def test_a_day_is_projected_by_its_rate(pace, exceeds):
    assert pace.exceeds is exceeds


@pytest.mark.parametrize(
    ("utilisation", "seconds"), [(0, 0), (0.8, 0), (0.9, 15), (0.95, 33.75), (1, 60), (1.4, 60)]
)
def test_the_delay_by_the_quota(utilisation, seconds):
    assert quota_delay_s([Quota(utilisation)], NOON) == pytest.approx(seconds)


def test_a_quota_that_is_reset_soon_is_waited_for_no_longer():
    soon = Quota(1.0, NOON + timedelta(seconds=4))
    assert quota_delay_s([soon], NOON) == 4
    assert quota_delay_s([soon], NOON + timedelta(seconds=5)) == 0
    assert quota_delay_s([soon, Quota(0.9)], NOON) == pytest.approx(15)


@pytest.mark.parametrize(
    ("budget", "quota", "cache_left", "seconds"),
    [
        (10, 3, None, 10),
        (3, 10, None, 10),
        (60, 60, 300, 60),
        (60, 60, 100, 50),
        (60, 0, 0, 0),
        (60, 0, -5, 0),
        (0.4, 0.3, None, 0),
        (0.5, 0, None, 0.5),
        (60, 0, 0.8, 0),
        (0, 0, 300, 0),
    ],
)
def test_the_larger_delay_within_half_of_what_the_cache_still_lives(
    budget, quota, cache_left, seconds
):
    assert request_delay_s(budget, quota, cache_left_s=cache_left) == pytest.approx(seconds)


@given(
    st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 24), st.floats(0, 4_000)
)
def test_no_delay_is_longer_than_it_may_be(budget, spent, rate, hours, left):
    found = request_delay_s(budget_delay_s(Pace(budget, spent, rate, hours)), 0, cache_left_s=left)
    assert found == 0 or 0.5 <= found <= min(60, left / 2)


@pytest.mark.parametrize(
    ("headers", "quotas"),
    [
        ({}, ()),
        ({"retry-after": "5", "x-ratelimit-limit-requests": "100"}, ()),
        (
            {
                "anthropic-ratelimit-input-tokens-limit": "400000",
                "anthropic-ratelimit-input-tokens-remaining": "100000",
                "anthropic-ratelimit-input-tokens-reset": "2026-05-13T12:00:30Z",
            },
            (Quota(0.75, NOON + timedelta(seconds=30)),),
        ),
        (
            {
                "anthropic-ratelimit-unified-5h-utilization": "0.92",
                "anthropic-ratelimit-unified-5h-reset": str(int(NOON.timestamp()) + 3_600),
                "anthropic-ratelimit-unified-status": "allowed",
            },
            (Quota(0.92, NOON + timedelta(hours=1)),),
        ),
        (
            {
                "x-ratelimit-limit-tokens": "1000",
                "x-ratelimit-remaining-tokens": "50",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-limit-requests": "10",
                "x-ratelimit-remaining-requests": "10",
                "x-ratelimit-reset-requests": "20ms",
            },
            (
                Quota(0.95, NOON + timedelta(minutes=6)),
                Quota(0.0, NOON + timedelta(milliseconds=20)),
            ),
        ),
        (
            {
                "x-ratelimit-limit": "200",
                "x-ratelimit-remaining": "20",
                "x-ratelimit-reset": "12",
            },
            (Quota(0.9, NOON + timedelta(seconds=12)),),
        ),
        # What cannot be read says nothing.
        ({"x-ratelimit-limit": "many", "x-ratelimit-remaining": "20"}, ()),
        ({"x-ratelimit-limit": "0", "x-ratelimit-remaining": "0"}, ()),
        ({"anthropic-ratelimit-unified-5h-utilization": "nan"}, ()),
        (
            {
                "x-ratelimit-limit": "200",
                "x-ratelimit-remaining": "20",
                "x-ratelimit-reset": "soon",
            },
            (Quota(0.9),),
        ),
    ],
)
def test_quotas_are_read_from_the_headers_of_an_answer(headers, quotas):
    found = parse_quotas(headers, NOON)
    assert [quota.resets_at for quota in found] == [quota.resets_at for quota in quotas]
    assert [quota.utilisation for quota in found] == pytest.approx([
        quota.utilisation for quota in quotas
    ])


@given(st.text(max_size=30))
def test_no_header_breaks_the_reading(text):
    parse_quotas(
        {
            "x-ratelimit-limit": "100",
            "x-ratelimit-remaining": text,
            "x-ratelimit-reset": text,
            "anthropic-ratelimit-tokens-limit": text,
            "anthropic-ratelimit-tokens-remaining": "1",
            "anthropic-ratelimit-unified-7d-utilization": text,
            "anthropic-ratelimit-unified-7d-reset": text,
        },
        NOON,
    )
