"""Budget limits: the current daily budget, and the health checks of all budgets."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from lore.budget.throttle import MIN_DELAY_S
from lore.errors import LoreError
from lore.records import Check, DayBudget, SpendPressure, SpendReport, SpentToday
from lore.settings import USER_FILE, Settings, load


class DailyBudgetSetting:
    """Return the daily budget; reload it when a settings file changes.

    If the home sets none, that of `default_home` applies: the home of the server it is in.
    """

    def __init__(self, settings: Settings, default_home: Path | None = None) -> None:
        self._homes = [home for home in (settings.home, default_home) if home is not None]
        self._paths = [str(Path(home) / USER_FILE) for home in self._homes]
        self._usd = settings.daily_budget
        self._seen = self._look()

    def __call__(self) -> float | None:
        """Return the daily budget in US dollars; keep the last one if the file is invalid."""
        stamp = self._look()
        if stamp != self._seen:
            with suppress(LoreError, OSError):
                self._usd = self._load()
            self._seen = stamp  # set last: until then other threads reload as well
        return self._usd

    def _load(self) -> float | None:
        budgets = (load(home=home).settings.daily_budget for home in self._homes)
        return next((usd for usd in budgets if usd is not None), None)

    def _look(self) -> list[tuple[int, int] | None]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 - asked several times a request
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


NAME = "budget"

_RAISE_DAILY = (
    "'lore config daily_budget USD' raises it at once; 'lore spend' shows what it went for."
)
_RAISE_BACKGROUND = "'lore config background.daily_budget USD', then 'lore down' and 'lore up -d'."


def check_budgets(
    report: SpendReport, pressure: SpendPressure, background: SpentToday
) -> list[Check]:
    """Check the daily budgets and the requests that they delay; return nothing if none is set."""
    checks = []
    if report.budget.budget_usd is not None:
        checks.append(_check_day(report.budget, report.budget.budget_usd, pressure))
    if background.spent_usd and background.left_usd <= 0:
        detail = (
            f"Background work has spent its ${background.budget_usd:.2f} of today: distillation"
            f" and other model calls wait until {background.until:%H:%M} UTC."
        )
        checks.append(Check("background", "degraded", detail, _RAISE_BACKGROUND))
    if report.total.delayed and not any(check.state == "degraded" for check in checks):
        delayed, waited_s = report.total.delayed, report.total.delay_ms / 1_000
        detail = f"Requests delayed today by budget or rate limit: {delayed:,}, {waited_s:.0f} s."
        checks.append(Check("throttle", "ok", detail))
    return checks


def _check_day(day: DayBudget, usd: float, pressure: SpendPressure) -> Check:
    detail = f"${day.spent_usd:.2f} of ${usd:.2f} spent today, ${day.reserved_usd:.2f} set aside"
    until = f"until {day.until:%H:%M} UTC"
    if not usd:
        return Check(NAME, "ok", "daily_budget is 0: agents may only send free requests.")
    if day.spent_usd >= usd:
        detail = f"The daily_budget is spent ({detail}): agents' requests are refused {until}."
        return Check(NAME, "degraded", detail, _RAISE_DAILY)
    if day.spent_usd + day.reserved_usd >= usd:
        detail = (
            f"The rest is reserved for requests in progress ({detail}): agents must retry later."
        )
        return Check(NAME, "degraded", detail, _RAISE_DAILY)
    if pressure.delay_s >= MIN_DELAY_S:
        detail = (
            f"{detail}: each request of an agent waits {pressure.delay_s:.0f} s, to make it last."
        )
        return Check(NAME, "degraded", detail, _RAISE_DAILY)
    return Check(NAME, "ok", f"{detail}.")
