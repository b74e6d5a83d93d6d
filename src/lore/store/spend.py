"""The spend ledger: what model calls cost, and reservations for calls under way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import orjson

from lore import clock
from lore.lazy_dataclass import dataclass
from lore.records import Spend
from lore.store.codec import unpack_json, unpack_time
from lore.store.sql_connection import Connection, Row

UNPRICED = "unpriced"
"""Key in the usage of an entry whose price is unknown."""

ESTIMATED = "estimated"
"""Key in the usage of an entry whose token counts the provider did not report."""

AWAITED = "awaited"
"""Key in the usage of an entry to be corrected once its response is fetched."""

BACKGROUND = "background"
"""Prefix of the purposes of background work."""

_PAGE = 10_000
_LAST = 2**62
"""A number after every entry."""

REQUEST = "request"
"""Prefix of the purposes of an agent's requests."""


def add(
    db: Connection, entry: Spend, *, session_n: int | None = None, project_n: int | None = None
) -> bool:
    """Add an entry unless its key exists; return whether it was new."""
    return bool(
        db.run(
            "INSERT INTO spend (key, at, session_n, project_n, purpose, model, usage, usd,"
            " layer, busts, delay_ms, without_usd)"
            " VALUES (:key, :at, :session_n, :project_n, :purpose, :model, :usage, :usd,"
            " :layer, :busts, :delay_ms, :without_usd)"
            " ON CONFLICT (key) DO NOTHING",
            key=entry.key,
            at=clock.to_us(entry.at),
            session_n=session_n,
            project_n=project_n,
            purpose=entry.purpose,
            model=entry.model,
            usage=orjson.dumps(entry.usage).decode(),
            usd=entry.usd,
            layer=entry.layer,
            busts=int(entry.busts),
            delay_ms=entry.delay_ms,
            without_usd=entry.without_usd,
        )
    )


def find_awaited(db: Connection, key: str) -> Spend | None:
    """Return the first entry with this key prefix whose response is still to be fetched."""
    rows = db.rows(
        f"SELECT {ENTRY_COLUMNS} FROM {ENTRY_TABLES} WHERE e.key >= :first"
        " AND e.key < :last ORDER BY e.n",
        first=f"{key}-",
        last=f"{key}.",  # the character after '-'
    )
    return next((one for one in map(unpack_entry, rows) if AWAITED in one.usage), None)


def correct_entry(db: Connection, entry: Spend) -> None:
    """Replace the usage and cost of an entry."""
    db.run(
        "UPDATE spend SET usage = :usage, usd = :usd, without_usd = :without_usd WHERE key = :key",
        key=entry.key,
        usage=orjson.dumps(entry.usage).decode(),
        usd=entry.usd,
        without_usd=entry.without_usd,
    )


ENTRY_TABLES = (
    "spend e LEFT JOIN sessions s ON s.n = e.session_n LEFT JOIN projects p ON p.n = e.project_n"
)

ENTRY_COLUMNS = (
    "e.key, e.at, e.purpose, e.model, e.usage, e.usd, s.id, p.id,"
    " e.layer, e.busts, e.delay_ms, e.without_usd"
)
"""The columns that `unpack_entry` takes."""


def unpack_entry(row: Row) -> Spend:
    """Return an entry from its columns."""
    key, at, purpose, model, usage, usd, session, project, layer, busts, *rest = row
    usage_counts, rest_fields = unpack_json(usage), (session, project, layer, bool(busts), *rest)
    return Spend(key, unpack_time(at), purpose, model, usage_counts, usd, *rest_fields)


def token_classes(usage: dict[str, int]) -> tuple[int, int, int, int, int]:
    """Return the tokens of an entry: fresh, cache read, cache write, long cache write, output."""
    read, written = usage.get("cache_read", 0), usage.get("cache_write", 0)
    long = usage.get("cache_write_1h", 0)
    fresh = max(0, usage.get("input", 0) - read - written - long)
    return fresh, read, written, long, usage.get("output", 0)


def entries_since(db: Connection, moment_: datetime) -> Iterator[Spend]:
    """Yield the entries since a moment in pages, oldest first."""
    sql = (
        f"SELECT e.at, e.n, {ENTRY_COLUMNS} FROM {ENTRY_TABLES} WHERE (e.at, e.n) > (:at, :n)"
        " ORDER BY e.at, e.n LIMIT :page"
    )
    at, n = clock.to_us(moment_) - 1, _LAST
    while rows := db.rows(sql, at=at, n=n, page=_PAGE):
        yield from (unpack_entry(row[2:]) for row in rows)
        at, n = rows[-1][:2]


def total_spent(db: Connection, *, since: datetime, until: datetime) -> float:
    """Return the total spend between two moments.

    An entry dated ahead by a wrong clock counts on its own day.
    """
    return float(
        db.value(
            "SELECT COALESCE(SUM(usd), 0) FROM spend WHERE at >= :since AND at < :until",
            since=clock.to_us(since),
            until=clock.to_us(until),
        )
    )


def first_entry_at(db: Connection, *, since: datetime) -> datetime | None:
    """Return the time of the first entry since a moment, or None."""
    at = db.value("SELECT MIN(at) FROM spend WHERE at >= :since", since=clock.to_us(since))
    return None if at is None else unpack_time(at)


def total_reserved(db: Connection) -> float:
    """Return the sum of all reservations."""
    return float(db.value("SELECT COALESCE(SUM(usd), 0) FROM spend_reservations"))


def spent_on(db: Connection, purpose: str, *, since: datetime, until: datetime) -> float:
    """Return the spend on purposes with a prefix, between two moments."""
    return float(
        db.value(
            "SELECT COALESCE(SUM(usd), 0) FROM spend"
            " WHERE at >= :since AND at < :until"
            " AND substr(purpose, 1, length(:begin)) = :begin",
            since=clock.to_us(since),
            until=clock.to_us(until),
            begin=f"{purpose}:",
        )
    )


def count_unpriced(db: Connection, purpose: str, *, since: datetime) -> int:
    """Count the entries since a moment whose price is unknown."""
    return int(
        db.value(
            "SELECT COUNT(*) FROM spend WHERE at >= :since"
            " AND substr(purpose, 1, length(:begin)) = :begin"
            " AND usage LIKE :mark",
            since=clock.to_us(since),
            begin=f"{purpose}:",
            mark=f'%"{UNPRICED}"%',
        )
    )


COMMAND_MODEL = "-cli:"
"""Separates provider and model in the identity of an agent's command."""


def count_command_calls(db: Connection, *, since: datetime) -> int:
    """Count the background calls of agents' commands since a moment, with those under way."""
    counted = (
        "SELECT COUNT(*) FROM {table} WHERE at >= :since AND instr(model, :mark) > 0"
        " AND substr(purpose, 1, length(:begin)) = :begin"
    )
    values = {"since": clock.to_us(since), "mark": COMMAND_MODEL, "begin": f"{BACKGROUND}:"}
    return sum(
        int(db.value(counted.format(table=table), **values))
        for table in ("spend", "spend_reservations")
    )


@dataclass(frozen=True, slots=True)
class SpendReservation:
    """Money reserved for a call under way; `prompt_usd` is the prompt's part of it."""

    key: str
    at: datetime
    purpose: str
    usd: float
    process: str = ""
    model: str = ""
    prompt_usd: float = 0.0


def add_reservation(db: Connection, holding: SpendReservation) -> None:
    """Reserve money for a call."""
    db.run(
        "INSERT INTO spend_reservations (key, at, purpose, usd, process, model, prompt_usd)"
        " VALUES (:key, :at, :purpose, :usd, :process, :model, :prompt_usd)",
        key=holding.key,
        at=clock.to_us(holding.at),
        purpose=holding.purpose,
        usd=holding.usd,
        process=holding.process,
        model=holding.model,
        prompt_usd=holding.prompt_usd,
    )


def update_reservation(db: Connection, key: str, usd: float) -> None:
    """Replace the reserved amount of a call by its actual cost."""
    db.run(
        "UPDATE spend_reservations SET usd = :usd, prompt_usd = :usd WHERE key = :key",
        key=key,
        usd=usd,
    )


def remove_reservation(db: Connection, key: str) -> None:
    """Remove the reservation of a call."""
    db.run("DELETE FROM spend_reservations WHERE key = :key", key=key)


def reserved_for(db: Connection, purpose: str) -> float:
    """Return the sum reserved for purposes with a prefix."""
    return float(
        db.value(
            "SELECT COALESCE(SUM(usd), 0) FROM spend_reservations"
            " WHERE substr(purpose, 1, length(:begin)) = :begin",
            begin=f"{purpose}:",
        )
    )


def list_reservations(db: Connection) -> list[SpendReservation]:
    """Return all reservations."""
    rows = db.rows(
        "SELECT key, at, purpose, usd, process, model, prompt_usd FROM spend_reservations"
    )
    return [SpendReservation(key, unpack_time(at), *rest) for key, at, *rest in rows]
