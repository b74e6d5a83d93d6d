"""Confirmations: how sure a fragment is, on which messages it stands, where it was said again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import orjson

from lore import clock
from lore.relevance import relevance
from lore.store import changes, overviews
from lore.store.sqlite import Connection
from lore.store.steps import Step


def confirm(
    db: Connection, n: int, *, sources: Sequence[str], surer_by: float, now: datetime
) -> None:
    """Let a fragment stand on more messages, and surer; what had faded is fresh again."""
    row = db.find("SELECT importance, access_count FROM fragments WHERE n = :n", n=n)
    if row is None:
        return
    db.run(
        "UPDATE fragments SET source_messages = :sources,"
        " confidence = CASE WHEN confidence + :by > 1.0 THEN 1.0 ELSE confidence + :by END,"
        " relevance = CASE WHEN relevance > :fresh THEN relevance ELSE :fresh END,"
        " updated_at = :at, last_reinforced = CASE WHEN last_reinforced > :at THEN"
        " last_reinforced ELSE :at END WHERE n = :n",
        sources=orjson.dumps(list(sources)).decode(),
        by=surer_by,
        fresh=relevance(row[0], row[1], 0.0),
        at=clock.to_us(now),
        n=n,
    )
    changes.log(db, "change", [n], now)


def before_confirming(db: Connection, n: int) -> Step:
    """Return how a fragment stands before it is confirmed, perhaps in newer words."""
    version, confidence, sources, at = db.rows(
        "SELECT version, confidence, source_messages, updated_at FROM fragments WHERE n = :n", n=n
    )[0]
    note = orjson.dumps([confidence, sources]).decode()
    return Step("confirmed", n, value=version, note=note, at=at)


def doubt_again(db: Connection, step: Step, now: datetime) -> bool:
    """Let a fragment be as sure as before, and say what it said; False if it was changed since."""
    n, version = step.fragment_n or 0, int(step.value or 0)
    confidence, sources = orjson.loads(step.note)
    present = db.value("SELECT version FROM fragments WHERE n = :n", n=n)
    if present not in (version, version + 1):
        return False
    if present == version + 1:
        content, summary = db.rows(
            "SELECT content, summary FROM fragment_versions"
            " WHERE fragment_n = :n AND version = :version",
            n=n,
            version=version,
        )[0]
        overviews.reset(db, n, content, summary, version, now=now)
    db.run(
        "UPDATE fragments SET confidence = :confidence, source_messages = :sources,"
        " updated_at = :at WHERE n = :n",
        confidence=confidence,
        sources=sources,
        at=step.at,
        n=n,
    )
    return True


def count(db: Connection, n: int, project_n: int | None, *, now: datetime) -> None:
    """Count that a fragment was confirmed in a project."""
    if project_n is not None:
        db.run(
            "INSERT INTO confirmations (fragment_n, project_n, times, at)"
            " VALUES (:n, :project_n, 1, :at) ON CONFLICT (fragment_n, project_n)"
            " DO UPDATE SET times = times + 1, at = excluded.at",
            n=n,
            project_n=project_n,
            at=clock.to_us(now),
        )


def before_counting(db: Connection, n: int, project_n: int) -> Step:
    """Return how often a fragment was confirmed in a project before that is counted once more."""
    row = db.find(
        "SELECT times, at FROM confirmations WHERE fragment_n = :n AND project_n = :project_n",
        n=n,
        project_n=project_n,
    )
    times, at = row or (0, None)
    return Step("counted", n, kind=str(project_n), value=times, at=at)


def uncount(db: Connection, step: Step, _now: datetime) -> bool:
    """Count a confirmation less; those that came since still count."""
    row = {"n": step.fragment_n, "project_n": int(step.kind)}
    done = db.run(
        "UPDATE confirmations SET times = times - 1, at = CASE WHEN times - 1 = :times"
        " THEN coalesce(:at, at) ELSE at END WHERE fragment_n = :n AND project_n = :project_n",
        times=int(step.value or 0),
        at=step.at,
        **row,
    )
    db.run(
        "DELETE FROM confirmations WHERE fragment_n = :n AND project_n = :project_n AND times <= 0",
        **row,
    )
    return bool(done)


def by_project(db: Connection, n: int) -> dict[str, int]:
    """Return in which projects, by id, a fragment was confirmed, and how often."""
    rows = db.rows(
        "SELECT p.id, c.times FROM confirmations c JOIN projects p ON p.n = c.project_n"
        " WHERE c.fragment_n = :n ORDER BY c.at, p.n",
        n=n,
    )
    return dict(rows)


def widely_confirmed(
    db: Connection, *, projects: int, confidence: float, trust: int
) -> list[tuple[int, int]]:
    """Return fragments of one project that hold in so many, with how many, surest first."""
    rows = db.rows(
        "SELECT f.n, count(*) FROM confirmations c JOIN fragments f ON f.n = c.fragment_n"
        " JOIN items i ON i.n = f.n WHERE i.project_n IS NOT NULL AND f.deleted_at IS NULL"
        " AND f.superseded_by IS NULL AND f.confidence >= :confidence AND f.trust >= :trust"
        " GROUP BY f.n HAVING count(*) >= :projects ORDER BY count(*) DESC, f.n",
        projects=projects,
        # Confirmations add up in binary fractions: 0.7 and two of 0.05 are a hair below 0.8.
        confidence=confidence - 1e-9,
        trust=trust,
    )
    return [(n, count) for n, count in rows]
