"""Review: patterns, warnings and skills that nobody used, or that were followed by failure."""

from __future__ import annotations

from datetime import datetime, timedelta

from lore.records import Fragment, ReviewEntry
from lore.store import items, task_memories
from lore.store.database import Connection

UNUSED = timedelta(days=60)
FAILURES = 2
"""From the specification."""


def find_reviewable(db: Connection, *, project_n: int | None, now: datetime) -> list[ReviewEntry]:
    """Return what a person should look at, the harmful first, then the longest unused."""
    known = task_memories.lessons(db, project_n=project_n)
    numbers = items.numbers_of(db, [one.id for one in known])
    failures = task_memories.failures_after_use(db)
    harmful = [
        ReviewEntry(
            one, f"used and followed by failure {count} times", count, _unused_days(one, now)
        )
        for one in known
        if (count := failures.get(numbers[one.id], 0)) >= FAILURES
    ]
    seen = {entry.fragment.id for entry in harmful}
    unused = [
        ReviewEntry(one, f"not used for {days} days", 0, days)
        for one in known
        if one.id not in seen and (days := _unused_days(one, now)) >= UNUSED.days
    ]
    harmful.sort(key=lambda entry: (-entry.failures, entry.fragment.id))
    unused.sort(key=lambda entry: (-entry.unused_days, entry.fragment.id))
    return [*harmful, *unused]


def _unused_days(fragment: Fragment, now: datetime) -> int:
    """Return the days since a memory was last used, or stored."""
    last = max(fragment.created_at, fragment.last_reinforced)
    said_at = fragment.payload.get("last_used")
    if isinstance(said_at, str):
        try:
            used = datetime.fromisoformat(said_at)
        except ValueError:
            used = last
        last = max(last, used if used.tzinfo else used.replace(tzinfo=last.tzinfo))
    return (now - last).days
