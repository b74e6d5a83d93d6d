"""Shared: which fragments stand on a project's page, under which id, and with which words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lore.records import UNASKED_TRUST
from lore.store.fragments import VISIBLE_FRAGMENT
from lore.store.sqlite import Connection


class Shared(NamedTuple):
    """One entry as it was last written or read here; one that is left out is never written."""

    entry: str
    fragment_n: int
    digest: str
    left_out: bool


def of_project(db: Connection, project_n: int) -> list[Shared]:
    """Return the entries of a project's page."""
    rows = db.rows(
        "SELECT s.entry, s.fragment_n, s.digest, s.left_out FROM shared s"
        " JOIN items i ON i.n = s.fragment_n WHERE i.project_n = :n ORDER BY s.fragment_n",
        n=project_n,
    )
    return [Shared(entry, n, digest, bool(out)) for entry, n, digest, out in rows]


def find(db: Connection, entry: str) -> Shared | None:
    """Return an entry by its id on a page."""
    row = db.find(
        "SELECT entry, fragment_n, digest, left_out FROM shared WHERE entry = :entry", entry=entry
    )
    return None if row is None else Shared(row[0], row[1], row[2], bool(row[3]))


def shareable(db: Connection, project_n: int, *, least_confidence: float) -> list[int]:
    """Return the fragments of a project that may be shared, oldest first."""
    rows = db.rows(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE i.project_n = :n AND {VISIBLE_FRAGMENT} AND f.kind <> 'episode'"
        " AND f.trust >= :trust AND f.confidence >= :least ORDER BY i.created_at, f.n",
        n=project_n,
        trust=UNASKED_TRUST,
        least=least_confidence,
    )
    return [row[0] for row in rows]


def put(db: Connection, entries: Iterable[Shared]) -> None:
    """Remember entries as they stand on the page now."""
    db.run_many(
        "INSERT INTO shared (entry, fragment_n, digest, left_out)"
        " VALUES (:entry, :fragment_n, :digest, :left_out) ON CONFLICT (entry) DO UPDATE SET"
        " fragment_n = excluded.fragment_n, digest = excluded.digest,"
        " left_out = excluded.left_out",
        [
            {"entry": e.entry, "fragment_n": e.fragment_n, "digest": e.digest,
             "left_out": int(e.left_out)}
            for e in entries
        ],
    )  # fmt: skip


def remove(db: Connection, entries: Iterable[str]) -> None:
    """Remember that entries are no longer on the page."""
    for entry in entries:
        db.run("DELETE FROM shared WHERE entry = :entry", entry=entry)
