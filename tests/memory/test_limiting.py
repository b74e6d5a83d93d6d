"""What doctor says of the money of the day."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lore.memory.limiting import check_money
from lore.records import DayBudget, SpendLine, SpendPressure, SpendReport, SpentToday

TODAY, TOMORROW = datetime(2026, 5, 13, tzinfo=UTC), datetime(2026, 5, 14, tzinfo=UTC)


def checks(
    budget_usd: float | None,
    spent_usd: float = 0.0,
    reserved_usd: float = 0.0,
    *,
    delay_s: float = 0.0,
    delayed: int = 0,
    background_usd: float = 0.0,
):
    day = DayBudget(budget_usd, spent_usd, reserved_usd, TOMORROW)
    total = SpendLine("", delayed=delayed, delay_ms=1_500 * delayed)
    report = SpendReport(TODAY, "model", (), total, day, {})
    background = SpentToday(1.0, background_usd, 0.0, 0, TOMORROW)
    return check_money(report, SpendPressure(delay_s), background)


def test_where_no_budget_is_set_and_nothing_waited_nothing_is_said():
    assert checks(None, 7.0) == []


def test_a_budget_that_lasts_is_well():
    (check,) = checks(5.0, 1.0, 0.25)
    assert (check.name, check.state) == ("budget", "ok")
    assert check.detail == "$1.00 of $5.00 spent today, $0.25 set aside."


@pytest.mark.parametrize(
    ("spent_usd", "reserved_usd", "delay_s", "told"),
    [
        (5.1, 0.0, 60.0, "refused until 00:00 UTC"),
        (4.0, 1.0, 0.0, "set aside"),
        (4.0, 0.0, 12.4, "waits 12 s"),
    ],
)
def test_a_budget_that_stops_or_slows_agents_is_told_with_what_to_do(
    spent_usd: float, reserved_usd: float, delay_s: float, told: str
):
    (check,) = checks(5.0, spent_usd, reserved_usd, delay_s=delay_s)
    assert check.state == "degraded"
    assert told in check.detail
    assert "lore config daily_budget" in check.remedy


def test_a_delay_that_is_left_out_is_not_told():
    assert [check.state for check in checks(5.0, 3.0, delay_s=0.4)] == ["ok"]


def test_a_budget_of_nothing_is_meant_so():
    assert [check.state for check in checks(0.0)] == ["ok"]


def test_background_work_that_waits_for_tomorrow_is_told():
    (check,) = checks(None, background_usd=1.2)
    assert check.state == "degraded"
    assert "background.daily_budget" in check.remedy


def test_requests_that_waited_are_counted():
    (check,) = checks(None, delayed=2)
    assert (check.name, check.state) == ("throttle", "ok")
    assert "2, 3 s" in check.detail
