"""Ledger of background work: reserve money before a call, and record its cost after it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lore import clock
from lore.budget.prices import find_call_cost
from lore.errors import BudgetSpent
from lore.llm.chat import CallReservation, Usage
from lore.records import Spend, SpentToday
from lore.store import spend

if TYPE_CHECKING:
    from lore.store.database import Connection, Database


HOLD_TIMEOUT = timedelta(hours=1)
"""No call takes this long:

a hold that is older is released, as another program may have the process id by now."""

_PROCESS_TOKEN = secrets.token_hex(4)
"""Distinguishes this process from an earlier one with the same id, as in containers."""


def process_key() -> str:
    """Return the key under which this process holds money."""
    return f"{os.getpid()}.{_PROCESS_TOKEN}"


def settle_dead_processes(db: Connection, now: datetime) -> None:
    """Record the cost of calls whose process was killed, each with the price of its prompt.

    The provider has most likely read the prompt and charges for it; the response is unknown.
    """
    for hold in spend.list_reservations(db):
        if not hold.process or _is_alive(hold.process):
            if abs(now - hold.at) > HOLD_TIMEOUT:
                spend.remove_reservation(db, hold.key)
            continue
        spend.remove_reservation(db, hold.key)
        if hold.prompt_usd:
            usd, usage = hold.prompt_usd, {spend.ESTIMATED: 1}
            entry = Spend(hold.key, hold.at, hold.purpose, hold.model, usage, usd, without_usd=usd)
            spend.add(db, entry)


def _is_alive(process: str) -> bool:
    number, _, _ = process.partition(".")
    if int(number) == os.getpid():
        return process == process_key()
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


Price = Callable[[str, Usage, datetime], float | None]


class BackgroundLedger:
    """Keep the cost of background work within its daily budget.

    A call may start while money is left, less the maximum cost of the calls in progress. So at most
    one call exceeds the budget, however many processes there are.
    """

    def __init__(
        self,
        database: Database,
        budget_usd: float,
        *,
        whole_usd: float | None = None,
        price: Price = find_call_cost,
    ) -> None:
        """Limit the cost to `budget_usd`, and to the rest of `whole_usd`, the total budget."""
        self._database = database
        self._budget_usd = budget_usd
        self._whole_usd = whole_usd
        self._price = price

    def today(self) -> SpentToday:
        """Return the state of today's budget."""
        with self._database.read() as db:
            return self._today(db, self._database.now())

    def reserve(self, question: str, identity: str, most: Usage) -> CallReservation:
        """Reserve the maximum cost of a call, or raise `BudgetSpent`."""
        now = self._database.now()
        usd = self._price(identity, most, now)
        prompt_usd = self._price(identity, replace(most, output_tokens=0), now)
        reservation = CallReservation(clock.new_id(now), question, identity)
        hold = spend.SpendReservation(
            reservation.key,
            now,
            _purpose(reservation),
            usd or 0.0,
            process_key(),
            identity,
            prompt_usd or 0.0,
        )

        def set_aside(db: Connection) -> None:
            settle_dead_processes(db, now)
            today = self._today(db, now)
            # A free call needs no budget.
            if usd != 0 and not today.left_usd:
                raise _budget_spent(today)
            if usd != 0 and self._whole_usd is not None:
                _require_daily_budget(db, self._whole_usd, today)
            spend.add_reservation(db, hold)

        self._database.write(set_aside)
        return reservation

    def settle(self, reservation: CallReservation, usage: Usage) -> None:
        """Record the cost of a call, and release the rest of its reservation."""
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
            spend.remove_reservation(db, reservation.key)
            spend.add(db, entry)

        self._database.write(enter)

    def release(self, reservation: CallReservation) -> None:
        """Release the reservation of a call that used nothing."""
        self._database.write(lambda db: spend.remove_reservation(db, reservation.key))

    def _today(self, db: Connection, now: datetime) -> SpentToday:
        begun = now.replace(hour=0, minute=0, second=0, microsecond=0)
        until = begun + timedelta(days=1)
        return SpentToday(
            self._budget_usd,
            spend.spent_on(db, spend.BACKGROUND, since=begun, until=until),
            spend.reserved_for(db, spend.BACKGROUND),
            spend.count_unpriced(db, spend.BACKGROUND, since=begun),
            until,
            spend.total_spent(db, since=begun, until=until),
        )


def _require_daily_budget(db: Connection, whole_usd: float, today: SpentToday) -> None:
    used = today.whole_usd + spend.total_reserved(db)
    if used >= whole_usd:
        msg = f"Today ${used:.2f} of ${whole_usd:.2f} are spent or set aside."
        hint = "Background work continues at 00:00 UTC; raise daily_budget to allow more."
        raise BudgetSpent(msg, hint=hint, until=today.until)


def _purpose(reservation: CallReservation) -> str:
    return f"{spend.BACKGROUND}:{reservation.question}"


def _budget_spent(today: SpentToday) -> BudgetSpent:
    used = today.spent_usd + today.reserved_usd
    msg = f"Background work has used ${used:.2f} of the ${today.budget_usd:.2f} of today."
    hint = "It continues at 00:00 UTC; raise background.daily_budget to allow more."
    return BudgetSpent(msg, hint=hint, until=today.until)
