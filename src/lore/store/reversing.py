"""Reversing: each step of a cycle is taken back in its own way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lore.store import (
    confirmations,
    lifetimes,
    overviews,
    strengths,
    superseding,
    trees,
    watched_edges,
    weights,
)
from lore.store.sqlite import Connection
from lore.store.steps import Step, Verb


def take_back(db: Connection, step: Step, *, now: datetime) -> bool:
    """Take one step back; False where something was changed since, which then stands."""
    return _WAYS[step.verb](db, step, now)


_WAYS: dict[Verb, Callable[[Connection, Step, datetime], bool]] = {
    "edge_added": watched_edges.rub_out,
    "edge_dropped": watched_edges.put_back,
    "depth": trees.move_back,
    "superseded": superseding.let_stand,
    "hidden": lifetimes.show,
    "reworded": overviews.say_as_before,
    "added": lifetimes.unmake,
    "decayed": weights.take_back,
    "confirmed": confirmations.doubt_again,
    "counted": confirmations.uncount,
    "strengthened": strengths.weaken,
}
