"""Episodes to learn from, and the patterns, anti-patterns and skills that were learned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from lore import clock
from lore.records import Fragment, FragmentKind
from lore.store import fragments, history, items
from lore.store.codec import pack_json, unpack_json
from lore.store.fragments import LIVING_FRAGMENT
from lore.store.sql_connection import Connection, among, int_array, json_field, text_array

LESSON_KINDS: tuple[FragmentKind, ...] = ("pattern", "anti_pattern", "skill")
KEY = "task_key"
"""The field of a fragment's metadata that recognizes a lesson when it is learned again."""

_KEY = json_field("f.metadata", KEY)


class EpisodeRow(NamedTuple):
    """An episode by number, with its scope and the end of its session."""

    n: int
    scope: int
    ended_us: int


def ended_at(row: EpisodeRow) -> datetime:
    """Return when the session of an episode ended."""
    return clock.from_us(row.ended_us)


def episodes(
    db: Connection, *, since: datetime | None = None, scope: int | None = None, limit: int
) -> list[EpisodeRow]:
    """Return the latest episodes that stand and are not archived, in the order of their ends."""
    rows = db.rows(
        "SELECT n, scope, ended FROM (SELECT f.n AS n,"
        f" coalesce({items.scope_sql('i')}, {items.NO_PROJECT}) AS scope,"
        " coalesce(s.last_message_at, i.created_at) AS ended FROM fragments f"
        " JOIN items i ON i.n = f.n LEFT JOIN sessions s ON s.n = i.session_n"
        f" WHERE f.kind = 'episode' AND {LIVING_FRAGMENT} AND f.archived_at IS NULL) AS ends"
        " WHERE ended >= :since AND (:scope IS NULL OR scope = :scope)"
        " ORDER BY ended DESC, n DESC LIMIT :limit",
        since=clock.to_us(since) if since else 0,
        scope=scope,
        limit=limit,
    )
    return [EpisodeRow(*row) for row in reversed(rows)]


def find_by_key(db: Connection, key: str, *, scope: int) -> int | None:
    """Return the lesson with a key, deleted or superseded or not."""
    return db.number(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE {_KEY} = :key AND {among('f.kind', 'kinds')}"
        f" AND coalesce({items.scope_sql('i')}, {items.NO_PROJECT}) = :scope ORDER BY f.n LIMIT 1",
        key=key,
        kinds=text_array(LESSON_KINDS),
        scope=scope,
    )


def lessons(
    db: Connection, kind: str = "", *, project_n: int | None = None, limit: int = 1_000_000
) -> list[Fragment]:
    """Return the patterns, anti-patterns and skills that stand, newest first."""
    ns = db.column(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE {among('f.kind', 'kinds')} AND {LIVING_FRAGMENT}"
        f" AND {items.applies_sql('i')} ORDER BY f.updated_at DESC, f.n DESC LIMIT :limit",
        kinds=text_array([kind] if kind else LESSON_KINDS),
        project_n=project_n,
        limit=limit,
    )
    by_number = fragments.by_number(db, ns)
    return [by_number[n] for n in ns]


def lessons_of_scope(db: Connection, scope: int) -> list[int]:
    """Return the numbers of the lessons of a project, or of no project."""
    return db.column(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE {among('f.kind', 'kinds')} AND {LIVING_FRAGMENT}"
        f" AND coalesce({items.scope_sql('i')}, {items.NO_PROJECT}) = :scope ORDER BY f.n",
        kinds=text_array(LESSON_KINDS),
        scope=scope,
    )


def count_use(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Count that memories which were given were used: usage_count and last_used rise."""
    rows = db.rows(
        f"SELECT n, payload FROM fragments WHERE {among('n', 'ns')}", ns=int_array(sorted(set(ns)))
    )
    for n, packed in rows:
        payload = unpack_json(packed)
        count = payload.get("usage_count")
        payload["usage_count"] = (count if isinstance(count, int) else 0) + 1
        payload["last_used"] = now.isoformat()
        db.update("fragments", n, payload=pack_json(payload))
    fragments.mark_used(db, [n for n, _ in rows], now=now)
    history.log_change(db, "change", [n for n, _ in rows], now)


def referenced_episodes(db: Connection) -> set[int]:
    """Return the episodes that something refers to: a memory that stands, or an open task."""
    return set(
        db.column(
            "SELECT e.target_n FROM edges e JOIN fragments t ON t.n = e.target_n"
            " JOIN fragments f ON f.n = e.source_n"
            f" WHERE t.kind = 'episode' AND f.kind <> 'episode' AND {LIVING_FRAGMENT}"
            " UNION SELECT e.source_n FROM edges e JOIN fragments t ON t.n = e.source_n"
            " JOIN fragments f ON f.n = e.target_n"
            f" WHERE t.kind = 'episode' AND f.kind <> 'episode' AND {LIVING_FRAGMENT}"
            " UNION SELECT episode_n FROM tasks WHERE state = 'open' AND episode_n IS NOT NULL"
        )
    )


def archived(
    db: Connection, ns: Sequence[int] | None = None, *, project_n: int | None = None
) -> list[int]:
    """Return the archived fragments, of all or of `ns`, newest first."""
    condition = "" if ns is None else f" AND {among('f.n', 'ns')}"
    return db.column(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE f.archived_at IS NOT NULL AND {LIVING_FRAGMENT}{condition}"
        f" AND {items.applies_sql('i')} ORDER BY i.created_at DESC, f.n DESC",
        project_n=project_n,
        **({} if ns is None else {"ns": int_array(ns)}),
    )


def failures_after_use(db: Connection) -> dict[int, int]:
    """Return for each memory how many tasks used it and then failed."""
    return dict(
        db.rows(
            "SELECT m.item_n, count(*) FROM task_memories m JOIN tasks t ON t.n = m.task_n"
            " WHERE m.used = 1 AND (t.outcome = 'failure' OR m.helped = 0) GROUP BY m.item_n"
        )
    )
