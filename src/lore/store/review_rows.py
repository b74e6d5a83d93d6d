"""Fragments that wait for a person's review because of where they come from."""

from __future__ import annotations

from lore.records import UNASKED_TRUST
from lore.store import items
from lore.store.fragments import LIVING_FRAGMENT
from lore.store.sql_connection import Connection

_UNTRUSTED = (
    f"FROM fragments f JOIN items i ON i.n = f.n WHERE f.trust < {UNASKED_TRUST}"
    f" AND f.origin IN ('peer', 'web', 'repo') AND f.kind <> 'episode' AND {LIVING_FRAGMENT}"
    f" AND {items.applies_sql('i')}"
)


def untrusted_fragments(
    db: Connection, *, project_n: int | None, before: int, limit: int
) -> list[int]:
    """Return living fragments of a peer, a page or a repository that nobody approved, newest first.

    What tools returned is left out: it is knowledge of the moment, and too much to review.
    """
    sql = f"SELECT f.n {_UNTRUSTED} AND f.n < :before ORDER BY f.n DESC LIMIT :limit"
    return db.column(sql, project_n=project_n, before=before, limit=limit)
