"""Trusting: who speaks in items, and which of them may be put into a prompt unasked."""

from __future__ import annotations

from collections.abc import Sequence

from lore.records import TRUST, UNASKED_TRUST, Origin
from lore.store import messages
from lore.store.origins import TRUSTED_ORIGINS, TRUSTED_SQL
from lore.store.packing import may_mix, unpack_parts
from lore.store.sqlite import Connection, among, id_of, numbers
from lore.text.parts import lowest_origin


def lowest(db: Connection, origin: Origin, source_ns: Sequence[int]) -> Origin:
    """Return the least trusted of an origin and of all that speak in the messages."""
    said = messages.by_number(db, source_ns).values()
    voices = [origin, *(lowest_origin(m.parts, m.origin) for m in said)]
    return min(voices, key=TRUST.__getitem__)


def trusted(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return those of the items that may be put into a prompt unasked."""
    if not len(ns):
        return set()
    rows = db.rows(
        "SELECT i.n FROM items i LEFT JOIN messages m ON m.n = i.n"
        f" LEFT JOIN fragments f ON f.n = i.n WHERE {among('i.n', 'ns')}"
        f" AND coalesce(m.origin, 'assistant') IN ({TRUSTED_SQL})"
        f" AND coalesce(f.trust, {UNASKED_TRUST}) >= {UNASKED_TRUST}",
        ns=numbers(ns),
    )
    found = {row[0] for row in rows}
    return found - doubtful(db, sorted(found))


def doubtful(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return the messages in which someone else speaks too, and distillations of such."""
    if not len(ns):
        return set()
    mixed = db.rows(
        f"SELECT m.n, m.origin, m.parts FROM messages m WHERE {among('m.n', 'ns')}"
        f" AND {may_mix('m.parts')}",
        ns=numbers(ns),
    )
    found = {n for n, origin, parts in mixed if _is_low(origin, parts)}
    covered = db.rows(
        "SELECT d.n, m.origin, m.parts FROM distillations d"
        f" JOIN items a ON a.id = {id_of('d.from_message')}"
        f" JOIN items b ON b.id = {id_of('d.to_message')}"
        " JOIN messages first ON first.n = a.n JOIN messages last ON last.n = b.n"
        " JOIN messages m ON m.session_n = d.session_n"
        " AND m.ordinal BETWEEN first.ordinal AND last.ordinal"
        f" WHERE {among('d.n', 'ns')}"
        f" AND (m.origin NOT IN ({TRUSTED_SQL}) OR {may_mix('m.parts')})",
        ns=numbers(ns),
    )
    return found | {n for n, origin, parts in covered if _is_low(origin, parts)}


def _is_low(origin: str, packed: str) -> bool:
    if origin not in TRUSTED_ORIGINS:
        return True
    return lowest_origin(unpack_parts(packed), origin) not in TRUSTED_ORIGINS
