"""News: what has changed, elsewhere, of the memory that a running session was told."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lore import clock
from lore.records import UNASKED_TRUST, Fragment
from lore.store import fragments, injections, items
from lore.store import standing as instructions
from lore.store.db import Connection
from lore.store.standing import Standing
from lore.text import digests

_MOST_NEW = 5
"""Instructions that one prompt is told of; the next one is told of more."""

_MOST_DECIDED, _LOOKED_AT = 3, 50
"""Decisions that one prompt is told of, so that half of its note is left for what concerns it; and
among how many they are looked for: those of the session itself stand between."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that a session is told: a number, an id, and the words that hold now."""

    n: int
    id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class News:
    """What a session should know; `gone` are what no longer holds, each with what does, if any."""

    new: tuple[Piece, ...] = ()
    decided: tuple[Piece, ...] = ()
    changed: tuple[Piece, ...] = ()
    gone: tuple[tuple[Piece, Piece | None], ...] = ()


def find(
    db: Connection,
    session: str,
    *,
    project_n: int,
    without: Sequence[str],
    since: datetime | None,
) -> News:
    """Return what a session was not told of yet.

    Instructions and decisions are new if they are from after `since`, and not from the sessions
    `without`.
    """
    stale = injections.outdated(db, session)
    known = fragments.by_number(db, [*stale.changed, *stale.gone])
    heirs = _heirs(db, [known[n] for n in stale.gone if n in known])
    return News(
        tuple(_new(db, session, project_n, without, since)) if since else (),
        tuple(_decided(db, session, project_n, without, since, heirs)) if since else (),
        tuple(_piece(n, known[n]) for n in stale.changed if _is_trusted(known.get(n))),
        tuple(
            (_piece(n, known[n]), heirs.get(known[n].superseded_by or ""))
            for n in stale.gone
            if n in known
        ),
    )


def _heirs(db: Connection, gone: Iterable[Fragment]) -> dict[str, Piece]:
    """Return by id what took the place of fragments."""
    ns = items.numbers_of(db, [one.superseded_by for one in gone if one.superseded_by])
    found = fragments.by_number(db, list(ns.values()))
    return {one.id: _piece(n, one) for n, one in found.items() if _is_trusted(one)}


def _new(
    db: Connection, session: str, project_n: int, without: Sequence[str], since: datetime
) -> Iterable[Piece]:
    at = clock.to_us(since)
    if not instructions.any_since(db, at):
        return
    had = injections.of_session(db, session).items
    found = [
        one
        for one in instructions.newest(db, project_n)
        if one.created_at > at and one.item_n not in had and one.session_id not in without
    ][:_MOST_NEW]
    ids = items.ids_of(db, [one.item_n for one in found])
    for one in found:
        if _may_tell(one):
            yield Piece(one.item_n, ids[one.item_n], one.text, clock.from_us(one.created_at))


def _decided(
    db: Connection,
    session: str,
    project_n: int,
    without: Sequence[str],
    since: datetime,
    heirs: Container[str],
) -> list[Piece]:
    """Return what was decided; `heirs` are told with what they took the place of."""
    ns = fragments.decided_since(db, clock.to_us(since), project_n=project_n)
    if not ns:
        return []
    had = injections.of_session(db, session)
    ns = [n for n in ns if n not in had.items][:_LOOKED_AT]
    known = fragments.by_number(db, ns)
    fresh = [
        _piece(n, known[n])
        for n in ns
        if known[n].session_id not in without
        and known[n].id not in heirs
        and digests.of_words(known[n].content) not in had.digests
    ]
    return fresh[:_MOST_DECIDED]


def _may_tell(one: Standing) -> bool:
    return one.fragment_origin in (None, "user", "assistant")


def _is_trusted(one: Fragment | None) -> bool:
    return one is not None and one.trust >= UNASKED_TRUST


def _piece(n: int, one: Fragment) -> Piece:
    return Piece(n, one.id, one.content, one.updated_at)
