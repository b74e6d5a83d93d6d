"""The desk for money: set aside before an agent's request, entered after it, and added up.

Its methods are called on the way of a request, from any thread: without a budget none of them
waits for the store.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from lore.checking import Seconds, checked_class
from lore.memory.allowing import Allowance
from lore.memory.desk import Desk
from lore.records import (
    Course,
    DayBudget,
    ModelPrice,
    PastTurns,
    Reserved,
    SpendCounter,
    SpendGroup,
    SpendLine,
    SpendPressure,
    SpendReport,
    TokenUse,
)
from lore.store import sessions, spend, turn_times

if TYPE_CHECKING:
    from lore.budget.daily import RequestLedger
    from lore.store.db import Connection


_ENDED = timedelta(hours=1)
"""A session that was silent so long is taken to have ended: even a long cache has expired."""


_USUAL = Course()

_NAMES = 512
"""Names of models, sessions and projects that are remembered as redacted: what a client calls
something may hold a secret, and is stored without it. Agents use a handful."""


@checked_class
class Spending(Desk):
    """For money."""

    __slots__ = ()

    def load_prices(self, *, wait_s: Seconds = 0.0) -> bool:
        """Begin to load the price lists, so that no request waits; tell whether they are.

        What a process had under way that was killed is entered on this occasion.
        """
        requests = self._requests()
        requests.begin()
        return requests.catalogue.wait(wait_s)

    def find_model_price(self, model: str, *, provider: str = "") -> ModelPrice | None:
        """Return what a model costs, None where nobody knows or the lists are not loaded yet."""
        pricing = self._requests().catalogue.find(model, provider, wait_s=0)
        return pricing.whole if pricing else None

    def reserve_request(
        self,
        model: str,
        most: TokenUse | None,
        *,
        provider: str = "",
        service: str = "",
        session: str = "",
        project: str = "",
        kind: str = "turn",
        within_s: Seconds | None = None,
    ) -> Reserved:
        """Set aside what a request may take at most, or raise `BudgetSpent`.

        Of one that nobody reads nobody knows what it takes: `most` is None, and so is `used` then.
        Only with a budget is anything written, for all processes to see; with `within_s` nothing
        is waited for longer than that.
        """
        return self._requests().reserve(
            model,
            most,
            provider=provider,
            service=service,
            session=session,
            project=project,
            kind=kind,
            within_s=within_s,
        )

    def count_request(self, reserved: Reserved, used: TokenUse, *, service: str = "") -> None:
        """Give back what a request did not take, before it is settled."""
        self._requests().count(reserved, used, service=service)

    def settle_request(
        self,
        reserved: Reserved,
        used: TokenUse | None,
        course: Course = _USUAL,
    ) -> float | None:
        """Enter what a request took, and return what it cost in US dollars if that is known.

        Session and project are those of the reservation, if they are stored by now.
        """
        return self._requests().settle(reserved, used, course)

    def correct_request(
        self, fetched_by: str, used: TokenUse, course: Course = _USUAL, *, provider: str = ""
    ) -> None:
        """Enter what an answer took that was fetched by an id, once; it is not waited for."""
        self._requests().correct(fetched_by, used, course, provider=provider)

    def release_request(self, reserved: Reserved) -> None:
        """Give back what was set aside for a request that took nothing."""
        self._requests().release(reserved)

    def has_budget(self) -> bool:
        """Tell whether what a day may cost is limited by now."""
        return self._requests().budget_usd is not None

    def spend_pressure(self, *, at_hand: bool = False) -> SpendPressure:
        """Return what the budget of the day asks of the next request.

        What is `at_hand` needs no look at the store: money was set aside a moment ago.
        """
        return self._requests().pressure(at_hand=at_hand)

    def day_budget(self) -> DayBudget:
        """Return how the budget of today stands, for all that is spent."""
        return self._requests().day()

    def spend_counters(self) -> list[SpendCounter]:
        """Return what this process has forwarded since it began, by model."""
        return self._requests().counters()

    def spend_report(self, *, since: str = "", by: SpendGroup = "model") -> SpendReport:
        """Return what was spent since a time, today by default, and what that saved."""
        from lore.budget import reporting
        from lore.recall import time_spans

        now = self.database.now()
        begun = now.replace(hour=0, minute=0, second=0, microsecond=0)
        begun = time_spans.since(since, now) if since else begun
        with self.database.read() as db:
            lines, total = reporting.add_up(spend.since(db, begun), by)
            lines = _labelled(db, lines, by)
        throttle = {"events": total.delayed, "totalDelayMs": total.delay_ms}
        return SpendReport(begun, by, lines, total, self.day_budget(), throttle)

    def past_turns(self, *, project: str = "") -> PastTurns:
        """Return how many turns the sessions of a project had that have ended, and their gaps.

        Of a project that is not known there are none.
        """
        with self.database.read() as db:
            project_n = (
                sessions.find_project(db, self.redactor.redact(project)) if project else None
            )
            if project and project_n is None:
                return PastTurns()
            return turn_times.past_turns(db, project_n, before=self.database.now() - _ENDED)

    def _requests(self) -> RequestLedger:
        return self.requests or self._open_requests()

    def _open_requests(self) -> RequestLedger:
        from lore.budget.catalogue import Catalogue
        from lore.budget.daily import RequestLedger

        with self.requests_lock:
            if self.requests is None:
                catalogue = Catalogue(self.settings.prices, now=self.database.now)
                self.requests = RequestLedger(
                    self.database,
                    catalogue,
                    self.settings.daily_budget,
                    named=lru_cache(_NAMES)(self.redactor.redact),
                    allowed=Allowance(self.settings),
                )
            return self.requests


def _labelled(
    db: Connection, lines: tuple[SpendLine, ...], by: SpendGroup
) -> tuple[SpendLine, ...]:
    """Return lines with what a person calls their projects or sessions."""
    if by == "project":
        known = {project.id: project.path for project in sessions.projects(db).values()}
    elif by == "session":
        named = [line.name for line in lines if line.name]
        known = {name: sessions.get(db, sessions.get_number(db, name)).title for name in named}
    else:
        return lines
    return tuple(replace(line, label=known.get(line.name, "")) for line in lines)
