"""Injections: what was put into the prompts of a session unasked, and is not put there again.

A session is kept as a number made of its name: it is often not stored yet when it begins, and
nothing of its name is left here once it is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from lore import clock
from lore.store.sqlite import Connection
from lore.text import digests

KEPT_DAYS = 60
"""No session goes on for longer."""

_TIDIED_EVERY = 200


class Shown(NamedTuple):
    """What a session has been given: items, and digests of texts."""

    items: frozenset[int]
    digests: frozenset[int]


def add(db: Connection, session: str, shown: Sequence[tuple[int, int]], *, now: datetime) -> None:
    """Keep the items, each with the digest of its text, that a session was given."""
    name = digests.of_text(session)
    for item_n, digest in shown:
        n = db.value(
            "INSERT INTO injections (session, item_n, digest, at) SELECT :session, n, :digest, :at"
            " FROM items WHERE n = :item_n RETURNING n",
            session=name,
            item_n=item_n,
            digest=digest,
            at=clock.to_us(now),
        )
        if n is not None and n % _TIDIED_EVERY == 0:
            old = clock.to_us(now - timedelta(days=KEPT_DAYS))
            db.run("DELETE FROM injections WHERE at < :old", old=old)


def of_session(db: Connection, session: str) -> Shown:
    """Return what a session was given."""
    rows = db.rows(
        "SELECT item_n, digest FROM injections WHERE session = :session",
        session=digests.of_text(session),
    )
    return Shown(frozenset(row[0] for row in rows), frozenset(row[1] for row in rows))


class Outdated(NamedTuple):
    """Numbers of fragments that say something else by now, and of those that no longer hold."""

    changed: list[int]
    gone: list[int]


GONE = 0
"""In the place of a digest: a session was told that an item no longer holds."""


def outdated(db: Connection, session: str) -> Outdated:
    """Return what a session was given and does not know to have changed since."""
    name = digests.of_text(session)
    changed = db.rows(
        "SELECT i.item_n FROM (SELECT item_n, max(at) AS at FROM injections"
        " WHERE session = :session GROUP BY item_n) i JOIN fragments f ON f.n = i.item_n"
        " WHERE f.deleted_at IS NULL AND f.superseded_by IS NULL AND EXISTS (SELECT 1"
        " FROM fragment_versions v WHERE v.fragment_n = i.item_n AND v.changed_at > i.at)"
        " ORDER BY i.item_n",
        session=name,
    )
    gone = db.rows(
        "SELECT i.item_n FROM injections i JOIN fragments f ON f.n = i.item_n"
        " WHERE i.session = :session AND (f.deleted_at IS NOT NULL OR f.superseded_by IS NOT NULL)"
        " AND NOT EXISTS (SELECT 1 FROM injections t WHERE t.session = i.session"
        " AND t.item_n = i.item_n AND t.digest = :gone) GROUP BY i.item_n ORDER BY i.item_n",
        session=name,
        gone=GONE,
    )
    return Outdated([row[0] for row in changed], [row[0] for row in gone])


def began(db: Connection, session: str) -> datetime | None:
    """Return when a session was first given something."""
    at = db.value(
        "SELECT min(at) FROM injections WHERE session = :session", session=digests.of_text(session)
    )
    return None if at is None else clock.from_us(at)


def copy(db: Connection, source: str, target: str, *, now: datetime) -> None:
    """Keep that a session was given what another one was."""
    rows = db.rows(
        "SELECT item_n, digest FROM injections WHERE session = :session",
        session=digests.of_text(source),
    )
    add(db, target, [(item_n, digest) for item_n, digest in rows], now=now)


def take_back(db: Connection, session: str, untold: Collection[tuple[int, int]]) -> None:
    """Forget that a session was given some items, each with the digest of its text."""
    for item_n, digest in untold:
        db.run(
            "DELETE FROM injections"
            " WHERE session = :session AND item_n = :item_n AND digest = :digest",
            session=digests.of_text(session),
            item_n=item_n,
            digest=digest,
        )


def remove(db: Connection, session: str) -> None:
    """Forget what a session was given: its prompt was condensed, and has it no longer."""
    db.run("DELETE FROM injections WHERE session = :session", session=digests.of_text(session))
