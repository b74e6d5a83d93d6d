"""The history of a fragment: what was said, what was made of it, and what became of that."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime

from lore.errors import InvalidInput
from lore.recall.reading import read
from lore.records import Fragment, Happening, Reading
from lore.store import actions, fragments, items, loading, messages, retrievals, steps
from lore.store.db import Connection
from lore.text import lines, parts

_DONE = {
    "delete": "deleted",
    "link": "linked",
    "supersede": "superseded",
}
_STEPS = {"hidden": "pruned", "superseded": "superseded", "depth": "moved", "added": "derived"}


def tell(db: Connection, id_: str) -> list[Happening]:
    """Return what happened to a fragment, oldest first."""
    reading = read(db, id_)
    if reading.fragment is None:
        msg = f"'{id_}' is a {reading.type}; only fragments have a history."
        raise InvalidInput(msg, hint="'lore why ID' shows where it comes from.")
    n = items.resolve(db, reading.id).n
    happened = [
        *_said(db, reading.fragment),
        Happening(reading.created_at, "learned", f"from {reading.origin}"),
        *_changed(db, n),
        *_done(db, n),
        *_linked(db, reading),
        *_recalled(db, reading.id),
        *_read(reading.fragment),
    ]
    return sorted(happened, key=lambda one: one.at)


def _said(db: Connection, fragment: Fragment) -> Iterator[Happening]:
    numbers = loading.numbers_of(db, fragment.source_messages)
    for message in messages.by_number(db, numbers).values():
        said = lines.one_line(parts.searchable(message.parts), lines.SUMMARY_CHARS)
        yield Happening(message.created_at, "said", f"{message.role}: {said}")


def _changed(db: Connection, n: int) -> Iterator[Happening]:
    for version in fragments.versions(db, n):
        why = f" ({version.reason})" if version.reason else ""
        yield Happening(version.changed_at, "changed", f"it said: {version.summary}{why}")


def _done(db: Connection, n: int) -> Iterator[Happening]:
    for action in actions.of_fragment(db, n):
        if action.verb in _DONE:
            taken_back = ", taken back since" if action.undone else ""
            yield Happening(action.at, _DONE[action.verb], f"by hand{taken_back}")
    for at, verb in steps.of_fragment(db, n):
        if verb in _STEPS:
            yield Happening(at, _STEPS[verb], "by a cycle")


def _linked(db: Connection, reading: Reading) -> Iterator[Happening]:
    others = [e.target if e.source == reading.id else e.source for e in reading.edges]
    numbers = {id_: items.resolve(db, id_).n for id_ in others}
    known = fragments.by_number(db, list(numbers.values()))
    for edge, other in zip(reading.edges, others, strict=True):
        arrow = "→" if edge.source == reading.id else "←"
        title = known[numbers[other]].summary if numbers[other] in known else other
        yield Happening(edge.created_at, edge.kind, f"{arrow} {title}")


def _recalled(db: Connection, id_: str) -> Iterator[Happening]:
    days: dict[date, list[datetime]] = {}
    for entry in retrievals.newest(db, limit=retrievals.KEPT):
        if id_ in entry.hits:
            days.setdefault(entry.at.date(), []).append(entry.at)
    for times in days.values():
        told = "once that day" if len(times) == 1 else f"{len(times)} times that day"
        yield Happening(max(times), "recalled", told)


def _read(fragment: Fragment) -> Iterator[Happening]:
    if fragment.last_accessed is not None:
        times = fragment.access_count
        told = "once so far" if times == 1 else f"{times} times so far"
        yield Happening(fragment.last_accessed, "read", told)
