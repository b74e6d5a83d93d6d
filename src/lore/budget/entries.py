"""Entries: how the ledger writes down what a request took, and finds it where that comes later."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from lore.budget.reporting import tokens_of
from lore.errors import InvalidInput, NotFound
from lore.records.dialogues import TokenUse
from lore.store import sessions, spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lore.budget.catalogue import Pricing
    from lore.records import Course, Reserved, Spend
    from lore.store.db import Connection

_BYTES = 16
"""Of a key: entries are found by it alone, whoever wrote the answer."""


class Corrected(NamedTuple):
    """An entry whose answer was fetched, what it took, and how it stood before."""

    entry: Spend
    used: TokenUse
    before_usd: float


def key_of(reserved: Reserved, course: Course) -> str:
    """Return the key of an entry: one whose answer is fetched later is found by the id of that.

    An id that comes twice makes two entries, for nobody knows how a provider makes them.
    """
    awaited = f"{fetched_key(course.fetched_by)}-" if course.fetched_by else ""
    return f"{awaited}{reserved.key}"


def fetched_key(fetched_by: str) -> str:
    """Return how keys begin of what is fetched by an id, which may be of any length and sort."""
    told = fetched_by.encode(errors="surrogatepass")
    return f"fetched-{hashlib.blake2b(told, digest_size=_BYTES).hexdigest()}"


def usage_of(used: TokenUse, course: Course, *, priced: bool) -> dict[str, int]:
    """Return tokens as the ledger names them, `input` is the whole prompt; and what they are."""
    named = {
        "input": used.input_tokens,
        "output": used.output_tokens,
        "cache_read": used.cache_read_tokens,
        "cache_write": used.cache_write_tokens,
    }
    if used.cache_write_1h_tokens:
        named["cache_write_1h"] = used.cache_write_1h_tokens
    named |= {} if priced else {spend.UNPRICED: 1}
    named |= {spend.ESTIMATED: 1} if course.estimated else {}
    return named | ({spend.AWAITED: 1} if course.fetched_by else {})


@dataclass(frozen=True, slots=True)
class Correction:
    """What an answer took that was fetched by an id, for the entry that awaits it."""

    fetched_by: str
    used: TokenUse
    course: Course
    price: Callable[[str], Pricing | None]

    def applied(self, entered: Spend) -> Corrected:
        """Return what an entry is by now.

        Of one that is estimated, the prompt is as long as it was taken to be.
        """
        used = self.used
        if self.course.estimated:
            before = TokenUse(*tokens_of(entered.usage))
            used = replace(before, output_tokens=used.output_tokens)
        pricing = self.price(entered.model)
        usd = 0.0 if pricing is None else pricing.cost(used)
        usage = usage_of(used, self.course, priced=pricing is not None)
        entry = replace(entered, usage=usage, usd=usd, without_usd=usd)
        return Corrected(entry, used, entered.usd)

    def write(self, db: Connection) -> Corrected | None:
        """Correct an entry of the store, once; None where none is awaited there."""
        entered = spend.find_awaited(db, fetched_key(self.fetched_by))
        if entered is None:
            return None
        told = self.applied(entered)
        spend.correct(db, told.entry)
        return told

    def find(self, entries: Iterable[Spend]) -> Spend | None:
        """Return the first entry that awaits it."""
        key = f"{fetched_key(self.fetched_by)}-"
        awaiting = (one for one in entries if spend.AWAITED in one.usage)
        return next((one for one in awaiting if one.key.startswith(key)), None)


def enter(db: Connection, entry: Spend, reserved: Reserved) -> None:
    """Write down what a request took, and give back what was set aside for it."""
    spend.release(db, reserved.key)
    session_n = _find_session(db, reserved.session)
    project_n = _find_project(db, reserved.project)
    if session_n is not None and project_n is None:
        project_n = sessions.project_number(db, session_n)
    spend.add(db, entry, session_n=session_n, project_n=project_n)


def _find_session(db: Connection, name: str) -> int | None:
    """Return the session of a name; money is entered whether or not there is one."""
    try:
        return sessions.get_number(db, name) if name else None
    except (InvalidInput, NotFound):
        return None


def _find_project(db: Connection, name: str) -> int | None:
    try:
        return sessions.find_project(db, name) if name else None
    except InvalidInput:
        return None
