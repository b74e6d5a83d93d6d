"""Entries: how the ledger writes down what a request took, and finds it where that comes later."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lore.budget.reporting import tokens_of
from lore.records.dialogues import TokenUse
from lore.store import spend

if TYPE_CHECKING:
    from collections.abc import Callable

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


def corrected(
    entered: Spend, used: TokenUse, course: Course, price: Callable[[str], Pricing | None]
) -> Corrected:
    """Return what an entry is once its answer was fetched.

    Of one that is estimated, the prompt is as long as it was taken to be.
    """
    if course.estimated:
        before = TokenUse(*tokens_of(entered.usage))
        used = replace(before, output_tokens=used.output_tokens)
    pricing = price(entered.model)
    usd = 0.0 if pricing is None else pricing.cost(used)
    usage = usage_of(used, course, priced=pricing is not None)
    entry = replace(entered, usage=usage, usd=usd, without_usd=usd)
    return Corrected(entry, used, entered.usd)


def correct(db: Connection, key: str, change: Callable[[Spend], Corrected]) -> Corrected | None:
    """Say what an answer took that was fetched, once; None where none is awaited under the key."""
    entered = spend.find_awaited(db, key)
    if entered is None:
        return None
    told = change(entered)
    spend.correct(db, told.entry)
    return told


def is_awaited(entry: Spend, key: str) -> bool:
    """Tell whether the answer of an entry is still to be fetched under a key."""
    return spend.AWAITED in entry.usage and entry.key.startswith(f"{key}-")
