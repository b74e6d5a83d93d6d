"""Lifetimes: fragments that a cycle made or hid, and how they go or come back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lore import clock
from lore.store import changes, cycles, fragments, items, keywords, mentions
from lore.store.sqlite import Connection, among, numbers
from lore.store.steps import Step, Watch, unwatched


def learned(db: Connection, n: int) -> Step:
    """Return that a fragment is new, and on which messages it stands."""
    sources = db.value("SELECT source_messages FROM fragments WHERE n = :n", n=n)
    return Step("added", n, note=sources)


def unmake(db: Connection, step: Step, now: datetime) -> bool:
    """Remove what a cycle made, unless it was changed since, or something stands on it."""
    n = step.fragment_n or 0
    row = db.find("SELECT version, source_messages FROM fragments WHERE n = :n", n=n)
    if row is None or row[0] != 1 or (step.note and row[1] != step.note):
        return False
    if db.find(
        "SELECT 1 FROM edges WHERE source_n = :n AND kind IN ('hierarchical', 'supersedes')", n=n
    ):
        return False
    _remove(db, [n], now=now)
    return True


def _remove(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Remove what a cycle made, as if it had never been there; other machines are told."""
    ids = items.ids_of(db, ns)
    keywords.remove(db, ns, type="fragment")
    mentions.remove(db, ns)
    db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=numbers(ns))
    cycles.drop_lines(db, list(ids.values()))
    changes.bury(db, list(ids.values()), now)


def hide(db: Connection, n: int, *, now: datetime, watch: Watch = unwatched) -> None:
    """Hide a fragment until it is removed for good."""
    watch(db, Step("hidden", n, at=clock.to_us(now)))
    fragments.set_deleted(db, n, now, now=now)


def show(db: Connection, step: Step, now: datetime) -> bool:
    """Let what was hidden be seen again, unless someone else hid it since."""
    n = step.fragment_n or 0
    if db.value("SELECT deleted_at FROM fragments WHERE n = :n", n=n) != step.at:
        return False
    fragments.set_deleted(db, n, None, now=now)
    return True
