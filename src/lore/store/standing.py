"""Standing instructions: what the person said once and means always."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from lore.store.sqlite import Connection
from lore.text import words


class Standing(NamedTuple):
    """One instruction, verbatim, with the message that it comes from."""

    item_n: int
    text: str
    created_at: int


def add(db: Connection, item_n: int, project_n: int | None, text: str, created_at: int) -> None:
    """Keep an instruction; said again, the newest saying stands."""
    digest = hashlib.sha256(" ".join(words.split(text)).encode()).hexdigest()[:16]
    db.run(
        "DELETE FROM standing WHERE digest = :digest AND project_n IS :project_n",
        digest=digest,
        project_n=project_n,
    )
    db.run(
        "INSERT INTO standing (item_n, project_n, text, digest, created_at)"
        " VALUES (:item_n, :project_n, :text, :digest, :created_at)",
        item_n=item_n,
        project_n=project_n,
        text=text,
        digest=digest,
        created_at=created_at,
    )


def newest(db: Connection, project_n: int | None, *, limit: int = 200) -> list[Standing]:
    """Return the instructions that hold in a project, newest first."""
    rows = db.rows(
        "SELECT item_n, text, created_at FROM standing"
        " WHERE :project_n IS NULL OR project_n IS NULL OR project_n = :project_n"
        " ORDER BY created_at DESC, n DESC LIMIT :limit",
        project_n=project_n,
        limit=limit,
    )
    return [Standing(*row) for row in rows]
