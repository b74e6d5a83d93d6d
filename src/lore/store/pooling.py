"""Pooling: what ranking needs to know of many items at once, read in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.errors import StoreDamaged
from lore.store import trusting
from lore.store.fragments import VISIBLE_FRAGMENT
from lore.store.items import type_number
from lore.store.packing import unpack_text
from lore.store.sqlite import Connection, among, id_of, numbers

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Items as columns, in the order of their numbers; 0 stands for 'none'."""

    ns: Numbers
    types: Numbers
    sessions: Numbers
    projects: Numbers
    created_at: Numbers
    tokens: Numbers
    ordinals: Numbers
    traits: Numbers
    before: Numbers
    before_that: Numbers
    after: Numbers
    relevance: NDArray[np.float64]
    importance: NDArray[np.float64]
    confidence: NDArray[np.float64]
    speakers: list[str]


def rows_of(
    db: Connection,
    ns: Numbers,
    *,
    project_n: int | None,
    session_n: int | None,
    trusted_only: bool,
    without: Sequence[int] = (),
) -> Rows:
    """Return items that may be shown: nothing deleted, superseded, faded or out of bounds."""
    found = db.rows(_ROWS, **_bound(ns, project_n, session_n)) if len(ns) else []
    if without:
        found = [row for row in found if row[2] not in without]
    if trusted_only:
        trusted = trusting.trusted(db, [row[0] for row in found])
        found = [row for row in found if row[0] in trusted]
    found.sort()
    columns = list(zip(*found, strict=True)) if found else [()] * 15
    try:
        whole = [np.array(column, np.int64) for column in columns[:11]]
        relevance, importance, confidence = (
            np.array(column, np.float64) for column in columns[11:14]
        )
    except (OverflowError, TypeError, ValueError) as error:
        msg = "A row holds a text where a number belongs."
        raise StoreDamaged(msg, hint="'lore doctor' names the damage.") from error
    ns_, types, session_ns, projects, created_at, tokens, ordinals, traits = whole[:8]
    before, before_that, after = whole[8:]
    return Rows(
        ns=ns_,
        types=types,
        sessions=session_ns,
        projects=projects,
        created_at=created_at,
        tokens=tokens,
        ordinals=ordinals,
        traits=traits,
        before=before,
        before_that=before_that,
        after=after,
        relevance=relevance,
        importance=importance,
        confidence=confidence,
        speakers=list(columns[14]),
    )


def _bound(ns: Numbers, project_n: int | None, session_n: int | None) -> dict[str, object]:
    return {"ns": numbers(ns), "project_n": project_n, "session_n": session_n}


_FRAGMENT, _MESSAGE = type_number("fragment"), type_number("message")

_ROWS = f"""
SELECT i.n, i.type, coalesce(i.session_n, 0), coalesce(i.project_n, 0), i.created_at, i.tokens,
    coalesce(m.ordinal, 0), coalesce(m.traits, 0),
    coalesce((SELECT b.n FROM messages b WHERE b.session_n = m.session_n
        AND b.ordinal = m.ordinal - 1), 0),
    coalesce((SELECT b.n FROM messages b WHERE b.session_n = m.session_n
        AND b.ordinal = m.ordinal - 2), 0),
    coalesce((SELECT b.n FROM messages b WHERE b.session_n = m.session_n
        AND b.ordinal = m.ordinal + 1), 0),
    coalesce(f.relevance, 0), coalesce(f.importance, 0), coalesce(f.confidence, 0),
    coalesce(m.speaker, '')
FROM items i LEFT JOIN messages m ON m.n = i.n LEFT JOIN fragments f ON f.n = i.n
WHERE {among("i.n", "ns")}
    AND (i.type <> {_FRAGMENT} OR ({VISIBLE_FRAGMENT}))
    AND (:project_n IS NULL OR i.project_n IS NULL OR i.project_n = :project_n)
    AND (:session_n IS NULL OR i.session_n = :session_n)
"""


def traits_of(db: Connection, ns: Numbers) -> dict[int, tuple[int, str]]:
    """Return the traits and the speaker of messages."""
    if not len(ns):
        return {}
    rows = db.rows(
        f"SELECT n, traits, speaker FROM messages WHERE {among('n', 'ns')}", ns=numbers(ns)
    )
    return {n: (traits, speaker) for n, traits, speaker in rows}


def texts_of(db: Connection, ns: Sequence[int], most_chars: int) -> dict[int, str]:
    """Return the searchable beginning of items."""
    if not len(ns):
        return {}
    rows = db.rows(
        "SELECT i.n, m.parts, d.text, f.summary || ' ' || f.content FROM items i"
        " LEFT JOIN messages m ON m.n = i.n LEFT JOIN distillations d ON d.n = i.n"
        f" LEFT JOIN fragments f ON f.n = i.n WHERE {among('i.n', 'ns')}",
        ns=numbers(ns),
    )
    return {
        n: (unpack_text(packed) if packed is not None else distilled or content or "")[:most_chars]
        for n, packed, distilled, content in rows
    }


def of_time(
    db: Connection, start_us: int, end_us: int, types: list[int], *, limit: int
) -> list[int]:
    """Return the newest items of some types within a stretch of time.

    The id of a message begins with its time, so that messages need no index by time.
    """
    bounds = {"start": start_us, "end": end_us, "limit": limit}
    found: list[tuple[int, int]] = []
    if _MESSAGE in types:
        first, last = clock.id_bounds(start_us, end_us)
        found += db.rows(_MESSAGES_OF_TIME, first=first, last=last, **bounds)
    others = [number for number in types if number != _MESSAGE]
    found += db.rows(_OTHERS_OF_TIME, types=numbers(others), **bounds)
    return [n for _, n in sorted(found, reverse=True)[:limit]]


_MESSAGES_OF_TIME = (
    f"SELECT created_at, n FROM items WHERE id >= {id_of(':first')} AND id <= {id_of(':last')}"
    f" AND type = {_MESSAGE} AND created_at >= :start AND created_at < :end"
    " ORDER BY id DESC LIMIT :limit"
)
_OTHERS_OF_TIME = (
    f"SELECT created_at, n FROM items WHERE type <> {_MESSAGE} AND created_at >= :start"
    f" AND created_at < :end AND {among('type', 'types')} ORDER BY created_at DESC LIMIT :limit"
)


def of_session(db: Connection, session_n: int) -> Numbers:
    """Return the numbers of all items of a session."""
    rows = db.rows("SELECT n FROM items WHERE session_n = :n ORDER BY n", n=session_n)
    return np.array([row[0] for row in rows], np.int64)
