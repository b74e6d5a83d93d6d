"""Steps: what a cycle changed, one row each, with what is needed to take it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from lore.store.packing import moment
from lore.store.sqlite import Connection, among, numbers

Verb = Literal[
    "edge_added", "edge_dropped", "depth", "superseded", "hidden", "reworded", "added", "decayed",
    "confirmed", "counted", "strengthened",
]  # fmt: skip


class Step(NamedTuple):
    """One change: `value` is the former weight, depth or version, `at` the former moment."""

    verb: Verb
    fragment_n: int | None = None
    other_n: int | None = None
    kind: str = ""
    value: float | None = None
    note: str = ""
    at: int | None = None


_FIELDS = ", ".join(Step._fields)

Watch = Callable[[Connection, Step], None]
"""Told of every change inside its transaction, as the step that takes it back."""


def unwatched(_db: Connection, _step: Step) -> None:
    """Take no notice: what is done by hand is taken back by hand."""


def into(cycle_n: int) -> Watch:
    """Return who writes every change down as a step of a cycle."""
    return partial(_write_down, cycle_n)


def _write_down(cycle_n: int, db: Connection, step: Step) -> None:
    record(db, cycle_n, step)


def record(db: Connection, cycle_n: int, *steps: Step) -> None:
    """Write down what is changed now."""
    db.run_many(
        f"INSERT INTO steps (cycle_n, {_FIELDS}) VALUES (:cycle_n, :verb, :fragment_n, :other_n,"
        " :kind, :value, :note, :at)",
        [{**step._asdict(), "cycle_n": cycle_n} for step in steps],
    )


def of_cycle(db: Connection, cycle_n: int, verb: Verb | None = None) -> list[Step]:
    """Return what a cycle changed, last first."""
    rows = db.rows(
        f"SELECT {_FIELDS} FROM steps WHERE cycle_n = :cycle_n"
        " AND (:verb IS NULL OR verb = :verb) ORDER BY n DESC",
        cycle_n=cycle_n,
        verb=verb,
    )
    return [Step(*row) for row in rows]


def of_fragment(db: Connection, n: int) -> list[tuple[datetime, Verb]]:
    """Return when cycles changed a fragment, and how, as long as that can be taken back."""
    rows = db.rows(
        "SELECT c.started_at, s.verb FROM steps s JOIN cycles c ON c.n = s.cycle_n"
        " WHERE s.fragment_n = :n ORDER BY s.n",
        n=n,
    )
    return [(moment(at), verb) for at, verb in rows]


def drop(db: Connection, cycle_ns: Sequence[int]) -> None:
    """Drop the steps of cycles that were taken back, or cannot be any more."""
    db.run(f"DELETE FROM steps WHERE {among('cycle_n', 'ns')}", ns=numbers(cycle_ns))
