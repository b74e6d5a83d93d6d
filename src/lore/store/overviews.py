"""Overviews: roots in words of Lore's own, and the words that they had before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lore import clock
from lore.records import FragmentVersion
from lore.store import fragments
from lore.store.sqlite import Connection, among, numbers
from lore.store.steps import Step, Watch, unwatched
from lore.text import entities


def reword(
    db: Connection,
    n: int,
    content: str,
    summary: str,
    *,
    now: datetime,
    watch: Watch = unwatched,
) -> None:
    """Give a fragment new words in Lore's own name; the former ones stay as a version."""
    version, at = db.rows("SELECT version, updated_at FROM fragments WHERE n = :n", n=n)[0]
    watch(db, Step("reworded", n, value=version, at=at))
    _say(db, n, content, summary, "overview", now=now)


def find_own_words(db: Connection, n: int) -> FragmentVersion | None:
    """Return what a fragment said before the overviews that it has now, if it has one."""
    own = None
    for former in reversed(fragments.versions(db, n)):
        if former.reason != "overview":
            break
        own = former
    return own


def withdraw(db: Connection, ns: Sequence[int], *, now: datetime) -> int:
    """Give the roots above fragments the words that they had before any overview; count them.

    An overview quotes what stands below it, so it goes with what goes.
    """
    rows = db.rows(
        "WITH RECURSIVE above (n) AS (SELECT e.source_n FROM edges e WHERE"
        f" e.kind = 'hierarchical' AND {among('e.target_n', 'ns')} UNION SELECT e.source_n"
        " FROM above a JOIN edges e ON e.target_n = a.n WHERE e.kind = 'hierarchical')"
        " SELECT v.fragment_n, min(v.version) FROM fragment_versions v JOIN above a"
        f" ON a.n = v.fragment_n WHERE v.reason = 'overview' AND NOT {among('a.n', 'ns')}"
        " GROUP BY v.fragment_n",
        ns=numbers(ns),
    )
    for n, version in rows:
        kept = fragments.versions(db, n)
        if kept[-1].reason == "overview":
            first = next(one for one in kept if one.version == version)
            reset(db, n, first.content, first.summary, version, now=now)
        else:
            db.run(
                "DELETE FROM fragment_versions WHERE fragment_n = :n AND version > :version",
                n=n,
                version=version,
            )
    return len(rows)


def say_as_before(db: Connection, step: Step, now: datetime) -> bool:
    """Give a fragment its former words back, and forget that it ever had others."""
    n, version = step.fragment_n or 0, int(step.value or 0)
    row = db.find(
        "SELECT v.content, v.summary FROM fragment_versions v JOIN fragments f"
        " ON f.n = v.fragment_n WHERE f.n = :n AND v.version = :version"
        " AND f.version = v.version + 1 AND v.reason = 'overview'",
        n=n,
        version=version,
    )
    if row is None:
        return False
    content, summary = row
    reset(db, n, content, summary, version, now=now)
    db.run(
        "UPDATE fragments SET updated_at = :at, overview_at = :now WHERE n = :n",
        at=step.at,
        now=clock.to_us(now),
        n=n,
    )
    return True


def reset(
    db: Connection, n: int, content: str, summary: str, version: int, *, now: datetime
) -> None:
    """Give a fragment the words of a version back, and forget that it ever had later ones."""
    _say(db, n, content, summary, "undo", now=now)
    db.run(
        "DELETE FROM fragment_versions WHERE fragment_n = :n AND version >= :version",
        n=n,
        version=version,
    )
    db.run(
        "UPDATE fragments SET version = :version, overview_at = NULL WHERE n = :n",
        version=version,
        n=n,
    )


def _say(db: Connection, n: int, content: str, summary: str, reason: str, *, now: datetime) -> None:
    """Give a fragment words that nobody said: they do not strengthen it."""
    fragments.update(
        db,
        n,
        content=content,
        summary=summary,
        mentioned=entities.of_fragment(content, summary),
        now=now,
        reason=reason,
        reinforces=False,
    )
