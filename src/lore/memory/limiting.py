"""Limiting: what doctor says of the money of the day, once it stops or slows anything."""

from __future__ import annotations

from lore.budget.throttle import LEAST_S
from lore.records import Check, DayBudget, SpendPressure, SpendReport, SpentToday

NAME = "budget"

_RAISE = "'lore config daily_budget USD' raises it at once; 'lore spend' shows what it went for."
_BACKGROUND = "'lore config background.daily_budget USD', then 'lore down' and 'lore up -d'."


def check_money(
    report: SpendReport, pressure: SpendPressure, background: SpentToday
) -> list[Check]:
    """Look at the budgets of the day and at what waits because of them; nothing if none matters."""
    found = []
    if report.budget.budget_usd is not None:
        found.append(_check_day(report.budget, report.budget.budget_usd, pressure))
    if background.spent_usd and background.left_usd <= 0:
        told = (
            f"Background work has spent its ${background.budget_usd:.2f} of today: distilling and"
            f" what else asks a model waits until {background.until:%H:%M} UTC."
        )
        found.append(Check("background", "degraded", told, _BACKGROUND))
    if report.total.delayed and not any(check.state == "degraded" for check in found):
        delayed, waited_s = report.total.delayed, report.total.delay_ms / 1_000
        told = f"Requests that waited today, for budget or quota: {delayed:,}, {waited_s:.0f} s."
        found.append(Check("throttle", "ok", told))
    return found


def _check_day(day: DayBudget, usd: float, pressure: SpendPressure) -> Check:
    told = f"${day.spent_usd:.2f} of ${usd:.2f} spent today, ${day.reserved_usd:.2f} set aside"
    until = f"until {day.until:%H:%M} UTC"
    if not usd:
        return Check(NAME, "ok", "daily_budget is 0: of agents' requests only what is free passes.")
    if day.spent_usd >= usd:
        told = f"The daily_budget is spent ({told}): agents' requests are refused {until}."
        return Check(NAME, "degraded", told, _RAISE)
    if day.spent_usd + day.reserved_usd >= usd:
        told = f"All that is left is set aside ({told}): agents are told to ask again later."
        return Check(NAME, "degraded", told, _RAISE)
    if pressure.delay_s >= LEAST_S:
        told = f"{told}: each request of an agent waits {pressure.delay_s:.0f} s, to make it last."
        return Check(NAME, "degraded", told, _RAISE)
    return Check(NAME, "ok", f"{told}.")
