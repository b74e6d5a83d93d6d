"""The daily budget setting, and the checks of doctor."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lore.budget.limits import DailyBudgetSetting, check_budgets
from lore.embed.embedder import NoEmbedder
from lore.errors import BudgetSpent
from lore.memory import Memory
from lore.records import (
    DayBudget,
    RequestCost,
    SpendLine,
    SpendPressure,
    SpendReport,
    SpentToday,
    TokenUse,
)
from lore.settings import USER_FILE, load

CENT = TokenUse(10_000)
PRICES = '[prices."m"]\ninput = 1\noutput = 10\nwindow = 200000\n'


def test_a_budget_that_is_raised_holds_without_a_restart(tmp_path: Path):
    file = tmp_path / USER_FILE
    file.write_text(f"daily_budget = 0.01\n{PRICES}")
    with Memory.open(config=load({}, home=tmp_path).settings, embedder=NoEmbedder()) as memory:
        memory.budget.settle_request(memory.budget.reserve_request(RequestCost("m", CENT)), CENT)
        with pytest.raises(BudgetSpent):
            memory.budget.reserve_request(RequestCost("m", CENT))
        file.write_text(f"daily_budget = 10.0\n{PRICES}")
        memory.budget.release_request(memory.budget.reserve_request(RequestCost("m", CENT)))
        assert memory.budget.day_budget().budget_usd == 10.0


def test_a_file_in_error_leaves_the_budget_as_it_was(tmp_path: Path):
    file = tmp_path / USER_FILE
    file.write_text("daily_budget = 2.0\n")
    allowed = DailyBudgetSetting(load({}, home=tmp_path).settings)
    file.write_text("daily_budget = much\n")
    assert allowed() == 2.0
    file.write_text("daily_budget = 3.0\n")
    assert allowed() == 3.0
    file.unlink()
    assert allowed() is None


def test_no_thread_gets_an_old_budget_while_another_reloads_it(tmp_path: Path):
    file, threads = tmp_path / USER_FILE, 8
    file.write_text("daily_budget = 1.0\n")
    allowed = DailyBudgetSetting(load({}, home=tmp_path).settings)
    together = threading.Barrier(threads)

    def ask(_number: int) -> float | None:
        together.wait()
        return allowed()

    with ThreadPoolExecutor(threads) as pool:
        for usd in range(2, 12):
            file.write_text(f"daily_budget = {usd}.0\nprices = []\n")
            assert set(pool.map(ask, range(threads))) == {float(usd)}


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
    return check_budgets(report, SpendPressure(delay_s), background)


def test_there_is_no_check_without_a_budget_and_a_delay():
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
def test_a_check_of_a_limiting_budget_says_what_to_do(
    spent_usd: float, reserved_usd: float, delay_s: float, told: str
):
    (check,) = checks(5.0, spent_usd, reserved_usd, delay_s=delay_s)
    assert check.state == "degraded"
    assert told in check.detail
    assert "lore config daily_budget" in check.remedy


def test_a_delay_below_the_minimum_is_not_reported():
    assert [check.state for check in checks(5.0, 3.0, delay_s=0.4)] == ["ok"]


def test_a_budget_of_nothing_is_meant_so():
    assert [check.state for check in checks(0.0)] == ["ok"]


def test_background_work_that_waits_for_tomorrow_is_reported():
    (check,) = checks(None, background_usd=1.2)
    assert check.state == "degraded"
    assert "background.daily_budget" in check.remedy


def test_requests_that_waited_are_counted():
    (check,) = checks(None, delayed=2)
    assert (check.name, check.state) == ("throttle", "ok")
    assert "2, 3 s" in check.detail
