"""Rows of an imported file layout: its other files, and the fragments that its records became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lore import clock
from lore.records import Fragment, FragmentKind
from lore.store import forgotten_texts, fragments, history, task_tables
from lore.store.codec import pack_json
from lore.store.sqlite import Connection

LAYOUT = "layout"
"""The name under which a fragment's metadata says where in a layout it comes from."""


def put_file(db: Connection, project_n: int | None, path: str, body: str, *, now: datetime) -> bool:
    """Store a file of a layout without what was forgotten; return whether that changed anything."""
    is_forgotten = forgotten_texts.find(db, (path, body))
    left, _ = task_tables.cut_row("layout_file", {"path": path, "body": body}, is_forgotten)
    if left is None:
        return False
    body = left["body"]
    sql = "SELECT n, body FROM layout_files WHERE project_n IS :project_n AND path = :path"
    row = db.find(sql, project_n=project_n, path=path)
    if row is None:
        db.insert("layout_files", project_n=project_n, path=path, body=body, at=clock.to_us(now))
        return True
    if row[1] != body:
        db.update("layout_files", row[0], body=body, at=clock.to_us(now))
    return bool(row[1] != body)


def find_file(db: Connection, project_n: int | None, path: str) -> str | None:
    """Return the body of a file of a layout, or None."""
    sql = "SELECT body FROM layout_files WHERE project_n IS :project_n AND path = :path"
    row = db.find(sql, project_n=project_n, path=path)
    return None if row is None else str(row[0])


def list_files(db: Connection, project_n: int | None) -> dict[str, str]:
    """Return the bodies of a project's files by path."""
    sql = "SELECT path, body FROM layout_files WHERE project_n IS :project_n ORDER BY path"
    return dict(db.rows(sql, project_n=project_n))


def fragments_of_project(
    db: Connection, project_n: int | None, kinds: Sequence[FragmentKind] = ()
) -> list[tuple[int, Fragment]]:
    """Return the fragments of a project that are not deleted, oldest first."""
    sql = (
        "SELECT f.n, f.kind FROM items i JOIN fragments f ON f.n = i.n"
        " WHERE i.project_n IS :project_n AND f.deleted_at IS NULL ORDER BY i.created_at, f.n"
    )
    ns = [n for n, kind in db.rows(sql, project_n=project_n) if not kinds or kind in kinds]
    loaded = fragments.by_number(db, ns)
    return [(n, loaded[n]) for n in ns if n in loaded]


def update_record(
    db: Connection,
    n: int,
    *,
    payload: Mapping[str, Any],
    metadata: Mapping[str, Any],
    now: datetime,
) -> None:
    """Set the payload and the metadata of a fragment."""
    db.update("fragments", n, payload=pack_json(payload), metadata=pack_json(metadata))
    history.log_change(db, "change", [n], now)
