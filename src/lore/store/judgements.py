"""Judgements: what consolidation has decided of two fragments, so that it is decided once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from lore import clock
from lore.store.sqlite import Connection, among, numbers

Verb = Literal["merge", "judge", "ask", "reflect", "prune"]
"""What was decided; of a pair that was asked about in vain, the verdict is how often."""


class Judgement(NamedTuple):
    """One decision on a pair of fragments, and the versions of them that it was made on."""

    a_n: int
    b_n: int
    verb: Verb
    verdict: str
    a_version: int = 0
    b_version: int = 0


def put(db: Connection, judged: Iterable[Judgement], *, now: datetime) -> None:
    """Remember decisions, in the place of former ones on the same pairs."""
    at = clock.to_us(now)
    db.run_many(
        "INSERT INTO judgements (a_n, b_n, verb, verdict, a_version, b_version, at)"
        " VALUES (:a_n, :b_n, :verb, :verdict, :a_version, :b_version, :at)"
        " ON CONFLICT (a_n, b_n, verb) DO UPDATE SET verdict = excluded.verdict,"
        " a_version = excluded.a_version, b_version = excluded.b_version, at = excluded.at",
        [{**one._asdict(), "at": at} for one in judged],
    )


def of(db: Connection, ns: Sequence[int], verb: Verb) -> dict[tuple[int, int], Judgement]:
    """Return the decisions on pairs whose first is one of these, by pair."""
    rows = db.rows(
        "SELECT a_n, b_n, verb, verdict, a_version, b_version FROM judgements"
        f" WHERE {among('a_n', 'ns')} AND verb = :verb",
        ns=numbers(ns),
        verb=verb,
    )
    return {(row[0], row[1]): Judgement(*row) for row in rows}


def groups(db: Connection, verb: Verb) -> dict[int, set[int]]:
    """Return for each first one all that were decided on with it."""
    found: dict[int, set[int]] = {}
    for a_n, b_n in db.rows("SELECT a_n, b_n FROM judgements WHERE verb = :verb", verb=verb):
        found.setdefault(a_n, set()).add(b_n)
    return found
