"""Weights: associative edges fade with the days, and those that have faded are dropped."""

from __future__ import annotations

from datetime import datetime

from lore import clock
from lore.store import cycles, steps
from lore.store.sqlite import Connection
from lore.store.steps import Step

_LN_DAILY = -0.05129329438755058
"""ln 0.95: an edge keeps 95 % of its weight a day."""

LEAST_WEIGHT = 0.15

MARK = "weights"


def _days(since: str, until: str) -> str:
    """Return the expression for the days in which an edge faded between two moments."""
    begun = f"(CASE WHEN created_at > {since} THEN created_at ELSE {since} END)"
    return f"((CASE WHEN {until} > {begun} THEN {until} - {begun} ELSE 0 END) / 8.64e10)"


def fade(db: Connection, cycle_n: int, *, now: datetime) -> tuple[int, int]:
    """Let associative edges fade since they last did, drop the faded; count both."""
    last, until = cycles.find_mark(db, MARK), clock.to_us(now)
    if until <= last:
        return 0, 0
    factor = f"exp({_LN_DAILY} * {_days(':since', ':until')})"
    faded = db.run(
        f"UPDATE edges SET weight = weight * {factor} WHERE kind = 'associative'",
        since=last,
        until=until,
    )
    steps.record(db, cycle_n, Step("decayed", value=float(until), at=last))
    db.run(
        "INSERT INTO steps (cycle_n, verb, fragment_n, other_n, kind, value, note, at)"
        " SELECT :cycle_n, 'edge_dropped', source_n, target_n, kind, weight, note, created_at"
        " FROM edges WHERE kind = 'associative' AND weight < :least",
        cycle_n=cycle_n,
        least=LEAST_WEIGHT,
    )
    dropped = db.run(
        "DELETE FROM edges WHERE kind = 'associative' AND weight < :least", least=LEAST_WEIGHT
    )
    cycles.set_mark(db, MARK, until)
    return faded, dropped


def take_back(db: Connection, step: Step, _now: datetime) -> bool:
    """Give associative edges the weight back that they lost in one fading."""
    last, until = step.at or 0, int(step.value or 0)
    former = f"weight / exp({_LN_DAILY} * {_days(':since', ':until')})"
    db.run(
        f"UPDATE edges SET weight = CASE WHEN {former} > 1 THEN 1.0 ELSE {former} END"
        " WHERE kind = 'associative'",
        since=last,
        until=until,
    )
    if cycles.find_mark(db, MARK) == until:
        cycles.set_mark(db, MARK, last)
    return True
