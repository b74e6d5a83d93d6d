"""The ledger of background work: money is set aside before a call and entered after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lore import clock
from lore.budget.holders import settle_dead, this_process
from lore.budget.prices import find_price
from lore.errors import BudgetSpent
from lore.llm.chat import Usage
from lore.llm.ledger import Reservation
from lore.records import Spend, SpentToday
from lore.store import spend

if TYPE_CHECKING:
    from lore.store.db import Connection, Database

Price = Callable[[str, Usage, datetime], float | None]


class SpendLedger:
    """Keeps the spend of background work within the budget of a day.

    A call may begin while anything is left, counting what other calls may take at most: so the
    budget is exceeded by one call at most, however many processes there are.
    """

    def __init__(
        self,
        database: Database,
        budget_usd: float,
        *,
        whole_usd: float | None = None,
        price: Price = find_price,
    ) -> None:
        """Keep to `budget_usd`, and to what is left of `whole_usd`, the budget of all work."""
        self._database = database
        self._budget_usd = budget_usd
        self._whole_usd = whole_usd
        self._price = price

    def today(self) -> SpentToday:
        """Return how the budget stands."""
        with self._database.read() as db:
            return self._today(db, self._database.now())

    def reserve(self, question: str, identity: str, most: Usage) -> Reservation:
        """Set aside what a call may take at most, or raise `BudgetSpent`."""
        now = self._database.now()
        usd = self._price(identity, most, now)
        prompt_usd = self._price(identity, replace(most, output_tokens=0), now)
        reservation = Reservation(clock.new_id(now), question, identity)
        held = spend.Holding(
            reservation.key,
            now,
            _purpose(reservation),
            usd or 0.0,
            this_process(),
            identity,
            prompt_usd or 0.0,
        )

        def set_aside(db: Connection) -> None:
            settle_dead(db, now)
            today = self._today(db, now)
            # What costs nothing needs no budget.
            if usd != 0 and not today.left_usd:
                raise _spent(today)
            if usd != 0 and self._whole_usd is not None:
                _require_left(db, self._whole_usd, today)
            spend.reserve(db, held)

        self._database.write(set_aside)
        return reservation

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Enter what the call took, and give back the rest."""
        now = self._database.now()
        usd = self._price(reservation.identity, usage, now)
        counted = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cache_read": usage.cache_read_tokens,
            "cache_write": usage.cache_write_tokens,
        }
        if usd is None:
            counted[spend.UNPRICED] = 1
        purpose = _purpose(reservation)
        entry = Spend(reservation.key, now, purpose, reservation.identity, counted, usd or 0.0)

        def enter(db: Connection) -> None:
            spend.release(db, reservation.key)
            spend.add(db, entry)

        self._database.write(enter)

    def release(self, reservation: Reservation) -> None:
        """Give back what was set aside for a call that took nothing."""
        self._database.write(lambda db: spend.release(db, reservation.key))

    def _today(self, db: Connection, now: datetime) -> SpentToday:
        begun = now.replace(hour=0, minute=0, second=0, microsecond=0)
        until = begun + timedelta(days=1)
        return SpentToday(
            self._budget_usd,
            spend.total(db, spend.BACKGROUND, since=begun, until=until),
            spend.reserved(db, spend.BACKGROUND),
            spend.unpriced(db, spend.BACKGROUND, since=begun),
            until,
            spend.whole(db, since=begun, until=until),
        )


def _require_left(db: Connection, whole_usd: float, today: SpentToday) -> None:
    """Refuse if all that was spent today and is set aside comes to the budget of all work."""
    used = today.whole_usd + spend.whole_reserved(db)
    if used >= whole_usd:
        msg = f"Today ${used:.2f} of ${whole_usd:.2f} are spent or set aside."
        hint = "Background work goes on at 00:00 UTC; daily_budget allows for more."
        raise BudgetSpent(msg, hint=hint, until=today.until)


def _purpose(reservation: Reservation) -> str:
    return f"{spend.BACKGROUND}:{reservation.question}"


def _spent(today: SpentToday) -> BudgetSpent:
    used = today.spent_usd + today.reserved_usd
    msg = f"Background work has used ${used:.2f} of the ${today.budget_usd:.2f} of today."
    hint = "It goes on at 00:00 UTC; background.daily_budget allows for more."
    return BudgetSpent(msg, hint=hint, until=today.until)
