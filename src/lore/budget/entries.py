"""Ledger entries: their keys, their usage fields, and corrections of deferred responses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from lore.errors import InvalidInput, NotFound
from lore.records import ModelPrice, RequestHold, RequestOutcome, Spend, TokenUse
from lore.store import project_rows, sessions, spend

if TYPE_CHECKING:
    from lore.llm.chat import Usage
    from lore.store.database import Connection


_KEY_BYTES = 16
"""Size of a key: entries are found by it alone, whatever provider answered."""


def entry_key(hold: RequestHold, outcome: RequestOutcome) -> str:
    """Return the key of an entry; one with a deferred response starts with the response's id.

    The same id twice makes two entries, as the format of ids is up to the provider.
    """
    awaited = f"{deferred_key(outcome.fetched_by)}-" if outcome.fetched_by else ""
    return f"{awaited}{hold.key}"


def deferred_key(fetched_by: str) -> str:
    """Return the start of the keys of a deferred response; its id may be any text."""
    encoded = fetched_by.encode(errors="surrogatepass")
    return f"fetched-{hashlib.blake2b(encoded, digest_size=_KEY_BYTES).hexdigest()}"


def usage_fields(
    used: TokenUse | Usage, outcome: RequestOutcome, *, priced: bool
) -> dict[str, int]:
    """Return the usage as stored in the ledger: `input` is the whole prompt; flags follow."""
    fields = {
        "input": used.input_tokens,
        "output": used.output_tokens,
        "cache_read": used.cache_read_tokens,
        "cache_write": used.cache_write_tokens,
    }
    if isinstance(used, TokenUse) and used.cache_write_1h_tokens:
        fields["cache_write_1h"] = used.cache_write_1h_tokens
    flags = {
        spend.UNPRICED: not priced,
        spend.ESTIMATED: outcome.estimated,
        spend.AWAITED: bool(outcome.fetched_by),
    }
    return fields | {name: 1 for name, is_set in flags.items() if is_set}


def write_entry(db: Connection, entry: Spend, hold: RequestHold) -> None:
    """Write the entry of a call, and release its reservation."""
    spend.remove_reservation(db, hold.key)
    session_n = _find_session(db, hold.cost.session)
    project_n = _find_project(db, hold.cost.project)
    if session_n is not None and project_n is None:
        project_n = sessions.project_of_session(db, session_n)
    spend.add(db, entry, session_n=session_n, project_n=project_n)


def _find_session(db: Connection, name: str) -> int | None:
    try:
        return sessions.get_session_number(db, name) if name else None
    except (InvalidInput, NotFound):
        return None


def _find_project(db: Connection, name: str) -> int | None:
    try:
        return project_rows.find_project(db, name) if name else None
    except InvalidInput:
        return None


class AppliedCorrection(NamedTuple):
    """A corrected entry, the usage of its response, and its former cost."""

    entry: Spend
    used: TokenUse
    before_usd: float


@dataclass(frozen=True, slots=True)
class Correction:
    """The usage of a deferred response, for the entry that awaits it."""

    fetched_by: str
    used: TokenUse
    outcome: RequestOutcome
    price: Callable[[str], ModelPrice | None]

    def applied(self, entered: Spend) -> AppliedCorrection:
        """Return an entry with the actual usage.

        If that is an estimate, the entry keeps its input tokens.
        """
        used = self.used
        if self.outcome.estimated:
            before = TokenUse(*spend.token_classes(entered.usage))
            used = replace(before, output_tokens=used.output_tokens)
        pricing = self.price(entered.model)
        usd = 0.0 if pricing is None else pricing.cost(used)
        usage = usage_fields(used, self.outcome, priced=pricing is not None)
        entry = replace(entered, usage=usage, usd=usd, without_usd=usd)
        return AppliedCorrection(entry, used, entered.usd)

    def write(self, db: Connection) -> AppliedCorrection | None:
        """Correct the entry in the store once; return None if no entry awaits the response."""
        entered = spend.find_awaited(db, deferred_key(self.fetched_by))
        if entered is None:
            return None
        corrected = self.applied(entered)
        spend.correct_entry(db, corrected.entry)
        return corrected

    def find(self, entries: Iterable[Spend]) -> Spend | None:
        """Return the first entry that awaits the response."""
        key = f"{deferred_key(self.fetched_by)}-"
        awaiting = (one for one in entries if spend.AWAITED in one.usage)
        return next((one for one in awaiting if one.key.startswith(key)), None)
