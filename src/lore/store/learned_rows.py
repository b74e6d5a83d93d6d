"""What was learned, changed, replaced and deleted, as a list and by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lore.records import LearnedVerb
from lore.store.pages import BEFORE_NEWEST
from lore.store.sql_connection import Connection

DAY_US = 86_400_000_000

_EVENTS: dict[LearnedVerb, tuple[str, str, str]] = {
    "learned": ("i.created_at", "", "i.type <> 1"),
    "changed": (
        "v.changed_at", " JOIN fragment_versions v ON v.fragment_n = f.n", "v.reason <> 'overview'"
    ),
    "replaced": ("coalesce(f.valid_to, f.updated_at)", "", "f.superseded_by IS NOT NULL"),
    "deleted": ("f.deleted_at", "", "f.deleted_at IS NOT NULL"),
}  # fmt: skip
"""For each verb its time, what it joins, and which fragments it concerns."""


class LearnedKey(NamedTuple):
    """The place of an event in the list: when, which fragment, and what."""

    at: int
    n: int
    verb: LearnedVerb


def _from(verb: LearnedVerb) -> str:
    _, joined, condition = _EVENTS[verb]
    # The order of tables lets SQLite read items by time, or fragments by their partial indexes.
    tables = (
        "items i CROSS JOIN fragments f WHERE f.n = i.n AND"
        if verb == "learned"
        else f"fragments f{joined} JOIN items i ON i.n = f.n WHERE"
    )
    own = "(:project_n IS NULL OR i.project_n = :project_n)"
    return f"FROM {tables} {condition} AND {own}"


def page_of_events(
    db: Connection, after: Sequence[int | str], *, project_n: int | None, since_us: int, limit: int
) -> list[LearnedKey]:
    """Return what happened to fragments, newest first."""
    at, n, verb = after or (BEFORE_NEWEST, 0, "")
    events: list[LearnedKey] = []
    for name, (time, _, _) in _EVENTS.items():
        rows = db.rows(
            f"SELECT {time}, f.n {_from(name)} AND {time} >= :since AND {time} <= :at"
            f" AND ({time} < :at OR f.n < :n OR (f.n = :n AND :name < :verb))"
            f" ORDER BY {time} DESC, f.n DESC LIMIT :limit",
            since=since_us,
            at=at,
            n=n,
            verb=verb,
            name=name,
            project_n=project_n,
            limit=limit,
        )
        events += [LearnedKey(then, fragment_n, name) for then, fragment_n in rows]
    return sorted(events, reverse=True)[:limit]


def count_by_day(
    db: Connection, *, project_n: int | None, since_us: int
) -> dict[int, dict[str, int]]:
    """Return how many fragments were learned, changed, replaced, deleted and forgotten by day."""
    days: dict[int, dict[str, int]] = {}
    for name, (time, _, _) in _EVENTS.items():
        if name == "learned":
            for day, count in _count_learned(db, project_n, since_us).items():
                days.setdefault(day, {})[name] = count
            continue
        rows = db.rows(
            f"SELECT {time} / {DAY_US}, count(*) {_from(name)} AND {time} >= :since GROUP BY 1",
            since=since_us,
            project_n=project_n,
        )
        for day, count in rows:
            days.setdefault(day, {})[name] = count
    if project_n is None:  # nothing says where forgotten items were
        rows = db.rows(
            f"SELECT at / {DAY_US}, count(*) FROM tombstones WHERE at >= :since GROUP BY 1",
            since=since_us,
        )
        for day, count in rows:
            days.setdefault(day, {})["forgotten"] = count
    return days


def _count_learned(db: Connection, project_n: int | None, since_us: int) -> dict[int, int]:
    """Return how many fragments were learned by day: all that is no message or distillation.

    The indexes of items are enough for that; fragments are ten times as large.
    """
    place = {} if project_n is None else {"project_n": project_n}
    # The sign keeps SQLite off the index by time, which has the items of all projects.
    own = "" if project_n is None else " AND +i.type <> 1 AND i.project_n = :project_n"
    condition = f"i.created_at >= :since{own} GROUP BY 1"
    sql = f"SELECT i.created_at / {DAY_US}, count(*) FROM items i WHERE i.type <> 1 AND {condition}"
    counts: dict[int, int] = dict(db.rows(sql, since=since_us, **place))
    logs = db.rows(
        f"SELECT i.created_at / {DAY_US}, count(*) FROM distillations d JOIN items i ON i.n = d.n"
        f" WHERE {condition}",
        since=since_us,
        **place,
    )
    for day, count in logs:
        counts[day] = counts.get(day, 0) - count
    return {day: count for day, count in counts.items() if count > 0}
