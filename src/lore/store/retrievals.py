"""The retrieval log: what was asked, and what was given."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import orjson

from lore import clock
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection

KEPT = 10_000
"""Older entries are dropped."""


class Retrieval(NamedTuple):
    """One question with the ids that answered it."""

    at: datetime
    verb: str
    query: str
    hits: tuple[str, ...]
    took_ms: float


def log(db: Connection, entry: Retrieval) -> None:
    """Write down one retrieval."""
    n = db.value(
        "INSERT INTO retrievals (at, verb, query, hits, took_ms)"
        " VALUES (:at, :verb, :query, :hits, :took_ms) RETURNING n",
        at=clock.to_us(entry.at),
        verb=entry.verb,
        query=entry.query[:2_000],
        hits=orjson.dumps(list(entry.hits)).decode(),
        took_ms=entry.took_ms,
    )
    if n % 500 == 0:
        db.run("DELETE FROM retrievals WHERE n <= :n", n=n - KEPT)


def newest(db: Connection, *, limit: int = 20) -> list[Retrieval]:
    """Return the latest retrievals, newest first."""
    rows = db.rows(
        "SELECT at, verb, query, hits, took_ms FROM retrievals ORDER BY n DESC LIMIT :limit",
        limit=limit,
    )
    return [
        Retrieval(moment(at), verb, query, tuple(unpack_json(hits)), took_ms)
        for at, verb, query, hits, took_ms in rows
    ]
