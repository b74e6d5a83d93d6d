"""The ledger of all model calls: reserve money before a call, and record its cost after it.

Background work waits for the store. Agents' requests do not: without a budget nothing is written
before a request, and its cost is written later. With a budget, money is reserved in the store for
all processes together. If the store is not available, requests go on: this process then counts on
its own, based on the last known state. Every request is in the journal before it leaves, so that
its cost is known even if the process is killed.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from lore import clock
from lore.budget.entries import (
    AppliedCorrection,
    Correction,
    entry_key,
    usage_fields,
    write_entry,
)
from lore.budget.journal import JournalRecord, SpendJournal
from lore.budget.prices import LOAD_TIMEOUT_S, PriceCatalogue
from lore.budget.reports import RequestCounters
from lore.budget.throttle import STALE_PACE_TTL, Pace, PaceCache, measure_pace, start_of_day
from lore.errors import BudgetSpent, StoreError
from lore.llm.chat import Usage
from lore.records import (
    DayBudget,
    RequestCost,
    RequestHold,
    RequestOutcome,
    Spend,
    SpendCounter,
    SpendPressure,
    SpentToday,
    TokenUse,
)
from lore.store import spend
from lore.text.tokens import format_dollars

if TYPE_CHECKING:
    from lore.store.database import Connection, Database


HOLD_TIMEOUT = timedelta(hours=1)
"""No call takes this long:

a hold that is older is released, as another program may have the process id by now."""

STORE_TIMEOUT_S = 0.1
"""How long a request waits for the store, which may be locked; the gateway allows 0.15 s."""

STORE_BACKOFF_S = 2.0
"""How long the store is not asked after a timeout, so that further requests do not wait."""

RETRY_AFTER_S = 5.0
"""When to retry if all money left is reserved for other requests: about the time of a response."""

SETTLE_WAIT_S = 0.1
"""How long a request waits for others to release money.

A response that was just sent is settled by then, so sequential requests of a client are not
refused."""

MAX_UNWRITTEN = 10_000
"""Maximum number of entries that wait for the store; of more, only the cost is kept."""

RETRY_INTERVAL_S = 10.0
"""How long entries wait for the next retry after the store refused them."""

_RETRY_BATCH = 500

_DEFAULT_OUTCOME = RequestOutcome()

_MAX_NAME_CHARS = 200
"""A client may send any model name; only this much is stored."""

_MAX_NAMES = 1_000
"""Names of models, sessions and projects whose redaction is cached."""

_DAY = timedelta(days=1)

_RAISE_HINT = (
    "'lore config daily_budget 10' allows for $10 at once, unless LORE_DAILY_BUDGET is set,"
    " which overrides it."
)

_PROCESS_TOKEN = secrets.token_hex(4)
"""Distinguishes this process from an earlier one with the same id, as in containers."""


def process_key() -> str:
    """Return the key under which this process holds money."""
    return f"{os.getpid()}.{_PROCESS_TOKEN}"


def settle_dead_processes(
    db: Connection, now: datetime, has_journal: Callable[[str], bool] = lambda _process: False
) -> None:
    """Record the cost of calls whose process was killed, each with the price of its prompt.

    The provider has most likely read the prompt and charges for it; the response is unknown. If the
    process left a journal, that knows better.
    """
    for hold in spend.list_reservations(db):
        if not hold.process or _is_alive(hold.process) or has_journal(hold.process):
            if abs(now - hold.at) > HOLD_TIMEOUT:
                spend.remove_reservation(db, hold.key)
            continue
        spend.remove_reservation(db, hold.key)
        if hold.prompt_usd:
            spend.add(db, _lost_entry(hold, hold.purpose, hold.model))


def _lost_entry(hold: RequestHold | spend.SpendReservation, purpose: str, model: str) -> Spend:
    """Return the entry of a request whose response is unknown: the price of its prompt."""
    usd = hold.prompt_usd
    usage = {spend.ESTIMATED: 1}
    return Spend(hold.key, hold.at, purpose, model, usage, usd, without_usd=usd)


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


class Ledger:
    """Record the cost of all model calls, within the daily budgets; thread-safe.

    A call may start while money is left, less the maximum cost of the calls in progress. So at most
    one call exceeds a budget, however many processes there are.
    """

    def __init__(  # noqa: PLR0913 - how patient it is with what
        self,
        database: Database,
        catalogue: PriceCatalogue,
        budget_usd: float | None = None,
        *,
        background_usd: float = 0.0,
        calls_per_day: int | None = None,
        redact: Callable[[str], str] = str,
        current_budget: Callable[[], float | None] | None = None,
        store_timeout_s: float = STORE_TIMEOUT_S,
        store_backoff_s: float = STORE_BACKOFF_S,
        settle_wait_s: float = SETTLE_WAIT_S,
        max_unwritten: int = MAX_UNWRITTEN,
    ) -> None:
        """Open a ledger; `redact` removes secrets from the names that clients send.

        `budget_usd` limits all spend of a day; if it can change at run time, `current_budget`
        returns it. `background_usd` limits the part of background work, and `calls_per_day` its
        calls of agents' commands, which a subscription pays for.
        """
        self.catalogue = catalogue
        self._background_usd = background_usd
        self._calls_per_day = calls_per_day
        self._redact = lru_cache(_MAX_NAMES)(redact)
        self._current_budget = current_budget or (lambda: budget_usd)
        self._database = database
        self._journal = SpendJournal(database.path, process_key())
        self._store_timeout_s, self._store_backoff_s = store_timeout_s, store_backoff_s
        self._settle_wait_s = settle_wait_s
        self._max_unwritten = max_unwritten
        self._lock = threading.Lock()
        self._released, self._release_count = threading.Condition(), 0
        """Counts the requests that have released money; others wait for the next one."""
        self._holds: dict[str, RequestHold] = {}
        """Reservations of this process for requests in progress."""
        self._unwritten: dict[str, tuple[Spend, RequestHold]] = {}
        """Settled entries that are not in the store yet."""
        self._failed: set[str] = set()
        """Keys of unwritten entries that the store refused; they are retried."""
        self._dropped_usd: dict[datetime, float] = {}
        """Cost of the entries that were dropped, of the last day with any."""
        self._known_usd: dict[datetime, float] = {}
        """What was spent on the current day, as far as this process knows."""
        self._backoff_until = self._retry_at = self._adopt_at = 0.0
        self._pace = PaceCache()
        self._counters = RequestCounters()

    def reserve(self, cost: RequestCost, *, within_s: float | None = None) -> RequestHold:
        """Reserve the maximum cost of a call, or raise `BudgetSpent`.

        A request waits for nothing longer than `within_s`: price lists, the store, or other
        requests.
        """
        if cost.work == spend.BACKGROUND:
            return self._reserve_background(cost)
        until = math.inf if within_s is None else time.monotonic() + within_s
        budget_usd = self._current_budget()
        # Wait for the price lists only if there is a budget.
        wait_s = 0.0 if budget_usd is None else min(LOAD_TIMEOUT_S, _seconds_until(until))
        hold = self._price_request(cost, wait_s)
        self._retry_failed()
        self._adopt()
        if budget_usd is not None and hold.usd != 0:
            try:
                hold = self._reserve_or_wait(replace(hold, is_stored=True), budget_usd, until)
            except BudgetSpent:
                self._counters.refuse(self._model(cost.model))
                raise
        self._write_journal(hold)
        return hold

    def release_unused(self, hold: RequestHold, used: TokenUse, *, service: str = "") -> None:
        """Release the unused part of a reservation at once; the request is settled later."""
        pricing = self.catalogue.find(
            hold.cost.model, hold.cost.provider, service=service, wait_s=0
        )
        if pricing is None:
            return
        usd = pricing.cost(used)
        with self._lock:
            if hold.key not in self._holds:
                return
            self._holds[hold.key] = replace(hold, usd=usd)
        self._write_journal(replace(hold, usd=usd, prompt_usd=usd))
        if hold.is_stored:
            with suppress(StoreError):
                self._database.submit(partial(spend.update_reservation, key=hold.key, usd=usd))
        self._notify_released()

    def settle(
        self,
        hold: RequestHold,
        used: TokenUse | Usage | None,
        outcome: RequestOutcome = _DEFAULT_OUTCOME,
    ) -> float | None:
        """Record the usage of a call, release the rest, and return the cost if it is known.

        The usage of a request that was not parsed is unknown: `used` is None.
        """
        if isinstance(used, Usage):
            return self._settle_background(hold, used)
        cost, pricing = hold.cost, None
        if used is not None:
            pricing = self.catalogue.find(cost.model, cost.provider, service=outcome.service)
        used, without = used or TokenUse(), outcome.without
        usd = None if pricing is None else sum(map(pricing.cost, outcome.rounds or (used,)))
        instead = usd if pricing is None or without is None else pricing.cost(without)
        entry = Spend(
            entry_key(hold, outcome),
            self._database.now(),
            cost.purpose,
            self._model(cost.model),
            usage_fields(used, outcome, priced=usd is not None),
            usd or 0.0,
            layer=outcome.layer,
            busts=outcome.busts,
            delay_ms=round(outcome.delay_s * 1_000),
            without_usd=instead or 0.0,
        )
        self._counters.count(entry, used)
        self._write_journal(hold, entry)
        with self._lock:
            self._holds.pop(hold.key, None)
            self._unwritten[entry.key] = (entry, hold)
        self._retry_failed()
        self._submit_entry(entry, hold)
        self._notify_released()
        return usd

    def correct(
        self, fetched_by: str, used: TokenUse, outcome: RequestOutcome, *, provider: str
    ) -> None:
        """Replace the estimated usage of a deferred response by the actual one.

        This happens once, in the background, after all earlier entries are written.
        """
        self.catalogue.load()
        self.catalogue.wait(LOAD_TIMEOUT_S)
        price = partial(self.catalogue.find, provider=provider, service=outcome.service, wait_s=0)
        correction = Correction(fetched_by, used, outcome, price)
        try:
            future = self._database.submit(partial(self._correct, correction=correction))
        except StoreError:
            self._correct_unwritten(correction)
            return
        future.add_done_callback(partial(self._on_corrected, correction))

    def release(self, hold: RequestHold) -> None:
        """Release the reservation of a call that used nothing."""
        remove = partial(spend.remove_reservation, key=hold.key)
        if hold.cost.work == spend.BACKGROUND:
            self._database.write(remove)
            return
        with self._lock:
            self._holds.pop(hold.key, None)
        if hold.is_stored:
            self._write_journal(replace(hold, usd=0.0, prompt_usd=0.0))
            # If the store refuses, the hold expires by itself.
            with suppress(StoreError):
                future = self._database.submit(remove)
                future.add_done_callback(lambda _: self._journal.remove(hold.key))
        else:
            self._journal.remove(hold.key)
        self._notify_released()

    def start(self) -> None:
        """Load the prices, and settle the calls of killed processes."""
        self.catalogue.load()
        self._adopt(at_once=True)
        settle = partial(
            settle_dead_processes, now=self._database.now(), has_journal=self._journal.has_file
        )
        with suppress(StoreError):
            self._database.submit(settle)
        with suppress(StoreError):
            self.day_budget()  # what was spent is known from now on, also if the store is locked

    def close(self) -> None:
        """Retry once more to write the entries that the store refused."""
        self._retry_failed(at_once=True)

    def close_journal(self) -> None:
        """Close the journal, after the store has written what it could."""
        self._journal.close()

    def day_budget(self) -> DayBudget:
        """Return the state of today's budget for all spend."""
        now = self._database.now()
        begun = start_of_day(now)
        with self._database.read() as db:
            spent = spend.total_spent(db, since=begun, until=begun + _DAY)
            reserved = spend.total_reserved(db)
        self._update_known_spend(begun, spent)
        with self._lock:
            spent += self._unwritten_usd(begun)
            reserved += self._held_usd(now, stored=False)
        return DayBudget(self._current_budget(), spent, reserved, begun + _DAY)

    def background_today(self) -> SpentToday:
        """Return the state of today's budget for background work."""
        with self._database.read() as db:
            return self._background_today(db, self._database.now())

    def pressure(self, *, at_hand: bool = False) -> SpendPressure:
        """Return the delay that the budget demands of the next request; cached for some seconds.

        With `at_hand` only the cache is read: `reserve` has updated it.
        """
        budget_usd = self._current_budget()
        if budget_usd is None:
            return SpendPressure()
        now = self._database.now()
        pressure = self._pace.find(now, budget_usd)
        if pressure is None and not at_hand:
            with suppress(StoreError), self._database.read() as db:
                pressure = self._pace.learn(now, measure_pace(db, now, budget_usd))
        return pressure or self._pace.find(now, budget_usd, STALE_PACE_TTL) or SpendPressure()

    @property
    def budget_usd(self) -> float | None:
        """Return the current daily budget, None if there is none."""
        return self._current_budget()

    def counters(self) -> list[SpendCounter]:
        """Return the counters of this process by model."""
        return self._counters.snapshot()

    def _model(self, name: str) -> str:
        return self._redact(name[:_MAX_NAME_CHARS])

    def _reserve_background(self, cost: RequestCost) -> RequestHold:
        now, most = self._database.now(), cost.max_usage or TokenUse()
        prompt = Usage(most.input_tokens)
        usd = self.catalogue.cost(
            cost.model, replace(prompt, output_tokens=most.output_tokens), now
        )
        prompt_usd = self.catalogue.cost(cost.model, prompt, now) or 0.0
        hold = RequestHold(clock.new_id(now), now, cost, usd, is_stored=True, prompt_usd=prompt_usd)

        self._adopt()

        def reserve(db: Connection) -> None:
            settle_dead_processes(db, now, self._journal.has_file)
            # A free call needs no budget.
            if usd != 0:
                self._require_background_budget(db, now)
            if spend.COMMAND_MODEL in cost.model:
                self._require_call(db, now)
            _store_reservation(db, hold)

        self._database.write(reserve)
        return hold

    def _require_background_budget(self, db: Connection, now: datetime) -> None:
        today, budget_usd = self._background_today(db, now), self._current_budget()
        if not today.left_usd:
            used = today.spent_usd + today.reserved_usd
            msg = f"Background work has used ${used:.2f} of the ${today.budget_usd:.2f} of today."
            hint = "It continues at 00:00 UTC; raise background.daily_budget to allow more."
            raise BudgetSpent(msg, hint=hint, until=today.until)
        if budget_usd is None:
            return
        used = today.whole_usd + spend.total_reserved(db)
        if used >= budget_usd:
            msg = f"Today ${used:.2f} of ${budget_usd:.2f} are spent or set aside."
            hint = "Background work continues at 00:00 UTC; raise daily_budget to allow more."
            raise BudgetSpent(msg, hint=hint, until=today.until)

    def _require_call(self, db: Connection, now: datetime) -> None:
        """Raise `BudgetSpent` if agents' commands were called often enough today."""
        begun, most = start_of_day(now), self._calls_per_day
        if most is None or spend.count_command_calls(db, since=begun) < most:
            return
        msg = f"The {most} calls of agents' commands of today are used."
        hint = "Background work continues at 00:00 UTC; raise chat.calls_per_day to allow more."
        raise BudgetSpent(msg, hint=hint, until=begun + _DAY)

    def _settle_background(self, hold: RequestHold, used: Usage) -> float | None:
        now, cost = self._database.now(), hold.cost
        usd = self.catalogue.cost(cost.model, used, now)
        usage = usage_fields(used, _DEFAULT_OUTCOME, priced=usd is not None)
        entry = Spend(hold.key, now, cost.purpose, cost.model, usage, usd or 0.0)
        self._database.write(partial(write_entry, entry=entry, hold=hold))
        return usd

    def _background_today(self, db: Connection, now: datetime) -> SpentToday:
        begun = start_of_day(now)
        until = begun + _DAY
        return SpentToday(
            self._background_usd,
            spend.spent_on(db, spend.BACKGROUND, since=begun, until=until),
            spend.reserved_for(db, spend.BACKGROUND),
            spend.count_unpriced(db, spend.BACKGROUND, since=begun),
            until,
            spend.total_spent(db, since=begun, until=until),
        )

    def _price_request(self, cost: RequestCost, wait_s: float) -> RequestHold:
        """Return a hold with the maximum cost of a request, which is not reserved yet."""
        now, usd, prompt_usd = self._database.now(), None, 0.0
        if cost.max_usage is not None:
            pricing = self.catalogue.find(
                cost.model, cost.provider, service=cost.service, wait_s=wait_s
            )
            if pricing is not None:
                usd = pricing.cost(cost.max_usage)
                prompt_usd = pricing.cost(replace(cost.max_usage, output_tokens=0))
        redacted = replace(
            cost, session=self._redact(cost.session), project=self._redact(cost.project)
        )
        return RequestHold(clock.new_id(now), now, redacted, usd, prompt_usd=prompt_usd)

    def _reserve_or_wait(self, hold: RequestHold, budget_usd: float, until: float) -> RequestHold:
        """Reserve money; wait shortly for requests that are being settled."""
        settled_by = min(until, time.monotonic() + self._settle_wait_s)
        while True:
            count = self._release_count
            try:
                return self._reserve(hold, budget_usd, until)
            except _AllReserved:
                if not self._holds or not self._wait_for_release(count, _seconds_until(settled_by)):
                    raise

    def _wait_for_release(self, count: int, within_s: float) -> bool:
        with self._released:
            return self._released.wait_for(lambda: self._release_count != count, within_s)

    def _notify_released(self) -> None:
        with self._released:
            self._release_count += 1
            self._released.notify_all()

    def _reserve(self, hold: RequestHold, budget_usd: float, until: float) -> RequestHold:
        if time.monotonic() < self._backoff_until:
            return self._reserve_locally(replace(hold, is_stored=False), budget_usd)
        begun = start_of_day(hold.at)
        with self._lock:
            held_usd = self._held_usd(hold.at, stored=False)
            beside_usd = self._dropped_usd.get(begun, 0.0) + sum(
                entry.usd
                for entry, whose in self._unwritten.values()
                if not whose.is_stored and entry.at >= begun
            )
        left_usd = budget_usd - beside_usd - held_usd
        watched_usd = budget_usd if self._pace.find(hold.at, budget_usd) is None else None
        work = partial(
            self._reserve_in_store, hold=hold, left_usd=left_usd, watched_usd=watched_usd
        )
        future: Future[_StoreReply] | None = None
        try:
            future = self._database.submit(work)
            reply = future.result(min(self._store_timeout_s, _seconds_until(until)))
        except (StoreError, TimeoutError):
            self._backoff_until = time.monotonic() + self._store_backoff_s
            # The write may have started; then the hold is released as if it were in the store.
            maybe_stored = future is not None and not future.done() and not future.cancel()
            return self._reserve_locally(replace(hold, is_stored=maybe_stored), budget_usd)
        self._update_known_spend(begun, reply.spent_usd)
        if reply.pace is not None:
            self._pace.learn(hold.at, reply.pace)
        if not reply.granted:
            raise _budget_spent(budget_usd, hold.at, reply.spent_usd + beside_usd)
        with self._lock:
            self._holds[hold.key] = hold
        return hold

    def _reserve_in_store(
        self, db: Connection, hold: RequestHold, left_usd: float, watched_usd: float | None
    ) -> _StoreReply:
        settle_dead_processes(db, hold.at, self._journal.has_file)
        begun = start_of_day(hold.at)
        spent_usd = spend.total_spent(db, since=begun, until=begun + _DAY)
        if spent_usd + spend.total_reserved(db) >= left_usd:
            return _StoreReply(granted=False, spent_usd=spent_usd)
        pace = None if watched_usd is None else measure_pace(db, hold.at, watched_usd)
        _store_reservation(db, hold)
        return _StoreReply(granted=True, spent_usd=spent_usd, pace=pace)

    def _reserve_locally(self, hold: RequestHold, budget_usd: float) -> RequestHold:
        """Reserve money in this process only, on top of the known spend."""
        begun = start_of_day(hold.at)
        with self._lock:
            known_usd = self._known_usd.get(begun, 0.0)
            used_usd = known_usd + self._unwritten_usd(begun) + self._dropped_usd.get(begun, 0.0)
            held_usd = self._held_usd(hold.at) + self._held_usd(hold.at, stored=False)
            if used_usd + held_usd >= budget_usd:
                raise _budget_spent(budget_usd, hold.at, used_usd)
            self._holds[hold.key] = hold
        return hold

    def _held_usd(self, now: datetime, *, stored: bool = True) -> float:
        """Return the total of the holds that are in the store, or not; drop expired ones."""
        since = now - HOLD_TIMEOUT
        for key in [key for key, one in self._holds.items() if one.at < since]:
            del self._holds[key]
        return sum(one.usd or 0.0 for one in self._holds.values() if one.is_stored is stored)

    def _unwritten_usd(self, begun: datetime) -> float:
        return sum(entry.usd for entry, _ in self._unwritten.values() if entry.at >= begun)

    def _submit_entry(self, entry: Spend, hold: RequestHold) -> None:
        patient = self._current_budget() is None
        try:
            future = self._database.submit(
                partial(self._write, entry=entry, hold=hold), patient=patient
            )
        except StoreError:
            self._postpone(entry.key)
            return
        future.add_done_callback(partial(self._on_entry_written, entry, hold))

    def _write(self, db: Connection, entry: Spend, hold: RequestHold) -> None:
        """Write the latest state of an entry: it may have been corrected while it waited."""
        with self._lock:
            latest, _ = self._unwritten.get(entry.key, (entry, hold))
        write_entry(db, latest, hold)

    def _on_entry_written(self, entry: Spend, hold: RequestHold, future: Future[None]) -> None:
        if future.cancelled() or future.exception() is not None:
            self._postpone(entry.key)
            return
        with self._lock:
            latest, _ = self._unwritten.pop(entry.key, (entry, None))
            self._add_known_spend(latest.at, latest.usd)
        self._journal.remove(hold.key)

    def _correct(self, db: Connection, correction: Correction) -> AppliedCorrection | None:
        """Correct an entry in the store, or among those that wait for it."""
        corrected = correction.write(db)
        if corrected is None:
            self._correct_unwritten(correction)
        return corrected

    def _correct_unwritten(self, correction: Correction) -> None:
        with self._lock:
            entry = correction.find(one for one, _ in self._unwritten.values())
            if entry is None:
                return
            corrected, hold = correction.applied(entry), self._unwritten[entry.key][1]
            self._unwritten[entry.key] = (corrected.entry, hold)
            self._write_journal(hold, corrected.entry)
        self._counters.correct(corrected.entry, corrected.used)

    def _on_corrected(
        self, correction: Correction, future: Future[AppliedCorrection | None]
    ) -> None:
        if future.cancelled() or future.exception() is not None:
            # An entry in the store keeps its estimate until the response is fetched again.
            self._correct_unwritten(correction)
            return
        corrected = future.result()
        if corrected is None:
            return
        entry = corrected.entry
        self._counters.correct(entry, corrected.used)
        with self._lock:
            self._add_known_spend(entry.at, entry.usd - corrected.before_usd)

    def _postpone(self, key: str) -> None:
        with self._lock:
            if len(self._unwritten) > self._max_unwritten:
                entry, hold = self._unwritten.pop(key)
                self._journal.remove(hold.key)
                begun = start_of_day(entry.at)
                self._dropped_usd = {begun: self._dropped_usd.get(begun, 0.0) + entry.usd}
            else:
                self._failed.add(key)

    def _retry_failed(self, *, at_once: bool = False) -> None:
        """Retry some of the refused entries from time to time, or all of them with `at_once`."""
        if not self._failed:
            return
        with self._lock:
            if time.monotonic() < self._retry_at and not at_once:
                return
            self._retry_at = time.monotonic() + RETRY_INTERVAL_S
            count = len(self._failed) if at_once else min(len(self._failed), _RETRY_BATCH)
            again = [self._unwritten[self._failed.pop()] for _ in range(count)]
        for entry, hold in again:
            self._submit_entry(entry, hold)

    def _write_journal(self, hold: RequestHold, entry: Spend | None = None) -> None:
        model = self._model(hold.cost.model)
        if model != hold.cost.model:
            hold = replace(hold, cost=replace(hold.cost, model=model))
        self._journal.record(JournalRecord(hold, entry))

    def _adopt(self, *, at_once: bool = False) -> None:
        """Settle the requests of killed processes from time to time, by their journals."""
        with self._lock:
            if time.monotonic() < self._adopt_at and not at_once:
                return
            self._adopt_at = time.monotonic() + RETRY_INTERVAL_S
        for record in self._journal.adopt():
            hold, entry = record.hold, record.entry
            if entry is None and hold.prompt_usd:
                entry = _lost_entry(hold, hold.cost.purpose, hold.cost.model)
            if entry is None:
                self.release(hold)
                continue
            with self._lock:
                self._unwritten[entry.key] = (entry, hold)
            self._submit_entry(entry, hold)

    def _update_known_spend(self, begun: datetime, spent_usd: float) -> None:
        with self._lock:
            self._known_usd = {begun: max(self._known_usd.get(begun, 0.0), spent_usd)}

    def _add_known_spend(self, at: datetime, usd: float) -> None:
        begun = start_of_day(at)
        if begun in self._known_usd:
            self._known_usd[begun] += usd


class _AllReserved(BudgetSpent):
    """No money is left, but not all of it is spent."""


class _StoreReply(NamedTuple):
    """Whether the store granted the reservation, and what was spent."""

    granted: bool
    spent_usd: float
    pace: Pace | None = None
    """The pace of the day, if it was requested."""


def _store_reservation(db: Connection, hold: RequestHold) -> None:
    reservation = spend.SpendReservation(
        hold.key,
        hold.at,
        hold.cost.purpose,
        hold.usd or 0.0,
        process_key(),
        hold.cost.model[:_MAX_NAME_CHARS],
        hold.prompt_usd,
    )
    spend.add_reservation(db, reservation)


def _seconds_until(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _budget_spent(budget_usd: float, now: datetime, used_usd: float) -> BudgetSpent:
    if not budget_usd:
        return BudgetSpent(
            "daily_budget is $0.00: only free requests are allowed.", hint=_RAISE_HINT
        )
    budget = format_dollars(budget_usd)
    if used_usd >= budget_usd:
        msg = f"Today {format_dollars(used_usd)} of {budget} are spent."
        hint = f"Requests are allowed again at 00:00 UTC. {_RAISE_HINT}"
        return BudgetSpent(msg, hint=hint, until=start_of_day(now) + _DAY)
    msg = f"What is left of today's {budget} is set aside for requests under way."
    return _AllReserved(
        msg, hint="Retry in a few seconds.", until=now + timedelta(seconds=RETRY_AFTER_S)
    )
