"""Conflicts: the edges between fragments that speak against each other."""

from __future__ import annotations

from lore.store.sqlite import Connection


def standing(db: Connection, *, project_n: int | None = None) -> list[tuple[int, int]]:
    """Return (newer, older) of each conflict both of whose sides are still held, newest first."""
    rows = db.rows(
        "SELECT e.source_n, e.target_n FROM edges e JOIN fragments f ON f.n = e.source_n"
        " JOIN fragments o ON o.n = e.target_n JOIN items i ON i.n = e.source_n"
        " WHERE e.kind = 'contradicts' AND f.deleted_at IS NULL AND f.superseded_by IS NULL"
        " AND o.deleted_at IS NULL AND o.superseded_by IS NULL"
        " AND (:project_n IS NULL OR i.project_n IS NULL OR i.project_n = :project_n)"
        " ORDER BY e.created_at DESC, e.source_n DESC, e.target_n DESC",
        project_n=project_n,
    )
    return [(source, target) for source, target in rows]
