"""Money: prices, reservations for requests, daily budgets and spend reports.

Requests call these methods from any thread. Without a budget none of them waits for the store.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from lore.memory import context
from lore.memory.context import MemoryPart, PageSize
from lore.records import (
    DayBudget,
    ModelPrice,
    Page,
    PastTurns,
    RequestCost,
    RequestHold,
    RequestOutcome,
    SeriesGroup,
    SeriesStep,
    Spend,
    SpendCounter,
    SpendGroup,
    SpendLine,
    SpendPressure,
    SpendReport,
    SpendSeries,
    SpentToday,
    TokenUse,
)
from lore.store import messages, pages, project_rows, sessions, spend, spend_series
from lore.store.database import Connection
from lore.validation import Seconds, validate_methods

if TYPE_CHECKING:
    from lore.budget.ledger import Ledger

_ENDED = timedelta(hours=1)
"""A session that has been silent this long has ended: even a long prompt cache has expired."""

_USUAL = RequestOutcome()


@validate_methods
class Budget(MemoryPart):
    """Prices, reservations for requests, daily budgets and spend reports."""

    def load_prices(self, *, wait_s: Seconds = 0.0) -> bool:
        """Start to load the price lists in the background; return whether they are loaded.

        This also enters the cost of requests that a killed process left open.
        """
        self._ledger.start()
        return self._ledger.catalogue.wait(wait_s)

    def has_prices(self) -> bool:
        """Return whether the price lists are loaded."""
        return self._ledger.catalogue.wait(0)

    def find_model_price(self, model: str, *, provider: str = "") -> ModelPrice | None:
        """Return the price of a model, or None if it is unknown or the lists are not loaded yet."""
        return self._ledger.catalogue.find(model, provider, wait_s=0)

    def reserve_request(self, cost: RequestCost, *, within_s: Seconds | None = None) -> RequestHold:
        """Reserve the most that a request may cost, or raise `BudgetSpent`.

        The reservation is written for other processes only if there is a budget; `within_s` limits
        the wait for that.
        """
        return self._ledger.reserve(cost, within_s=within_s)

    def release_unused(self, reserved: RequestHold, used: TokenUse, *, service: str = "") -> None:
        """Release the part of a reservation that the request did not use, before it is settled."""
        self._ledger.release_unused(reserved, used, service=service)

    def settle_request(
        self,
        reserved: RequestHold,
        used: TokenUse | None,
        outcome: RequestOutcome = _USUAL,
    ) -> float | None:
        """Record the usage of a request; return its cost in US dollars if that is known.

        Session and project are those of the reservation, if they are stored by now.
        """
        return self._ledger.settle(reserved, used, outcome)

    def correct_request(
        self,
        fetched_by: str,
        used: TokenUse,
        outcome: RequestOutcome = _USUAL,
        *,
        provider: str = "",
    ) -> None:
        """Record the usage of a response that was fetched by id, once; do not wait for it."""
        self._ledger.correct(fetched_by, used, outcome, provider=provider)

    def release_request(self, reserved: RequestHold) -> None:
        """Release the reservation of a request that used nothing."""
        self._ledger.release(reserved)

    def has_budget(self) -> bool:
        """Return whether a daily budget is set."""
        return self._ledger.budget_usd is not None

    def spend_pressure(self, *, at_hand: bool = False) -> SpendPressure:
        """Return how the daily budget limits the next request.

        With `at_hand` the store is not read: a reservation was made a moment ago.
        """
        return self._ledger.pressure(at_hand=at_hand)

    def budget_pressure(self) -> float:
        """Return the share that is used, 0 to 1: of today's budget, or of a provider's quota.

        It is the higher one; 0 if there is neither.
        """
        quota = self._context.gateway_stats.quota_pressure(self._database.now())
        return max(quota, _pressure(self.day_budget()) or 0.0)

    def day_budget(self) -> DayBudget:
        """Return the state of today's budget."""
        return self._ledger.day_budget()

    def spend_counters(self) -> list[SpendCounter]:
        """Return what this process has forwarded since it started, by model."""
        return self._ledger.counters()

    def spend_report(self, *, since: str = "", by: SpendGroup = "model") -> SpendReport:
        """Return the spend since a time, by default today, and the savings."""
        from lore.budget import reports
        from lore.recall import time_spans

        now = self._database.now()
        begun = now.replace(hour=0, minute=0, second=0, microsecond=0)
        begun = time_spans.since(since, now) if since else begun
        with self._database.read() as db:
            lines, total = reports.summarize_spend(spend.entries_since(db, begun), by)
            lines = _labelled(db, lines, by)
        throttle = {"events": total.delayed, "totalDelayMs": total.delay_ms}
        return SpendReport(begun, by, lines, total, self.day_budget(), throttle)

    def spend_series(
        self, *, since: str = "", step: SeriesStep = "day", group: SeriesGroup = "",
        project: str = "",
    ) -> SpendSeries:  # fmt: skip
        """Return the spend over time, by default of 30 days, and the state of today's budget."""
        from lore.budget import series
        from lore.memory.tasks import Tasks
        from lore.recall import time_spans

        now = self._database.now()
        begun = time_spans.since(since, now) if since else now - _SERIES
        begun = max(begun, now - _MAX_SERIES[step]).replace(minute=0, second=0, microsecond=0)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            sums = spend_series.sum_spend(
                db, since=begun, until=now, step=step, group=group, project_n=project_n
            )
            labels = {one.id: one.path for one in project_rows.all_projects(db).values()}
        lines, total = series.add_up(sums, labels if group == "project" else {})
        budget, pace = self.day_budget(), self.spend_pressure()
        return SpendSeries(
            since=begun, until=now, step=step, group=group,
            points=series.make_points(sums, step), groups=lines, total=total,
            budget=budget, pressure=_pressure(budget), throttle_s=pace.delay_s,
            exceeds=pace.exceeds, economics=Tasks(self._context).economics(project=project),
        )  # fmt: skip

    def past_turns(self, *, project: str = "") -> PastTurns:
        """Return the turn counts and gaps of a project's ended sessions, if it is known."""
        with self._database.read() as db:
            project_n = (
                project_rows.find_project(db, self._redactor.redact(project)) if project else None
            )
            if project and project_n is None:
                return PastTurns()
            return messages.past_turns(db, project_n, before=self._database.now() - _ENDED)

    @property
    def _ledger(self) -> Ledger:
        return self._context.open_ledger()

    def spent_today(self) -> SpentToday:
        """Return what background work has spent today, and what is left of its budget."""
        return self._ledger.background_today()

    def page_of_spend(self, *, limit: PageSize = 50, cursor: str = "") -> Page[Spend]:
        """Return a page of model calls with their cost, newest first."""
        after = context.decode_cursor(cursor, int, int)
        with self._database.read() as db:
            return context.page_of(pages.spend(db, after, limit=limit), limit)


_SERIES = timedelta(days=30)
_MAX_SERIES = {"day": timedelta(days=400), "hour": timedelta(days=14)}
"""How far back a series may begin: some hundred points are all that a chart can show."""


def _pressure(day: DayBudget) -> float | None:
    """Return the share of today's budget that is spent or reserved, None without a budget."""
    if day.budget_usd is None:
        return None
    used = day.spent_usd + day.reserved_usd
    return min(1.0, used / day.budget_usd) if day.budget_usd > 0 else 1.0


def _labelled(
    db: Connection, lines: tuple[SpendLine, ...], by: SpendGroup
) -> tuple[SpendLine, ...]:
    if by == "project":
        labels = {project.id: project.path for project in project_rows.all_projects(db).values()}
    elif by == "session":
        names = [line.name for line in lines if line.name]
        labels = {
            name: sessions.get_session(db, sessions.get_session_number(db, name)).title
            for name in names
        }
    else:
        return lines
    return tuple(replace(line, label=labels.get(line.name, "")) for line in lines)
