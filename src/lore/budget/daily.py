"""The ledger of an agent's requests: money is set aside before one and entered after it.

Without a budget nothing is written before a request, and what it took is written when it is
convenient. With one, money is set aside in the store, for all processes together. A store that
cannot hold it stops nobody: this process then counts by itself, on top of what it last knew.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lore import clock
from lore.budget.catalogue import LOAD_S, Catalogue
from lore.budget.counters import Counters
from lore.budget.entries import Corrected, Correction, enter, key_of, usage_of
from lore.budget.holders import HELD_FOR, settle_dead, this_process
from lore.budget.pressing import AT_HAND, Pressing, look, midnight
from lore.budget.throttle import Pace
from lore.errors import BudgetSpent, StoreError
from lore.records import Course, DayBudget, Reserved, Spend, SpendCounter, SpendPressure
from lore.records.dialogues import TokenUse
from lore.store import spend
from lore.text.money import dollars

if TYPE_CHECKING:
    from lore.store.db import Connection, Database

PATIENCE_S = 0.1
"""How long a request waits for the store, which may be locked: gateways promise 0.15 s in all."""

TROUBLE_S = 2.0
"""A store that kept one waiting is not asked again for so long, so that the next do not wait."""

LATER_S = 5.0
"""When to come again if money is only set aside for others: about what an answer takes."""

SETTLING_S = 0.1
"""So long a request waits whose money is set aside for another: an answer that has just gone out
is settled by then, and a client that asks one thing after the other is not refused for it."""

MOST_UNWRITTEN = 10_000
"""Entries that wait for a store which takes none; of more only the money is remembered."""

AGAIN_S = 10.0
"""How long entries that the store refused wait before they are tried again."""

_AT_ONCE = 500

_USUAL = Course()

_LONGEST = 200
"""A client may call a model anything; so much of it is written."""

_DAY = timedelta(days=1)

_MORE = (
    "'lore config daily_budget 10' allows for $10 at once, unless LORE_DAILY_BUDGET is set,"
    " which goes before it."
)


class RequestLedger:
    """Keeps what agents spend, within the budget of a day if there is one; for many threads.

    A request may begin while anything is left, counting what those under way may take at most:
    so the budget is exceeded by one request at most.
    """

    def __init__(  # noqa: PLR0913 - how patient it is with what
        self,
        database: Database,
        catalogue: Catalogue,
        budget_usd: float | None = None,
        *,
        named: Callable[[str], str] = str,
        allowed: Callable[[], float | None] | None = None,
        patience_s: float = PATIENCE_S,
        trouble_s: float = TROUBLE_S,
        settling_s: float = SETTLING_S,
        most_unwritten: int = MOST_UNWRITTEN,
    ) -> None:
        """Open a ledger; `named` says how the store calls what a client calls something.

        Where the budget may change meanwhile, `allowed` says what it is by now.
        """
        self.catalogue = catalogue
        self._named = named
        self._allowed = allowed or (lambda: budget_usd)
        self._database = database
        self._patience_s, self._trouble_s, self._settling_s = patience_s, trouble_s, settling_s
        self._most_unwritten = most_unwritten
        self._lock = threading.Lock()
        self._ended, self._endings = threading.Condition(), 0
        """How many requests have given back what was set aside, and who waits for one more."""
        self._held: dict[str, Reserved] = {}
        """What this process has set aside for requests that are under way."""
        self._unwritten: dict[str, tuple[Spend, Reserved]] = {}
        """What was settled and is not in the store yet."""
        self._failed: set[str] = set()
        """Those of them that the store refused; they are tried again."""
        self._lost_on: datetime | None = None
        self._lost_usd = 0.0
        """What was settled on that day and is remembered by its money alone."""
        self._day: datetime | None = None
        self._known_usd = 0.0
        """What was spent on that day, as far as this process knows."""
        self._trouble_until = self._again_at = 0.0
        self._pressing = Pressing()
        self._counters = Counters()

    def reserve(  # noqa: PLR0913 - all that the ledger says of a request
        self,
        model: str,
        most: TokenUse | None,
        *,
        provider: str = "",
        service: str = "",
        session: str = "",
        project: str = "",
        kind: str = "turn",
        within_s: float | None = None,
    ) -> Reserved:
        """Set aside what a request may take at most, or raise `BudgetSpent`.

        Of one that nobody reads nobody knows what it takes: `most` is None, and so is `used` then.
        Nothing is waited for longer than `within_s`: neither lists, nor the store, nor others.
        """
        until = math.inf if within_s is None else time.monotonic() + within_s
        budget_usd, now = self._allowed(), self._database.now()
        purpose = f"{spend.REQUEST}:{kind}"
        names = (model, provider, purpose, self._named(session), self._named(project))
        usd, prompt_usd = None, 0.0
        if most is not None:
            # Only with a budget are the lists waited for.
            wait_s = 0.0 if budget_usd is None else min(LOAD_S, _left(until))
            pricing = self.catalogue.find(model, provider, service=service, wait_s=wait_s)
            usd = None if pricing is None else pricing.cost(most)
            asked = replace(most, output_tokens=0)
            prompt_usd = 0.0 if pricing is None else pricing.cost(asked)
        reserved = Reserved(clock.new_id(now), now, *names, usd, kept=False, prompt_usd=prompt_usd)
        self._enter_again()
        if budget_usd is None or usd == 0:
            return reserved
        try:
            return self._reserve_soon(replace(reserved, kept=True), budget_usd, until)
        except BudgetSpent:
            self._counters.refuse(self._model(model))
            raise

    def count(self, reserved: Reserved, used: TokenUse, *, service: str = "") -> None:
        """Give back at once what a request did not take; it is still to be settled."""
        pricing = self.catalogue.find(reserved.model, reserved.provider, service=service, wait_s=0)
        if pricing is None:
            return
        usd = pricing.cost(used)
        with self._lock:
            if reserved.key not in self._held:
                return
            self._held[reserved.key] = replace(reserved, usd=usd)
        if reserved.kept:
            with suppress(StoreError):
                self._database.submit(partial(spend.adjust, key=reserved.key, usd=usd))
        self._tell_ended()

    def settle(
        self,
        reserved: Reserved,
        used: TokenUse | None,
        course: Course = _USUAL,
    ) -> float | None:
        """Enter what a request took and give back the rest; return what it cost, if known."""
        pricing = None
        if used is not None:
            pricing = self.catalogue.find(reserved.model, reserved.provider, service=course.service)
        used, without = used or TokenUse(), course.without
        usd = None if pricing is None else sum(map(pricing.cost, course.rounds or (used,)))
        instead = usd if pricing is None or without is None else pricing.cost(without)
        entry = Spend(
            key_of(reserved, course),
            self._database.now(),
            reserved.purpose,
            self._model(reserved.model),
            usage_of(used, course, priced=usd is not None),
            usd or 0.0,
            layer=course.layer,
            busts=course.busts,
            delay_ms=round(course.delay_s * 1_000),
            without_usd=instead or 0.0,
        )
        self._counters.count(entry, used)
        with self._lock:
            self._held.pop(reserved.key, None)
            self._unwritten[entry.key] = (entry, reserved)
        self._enter_again()
        self._enter(entry, reserved)
        self._tell_ended()
        return usd

    def correct(self, fetched_by: str, used: TokenUse, course: Course, *, provider: str) -> None:
        """Enter what an answer took that was fetched by an id, in the place of what it might take.

        It is done once, after all that was entered before, and not waited for.
        """
        self.catalogue.load()
        self.catalogue.wait(LOAD_S)
        price = partial(self.catalogue.find, provider=provider, service=course.service, wait_s=0)
        correction = Correction(fetched_by, used, course, price)
        try:
            future = self._database.submit(partial(self._correct, correction=correction))
        except StoreError:
            self._correct_unwritten(correction)
            return
        future.add_done_callback(partial(self._corrected, correction))

    def release(self, reserved: Reserved) -> None:
        """Give back what was set aside for a request that took nothing."""
        with self._lock:
            self._held.pop(reserved.key, None)
        if reserved.kept:
            # What the store refuses to give back comes back by itself, after a while.
            with suppress(StoreError):
                self._database.submit(partial(spend.release, key=reserved.key))
        self._tell_ended()

    def begin(self) -> None:
        """Load the prices, and enter what processes had under way that were killed."""
        self.catalogue.load()
        with suppress(StoreError):
            self._database.submit(partial(settle_dead, now=self._database.now()))

    def close(self) -> None:
        """Try once more to enter what the store has refused."""
        self._enter_again(at_once=True)

    def day(self) -> DayBudget:
        """Return how the budget of today stands."""
        now = self._database.now()
        begun = midnight(now)
        with self._database.read() as db:
            spent = spend.whole(db, since=begun, until=begun + _DAY)
            reserved = spend.whole_reserved(db)
        self._learn(begun, spent)
        with self._lock:
            spent += sum(entry.usd for entry, _ in self._unwritten.values() if entry.at >= begun)
            reserved += self._held_usd(now, kept=False)
        return DayBudget(self._allowed(), spent, reserved, begun + _DAY)

    def pressure(self, *, at_hand: bool = False) -> SpendPressure:
        """Return what the budget asks of the next request; looked up every few seconds.

        What is `at_hand` is not looked up: whoever sets money aside has looked.
        """
        budget_usd = self._allowed()
        if budget_usd is None:
            return SpendPressure()
        now = self._database.now()
        known = self._pressing.find(now, budget_usd)
        if known is None and not at_hand:
            with suppress(StoreError), self._database.read() as db:
                known = self._pressing.learn(now, look(db, now, budget_usd))
        return known or self._pressing.find(now, budget_usd, AT_HAND) or SpendPressure()

    @property
    def budget_usd(self) -> float | None:
        """Return what a day may cost by now, None if anything."""
        return self._allowed()

    def counters(self) -> list[SpendCounter]:
        """Return what this process has counted, by model."""
        return self._counters.snapshot()

    def _model(self, name: str) -> str:
        return self._named(name[:_LONGEST])

    def _reserve_soon(self, reserved: Reserved, budget_usd: float, until: float) -> Reserved:
        """Set money aside, where need be of what a request leaves that is just being settled."""
        settled_by = min(until, time.monotonic() + self._settling_s)
        while True:
            ended = self._endings
            try:
                return self._reserve(reserved, budget_usd, until)
            except _SetAside:
                if not self._held or not self._wait_for_ending(ended, _left(settled_by)):
                    raise

    def _wait_for_ending(self, known: int, within_s: float) -> bool:
        """Wait until one more request has ended than is known; tell whether one has."""
        with self._ended:
            return self._ended.wait_for(lambda: self._endings != known, within_s)

    def _tell_ended(self) -> None:
        with self._ended:
            self._endings += 1
            self._ended.notify_all()

    def _reserve(self, reserved: Reserved, budget_usd: float, until: float) -> Reserved:
        if time.monotonic() < self._trouble_until:
            return self._hold(replace(reserved, kept=False), budget_usd)
        begun = midnight(reserved.at)
        with self._lock:
            held_usd = self._held_usd(reserved.at, kept=False)
            beside_usd = self._lost(begun) + sum(
                entry.usd
                for entry, whose in self._unwritten.values()
                if not whose.kept and entry.at >= begun
            )
        left_usd = budget_usd - beside_usd - held_usd
        watched_usd = budget_usd if self._pressing.find(reserved.at, budget_usd) is None else None
        work = partial(_set_aside, reserved=reserved, left_usd=left_usd, watched_usd=watched_usd)
        future: Future[_Told] | None = None
        try:
            future = self._database.submit(work)
            told = future.result(min(self._patience_s, _left(until)))
        except (StoreError, TimeoutError):
            self._trouble_until = time.monotonic() + self._trouble_s
            # One that has begun may still be set aside there, and is given back as if it were.
            kept = future is not None and not future.done() and not future.cancel()
            return self._hold(replace(reserved, kept=kept), budget_usd)
        self._learn(begun, told.spent_usd)
        if told.pace is not None:
            self._pressing.learn(reserved.at, told.pace)
        if not told.granted:
            raise _spent(budget_usd, reserved.at, told.spent_usd + beside_usd)
        with self._lock:
            self._held[reserved.key] = reserved
        return reserved

    def _hold(self, reserved: Reserved, budget_usd: float) -> Reserved:
        """Set money aside in this process alone, on top of what it knows to be spent."""
        begun = midnight(reserved.at)
        with self._lock:
            known = self._known_usd if self._day == begun else 0.0
            settled = sum(entry.usd for entry, _ in self._unwritten.values() if entry.at >= begun)
            used = known + settled + self._lost(begun)
            held = self._held_usd(reserved.at) + self._held_usd(reserved.at, kept=False)
            if used + held >= budget_usd:
                raise _spent(budget_usd, reserved.at, used)
            self._held[reserved.key] = reserved
        return reserved

    def _held_usd(self, now: datetime, *, kept: bool = True) -> float:
        """Return what is set aside for requests under way, those that the store holds or not."""
        since = now - HELD_FOR
        for key in [key for key, one in self._held.items() if one.at < since]:
            del self._held[key]
        return sum(one.usd or 0.0 for one in self._held.values() if one.kept is kept)

    def _lost(self, begun: datetime) -> float:
        return self._lost_usd if self._lost_on == begun else 0.0

    def _enter(self, entry: Spend, reserved: Reserved) -> None:
        patient = self._allowed() is None
        try:
            future = self._database.submit(
                partial(self._write, entry=entry, reserved=reserved), patient=patient
            )
        except StoreError:
            self._put_off(entry.key)
            return
        future.add_done_callback(partial(self._entered, entry))

    def _write(self, db: Connection, entry: Spend, reserved: Reserved) -> None:
        """Write an entry as it is by now: its answer may have been fetched while it waited."""
        with self._lock:
            latest, _ = self._unwritten.get(entry.key, (entry, reserved))
        enter(db, latest, reserved)

    def _entered(self, entry: Spend, future: Future[None]) -> None:
        if future.cancelled() or future.exception() is not None:
            self._put_off(entry.key)
            return
        with self._lock:
            latest, _ = self._unwritten.pop(entry.key, (entry, None))
            if self._day == midnight(latest.at):
                self._known_usd += latest.usd

    def _correct(self, db: Connection, correction: Correction) -> Corrected | None:
        """Correct an entry where it is: in the store, or among those that wait for it."""
        told = correction.write(db)
        if told is None:
            self._correct_unwritten(correction)
        return told

    def _correct_unwritten(self, correction: Correction) -> None:
        with self._lock:
            entry = correction.find(one for one, _ in self._unwritten.values())
            if entry is None:
                return
            told = correction.applied(entry)
            self._unwritten[entry.key] = (told.entry, self._unwritten[entry.key][1])
        self._counters.correct(told.entry, told.used)

    def _corrected(self, correction: Correction, future: Future[Corrected | None]) -> None:
        if future.cancelled() or future.exception() is not None:
            # An entry that is in the store keeps its estimate until it is fetched again.
            self._correct_unwritten(correction)
            return
        told = future.result()
        if told is None:
            return
        self._counters.correct(told.entry, told.used)
        with self._lock:
            if self._day == midnight(told.entry.at):
                self._known_usd += told.entry.usd - told.before_usd

    def _put_off(self, key: str) -> None:
        with self._lock:
            if len(self._unwritten) > self._most_unwritten:
                entry, _ = self._unwritten.pop(key)
                begun = midnight(entry.at)
                self._lost_on, self._lost_usd = begun, self._lost(begun) + entry.usd
            else:
                self._failed.add(key)

    def _enter_again(self, *, at_once: bool = False) -> None:
        """Try some of the entries that the store refused, once in a while; `at_once` all."""
        if not self._failed:
            return
        with self._lock:
            if time.monotonic() < self._again_at and not at_once:
                return
            self._again_at = time.monotonic() + AGAIN_S
            count = len(self._failed) if at_once else min(len(self._failed), _AT_ONCE)
            again = [self._unwritten[self._failed.pop()] for _ in range(count)]
        for entry, reserved in again:
            self._enter(entry, reserved)

    def _learn(self, begun: datetime, spent_usd: float) -> None:
        with self._lock:
            if self._day != begun:
                self._day, self._known_usd = begun, 0.0
            self._known_usd = max(self._known_usd, spent_usd)


class _SetAside(BudgetSpent):
    """Nothing is left, but not all of it is spent."""


class _Told(NamedTuple):
    """What the store says to a request: whether there is money for it, and what was spent."""

    granted: bool
    spent_usd: float
    pace: Pace | None = None
    """How the day's money goes, if that was asked."""


def _set_aside(
    db: Connection, reserved: Reserved, left_usd: float, watched_usd: float | None
) -> _Told:
    settle_dead(db, reserved.at)
    begun = midnight(reserved.at)
    spent_usd = spend.whole(db, since=begun, until=begun + _DAY)
    if spent_usd + spend.whole_reserved(db) >= left_usd:
        return _Told(granted=False, spent_usd=spent_usd)
    pace = None if watched_usd is None else look(db, reserved.at, watched_usd)
    held = spend.Holding(
        reserved.key,
        reserved.at,
        reserved.purpose,
        reserved.usd or 0.0,
        this_process(),
        reserved.model[:_LONGEST],
        reserved.prompt_usd,
    )
    spend.reserve(db, held)
    return _Told(granted=True, spent_usd=spent_usd, pace=pace)


def _left(until: float) -> float:
    """Return how long it is until a moment of the monotonic clock."""
    return max(0.0, until - time.monotonic())


def _spent(budget_usd: float, now: datetime, used_usd: float) -> BudgetSpent:
    if not budget_usd:
        return BudgetSpent("The budget of a day is $0.00: only what is free passes.", hint=_MORE)
    told = dollars(budget_usd)
    if used_usd >= budget_usd:
        msg = f"Today {dollars(used_usd)} of {told} are spent."
        hint = f"It goes on at 00:00 UTC. {_MORE}"
        return BudgetSpent(msg, hint=hint, until=midnight(now) + _DAY)
    msg = f"What is left of today's {told} is set aside for requests under way."
    return _SetAside(msg, hint="Come again shortly.", until=now + timedelta(seconds=LATER_S))
