"""Episodes: the fragment that tells a session, found again and told anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from lore import clock
from lore.records import TRUST, Origin
from lore.store.packing import unpack_json
from lore.store.sqlite import Connection, among, numbers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLD = {"told": "session"}
"""The metadata of an episode that was derived from a whole session."""


def find(db: Connection, session_n: int) -> int | None:
    """Return the number of a session's episode, deleted or not."""
    rows = db.rows(
        "SELECT f.n, f.metadata FROM items i JOIN fragments f ON f.n = i.n"
        " WHERE i.session_n = :n AND f.kind = 'episode' ORDER BY f.n",
        n=session_n,
    )
    return next((n for n, metadata in rows if unpack_json(metadata) == TOLD), None)


def renew(
    db: Connection,
    n: int,
    *,
    payload: Mapping[str, Any],
    source_messages: Sequence[str],
    origin: Origin,
) -> None:
    """Give an episode what it holds besides its words; its trust never rises."""
    db.run(
        "UPDATE fragments SET payload = :payload, source_messages = :sources, origin = :origin,"
        " trust = CASE WHEN trust < :trust THEN trust ELSE :trust END WHERE n = :n",
        payload=orjson.dumps(payload).decode(),
        sources=orjson.dumps(list(source_messages)).decode(),
        origin=origin,
        trust=TRUST[origin],
        n=n,
    )


def newest(db: Connection, *, project_n: int | None, limit: int) -> list[int]:
    """Return the numbers of the latest episodes that may be shown, newest first."""
    rows = db.rows(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        " LEFT JOIN sessions s ON s.n = i.session_n"
        " WHERE f.kind = 'episode' AND f.deleted_at IS NULL AND f.superseded_by IS NULL"
        " AND (:project_n IS NULL OR i.project_n = :project_n)"
        " ORDER BY coalesce(s.last_message_at, i.created_at) DESC, f.n DESC LIMIT :limit",
        project_n=project_n,
        limit=limit,
    )
    return [row[0] for row in rows]


def without_deeds(db: Connection, ns: Sequence[int] | NDArray[np.int64]) -> set[int]:
    """Return those of the fragments that tell a session in which nothing was done."""
    if not len(ns):
        return set()
    rows = db.rows(
        f"SELECT n, metadata, payload FROM fragments WHERE kind = 'episode' AND {among('n', 'ns')}",
        ns=numbers(ns),
    )
    return {
        n
        for n, metadata, payload in rows
        if unpack_json(metadata) == TOLD and not unpack_json(payload).get("calls")
    }


class Untold(NamedTuple):
    """A session that has gone quiet, and how many messages it has."""

    id: str
    messages: int


def untold(db: Connection, kind: str, *, now: datetime, idle_s: float, limit: int) -> list[Untold]:
    """Return sessions that have gone quiet and had no job of a kind since they last grew.

    A job's total says how long the session was; a last message that is still to come was dated
    by a clock that is wrong, and is not waited for.
    """
    rows = db.rows(
        "SELECT q.id, q.size FROM (SELECT s.id, s.last_message_at AS at,"
        " (SELECT max(ordinal) + 1 FROM messages WHERE session_n = s.n) AS size FROM sessions s"
        " WHERE s.last_message_at NOT BETWEEN :quiet AND :now) q"
        " LEFT JOIN jobs j ON j.kind = :kind AND j.subject = q.id"
        " WHERE q.size > 0 AND (j.n IS NULL OR (j.state = 'done' AND j.total <> q.size))"
        " ORDER BY q.at DESC LIMIT :limit",
        kind=kind,
        quiet=clock.to_us(now - timedelta(seconds=idle_s)),
        now=clock.to_us(now),
        limit=limit,
    )
    return [Untold(*row) for row in rows]
