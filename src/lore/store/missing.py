"""Missing: fragments whose files are gone, since when, and how much they are doubted for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from lore import clock
from lore.store.sqlite import Connection, among, numbers, word_tables
from lore.text import words

_MOST_NAMING = 1_000
"""So many fragments at most are looked at for one file that is gone."""


class Folder(NamedTuple):
    """A project's folder, and the files in it that sessions have read or written."""

    project_n: int
    path: str
    files: frozenset[str]


class Naming(NamedTuple):
    """A fragment that may name files, with what it says."""

    n: int
    project_n: int
    text: str


def folders(db: Connection) -> list[Folder]:
    """Return the projects in whose sessions files were read or written."""
    found: dict[int, tuple[str, set[str]]] = {}
    for n, path, files in db.rows(
        "SELECT p.n, p.path, s.files FROM sessions s JOIN projects p ON p.n = s.project_n"
        " WHERE s.files <> '' ORDER BY p.n"
    ):
        found.setdefault(n, (path, set()))[1].update(files.split("\n"))
    return [Folder(n, path, frozenset(files)) for n, (path, files) in found.items()]


def naming(db: Connection, project_n: int, file: str) -> list[Naming]:
    """Return the fragments of a project that have the words of a file's name in a row."""
    said = " ".join(words.split(file))
    if not said:
        return []
    rows = db.rows(
        f"SELECT f.n, i.project_n, f.content FROM ({word_tables.holding('fragment_words', 'said')}"
        " LIMIT :most) w JOIN fragments f ON f.n = w.n JOIN items i ON i.n = f.n"
        " WHERE i.project_n = :project_n",
        said=word_tables.phrase(said, column="content"),
        project_n=project_n,
        most=_MOST_NAMING,
    )
    return [Naming(*row) for row in rows]


def marked(db: Connection) -> list[Naming]:
    """Return the fragments whose files were gone when last looked for."""
    rows = db.rows(
        "SELECT f.n, i.project_n, f.content FROM fragments f JOIN items i ON i.n = f.n"
        " WHERE f.missing_since IS NOT NULL AND i.project_n IS NOT NULL"
    )
    return [Naming(*row) for row in rows]


def mark(db: Connection, gone: Sequence[int], back: Sequence[int], *, now: datetime) -> None:
    """Remember whose files are gone since now, and whose are back."""
    db.run(
        "UPDATE fragments SET missing_since = :at WHERE missing_since IS NULL"
        f" AND {among('n', 'ns')}",
        at=clock.to_us(now),
        ns=numbers(gone),
    )
    db.run(
        f"UPDATE fragments SET missing_since = NULL, doubt = 0 WHERE {among('n', 'ns')}",
        ns=numbers(back),
    )


def doubt(db: Connection, *, now: datetime) -> int:
    """Doubt fragments by how long their files are gone, and count those that are doubted.

    This is `relevance.doubt` for all of them at once.
    """
    doubted = "0.1 * ((:now - missing_since) / 8.64e10 - 7)"
    return db.run(
        f"UPDATE fragments SET doubt = CASE WHEN {doubted} > 1 THEN 1.0 ELSE {doubted} END"
        f" WHERE missing_since IS NOT NULL AND {doubted} > 0",
        now=clock.to_us(now),
    )
