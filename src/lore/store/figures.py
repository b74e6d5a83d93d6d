"""Figures: how much of everything there is."""

from __future__ import annotations

from lore.records import Stats
from lore.store import items, jobs, sessions, sqlite, vectors
from lore.store.sqlite import Connection


def stats(db: Connection, *, embedder: str, notice: str) -> Stats:
    """Count what the memory holds."""
    counts = items.count_by_type(db)
    per_project: dict[int, int] = dict(
        db.rows("SELECT project_n, count(*) FROM items WHERE project_n IS NOT NULL GROUP BY 1")
    )
    return Stats(
        path=str(db.path),
        bytes=sqlite.count_bytes(db),
        messages=counts["message"],
        distillations=counts["distillation"],
        fragments=counts["fragment"],
        edges=_count(db, "edges"),
        sessions=_count(db, "sessions"),
        entities=_count(db, "entities"),
        standing=_count(db, "standing"),
        vectors=_count(db, "vectors"),
        waiting=vectors.count_waiting(db),
        tokens=int(db.value("SELECT coalesce(sum(tokens), 0) FROM items")),
        embedder=embedder,
        journal=sqlite.journal_of(db),
        projects=tuple(
            (project.path, per_project.get(n, 0)) for n, project in sessions.projects(db).items()
        ),
        jobs=tuple(jobs.open_jobs(db)),
        notice=notice,
    )


def _count(db: Connection, table: str) -> int:
    return int(db.value(f"SELECT count(*) FROM {table}"))
