"""The spend ledger: what calls to models cost; entries outlive the sessions they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import orjson

from lore import clock
from lore.records import Spend
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection, Row

UNPRICED = "unpriced"
"""Stands in the usage of an entry whose price nobody knows."""

ESTIMATED = "estimated"
"""Stands in the usage of an entry whose tokens were not reported by the provider."""

AWAITED = "awaited"
"""Stands in the usage of an entry that is corrected once its answer is fetched."""

BACKGROUND = "background"
"""The word that purposes of background work begin with, before the question."""

_PAGE = 10_000
_LAST = 2**62
"""Comes after every number of an entry."""

REQUEST = "request"
"""The word that purposes of an agent's requests begin with, before what sort of one it was."""


def add(
    db: Connection, entry: Spend, *, session_n: int | None = None, project_n: int | None = None
) -> bool:
    """Enter what a call cost, once; tell whether it was new."""
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
    """Return the first entry whose answer is still to be fetched, of those whose key begins so."""
    rows = db.rows(
        f"SELECT {ENTRY} FROM {ENTRIES} WHERE e.key >= :first AND e.key < :last ORDER BY e.n",
        first=f"{key}-",
        last=f"{key}.",  # what comes after a dash
    )
    return next((one for one in map(entry_of, rows) if AWAITED in one.usage), None)


def correct(db: Connection, entry: Spend) -> None:
    """Say of an entry what it took and cost, in the place of what was said before."""
    db.run(
        "UPDATE spend SET usage = :usage, usd = :usd, without_usd = :without_usd WHERE key = :key",
        key=entry.key,
        usage=orjson.dumps(entry.usage).decode(),
        usd=entry.usd,
        without_usd=entry.without_usd,
    )


def newest(db: Connection, *, limit: int = 20) -> list[Spend]:
    """Return the latest entries, newest first."""
    rows = db.rows(
        f"SELECT {ENTRY} FROM {ENTRIES} ORDER BY e.at DESC, e.n DESC LIMIT :limit", limit=limit
    )
    return [entry_of(row) for row in rows]


ENTRIES = (
    "spend e LEFT JOIN sessions s ON s.n = e.session_n LEFT JOIN projects p ON p.n = e.project_n"
)

ENTRY = (
    "e.key, e.at, e.purpose, e.model, e.usage, e.usd, s.id, p.id,"
    " e.layer, e.busts, e.delay_ms, e.without_usd"
)
"""The columns that `entry_of` takes."""


def entry_of(row: Row) -> Spend:
    """Return an entry from its columns."""
    key, at, purpose, model, usage, usd, session, project, layer, busts, *rest = row
    told, named = unpack_json(usage), (session, project, layer, bool(busts), *rest)
    return Spend(key, moment(at), purpose, model, told, usd, *named)


def since(db: Connection, moment_: datetime) -> Iterator[Spend]:
    """Yield the entries since a moment, oldest first; there may be a year of them."""
    sql = (
        f"SELECT e.at, e.n, {ENTRY} FROM {ENTRIES} WHERE (e.at, e.n) > (:at, :n)"
        " ORDER BY e.at, e.n LIMIT :page"
    )
    at, n = clock.to_us(moment_) - 1, _LAST
    while rows := db.rows(sql, at=at, n=n, page=_PAGE):
        yield from (entry_of(row[2:]) for row in rows)
        at, n = rows[-1][:2]


def whole(db: Connection, *, since: datetime, until: datetime) -> float:
    """Return what was spent on everything from one moment to another.

    What a clock has entered that ran ahead counts on its own day, not on those before it.
    """
    return float(
        db.value(
            "SELECT COALESCE(SUM(usd), 0) FROM spend WHERE at >= :since AND at < :until",
            since=clock.to_us(since),
            until=clock.to_us(until),
        )
    )


def first_at(db: Connection, *, since: datetime) -> datetime | None:
    """Return when the first entry since a moment was made."""
    at = db.value("SELECT MIN(at) FROM spend WHERE at >= :since", since=clock.to_us(since))
    return None if at is None else moment(at)


def whole_reserved(db: Connection) -> float:
    """Return what is set aside for all calls."""
    return float(db.value("SELECT COALESCE(SUM(usd), 0) FROM spend_reservations"))


def total(db: Connection, purpose: str, *, since: datetime, until: datetime) -> float:
    """Return what was spent in a time on all purposes that begin with a word and a colon."""
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


def unpriced(db: Connection, purpose: str, *, since: datetime) -> int:
    """Return how many entries since a moment have no price that anybody knows."""
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


@dataclass(frozen=True, slots=True)
class Holding:
    """Money that is set aside for a call; `prompt_usd` of it for what is asked."""

    key: str
    at: datetime
    purpose: str
    usd: float
    process: str = ""
    model: str = ""
    prompt_usd: float = 0.0


def reserve(db: Connection, holding: Holding) -> None:
    """Set money aside for a call that is about to be made."""
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


def adjust(db: Connection, key: str, usd: float) -> None:
    """Set aside another amount for a call, which is what it took."""
    db.run(
        "UPDATE spend_reservations SET usd = :usd, prompt_usd = :usd WHERE key = :key",
        key=key,
        usd=usd,
    )


def release(db: Connection, key: str) -> None:
    """Give back what was set aside for a call."""
    db.run("DELETE FROM spend_reservations WHERE key = :key", key=key)


def reserved(db: Connection, purpose: str) -> float:
    """Return what is set aside for calls whose purposes begin with a word and a colon."""
    return float(
        db.value(
            "SELECT COALESCE(SUM(usd), 0) FROM spend_reservations"
            " WHERE substr(purpose, 1, length(:begin)) = :begin",
            begin=f"{purpose}:",
        )
    )


def holdings(db: Connection) -> list[Holding]:
    """Return all that is set aside."""
    rows = db.rows(
        "SELECT key, at, purpose, usd, process, model, prompt_usd FROM spend_reservations"
    )
    return [Holding(key, moment(at), *rest) for key, at, *rest in rows]
