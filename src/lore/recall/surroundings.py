"""Surroundings: what was said and learned around a message or a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lore import clock
from lore.recall import time_spans
from lore.records import Fragment, Message, Occurrence
from lore.store import fragments, items, messages, sessions, surroundings
from lore.store.db import Connection
from lore.store.surroundings import Around
from lore.text import parts

_TEXT_CHARS = 2_000
"""Of each, so much: the rest is there to be read."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A moment, and the item that stands there if one was named."""

    at: datetime
    n: int | None = None
    session_n: int | None = None
    ordinal: int | None = None


def around(
    db: Connection,
    anchor: str,
    *,
    before: int,
    after: int,
    project_n: int | None,
    now: datetime,
) -> list[Occurrence]:
    """Return what happened around an item or a moment, oldest first.

    Around a message it is what happened in its session; around a moment, in all of them.
    """
    found = _anchor(db, anchor, now)
    earlier, later = (
        _nearest(
            db,
            Around(
                clock.to_us(found.at),
                is_later,
                limit + 1,
                found.session_n,
                found.ordinal,
                None if found.session_n is not None else project_n,
            ),
            found.n,
        )[:limit]
        for is_later, limit in ((False, before), (True, after))
    )
    middle = [replace(one, is_anchor=True) for one in _told(db, [found.n])] if found.n else []
    return [*reversed(earlier), *middle, *later]


def _anchor(db: Connection, anchor: str, now: datetime) -> _Anchor:
    if not items.looks_like_id(anchor) or _reads_as_time(anchor):
        return _Anchor(_moment(anchor, now))
    item = items.resolve(db, anchor)
    at = clock.from_us(item.created_at)
    if item.type != "message":
        return _Anchor(at, item.n if item.type == "fragment" else None, item.session_n)
    return _Anchor(at, item.n, item.session_n, messages.get(db, item.n).ordinal)


def _reads_as_time(text: str) -> bool:
    """Tell a date of digits and dashes from an id of them."""
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _moment(text: str, now: datetime) -> datetime:
    if _reads_as_time(text):
        moment = datetime.fromisoformat(text.strip())
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return now if text.strip().lower() == "now" else time_spans.since(text, now)


def _nearest(db: Connection, where: Around, anchor: int | None) -> list[Occurrence]:
    """Return messages and fragments on one side of a moment, nearest first."""
    ns = [*surroundings.messages_near(db, where), *surroundings.fragments_near(db, where)]
    told = _told(db, [n for n in ns if n != anchor])
    return sorted(told, key=lambda one: (one.at, one.id), reverse=not where.later)


def _told(db: Connection, ns: Sequence[int]) -> list[Occurrence]:
    said = [_said(message) for message in messages.by_number(db, ns).values()]
    learned = [_learned(fragment) for fragment in fragments.by_number(db, ns).values()]
    titles = {
        id_: sessions.get(db, sessions.get_number(db, id_)).title
        for id_ in {one.session_id for one in (*said, *learned) if one.session_id}
    }
    return [replace(one, session=titles.get(one.session_id, "")) for one in (*said, *learned)]


def _said(message: Message) -> Occurrence:
    spoken = [p for p in message.parts if parts.is_spoken(p) and p.kind != "reasoning"]
    return Occurrence(
        id=message.id,
        type="message",
        at=message.created_at,
        what=message.speaker or message.role,
        text=parts.readable(spoken, brief=True)[:_TEXT_CHARS],
        origin=parts.lowest_origin(message.parts, message.origin),
        session_id=message.session_id,
    )


def _learned(fragment: Fragment) -> Occurrence:
    return Occurrence(
        id=fragment.id,
        type="fragment",
        at=fragment.created_at,
        what=fragment.kind,
        text=fragment.summary,
        origin=fragment.origin,
        session_id=fragment.session_id or "",
    )
