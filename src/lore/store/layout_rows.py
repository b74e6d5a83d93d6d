"""Rows of an imported file layout: its other files, and the fragments that its records became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lore import clock
from lore.records import Fragment, FragmentKind
from lore.store import forgotten_names, forgotten_texts, fragments, history, task_tables
from lore.store.codec import pack_json
from lore.store.sql_connection import Connection, json_field, json_number

LAYOUT = "layout"
"""The name under which a fragment's metadata says where in a layout it comes from."""


IMPORT = "import"
"""The name under which the undo log has what one import did."""


def project_key(db: Connection, project_n: int | None) -> str:
    """Return what a project is known by, also after it was forgotten and is stored again."""
    row = db.find("SELECT remote, path FROM projects WHERE n = :n", n=project_n)
    return forgotten_names.make_forgotten_name(row[0] or row[1]) if row else ""


def file_id(project_key: str, path: str) -> str:
    """Return the id of a project's file in tombstones."""
    return f"layout/{history.source_digest('', project_key, path)}"


def file_ids(db: Connection, project_ns: Sequence[int]) -> list[str]:
    """Return the ids of all files that were imported for projects: also ledgers and handoffs."""
    path = json_field("body", f"{LAYOUT}.path")
    ids = []
    for n in project_ns:
        paths = db.column(
            "SELECT path FROM layout_files WHERE project_n = :n"
            f" UNION SELECT {path} FROM handoffs WHERE project_n = :n AND {path} IS NOT NULL"
            f" UNION SELECT {path} FROM agent_ledgers WHERE project_n = :n AND {path} IS NOT NULL",
            n=n,
        )
        ids += [file_id(project_key(db, n), one) for one in paths]
    return ids


def cut_file(db: Connection, path: str, body: str) -> str | None:
    """Return the body of a file without what was forgotten; None if nothing of it is left."""
    is_forgotten = forgotten_texts.find(db, (path, body))
    left, _ = task_tables.cut_row("layout_file", {"path": path, "body": body}, is_forgotten)
    return None if left is None else str(left["body"])


def put_file(db: Connection, project_n: int | None, path: str, body: str, *, now: datetime) -> bool:
    """Store a file of a layout; return whether that changed anything."""
    sql = "SELECT n, body FROM layout_files WHERE project_n IS :project_n AND path = :path"
    row = db.find(sql, project_n=project_n, path=path)
    if row is None:
        db.insert("layout_files", project_n=project_n, path=path, body=body, at=clock.to_us(now))
        return True
    if row[1] != body:
        db.update("layout_files", row[0], body=body)  # the time stays that of its first import
    return bool(row[1] != body)


def describe_import(path: str, raw: Any, *, at: datetime, now: datetime) -> dict[str, Any]:
    """Return what the body of an imported handoff or ledger says of its import."""
    times = {"at": clock.to_us(at), "imported_at": clock.to_us(now)}
    return {LAYOUT: {"path": path, "raw": raw, **times}}


def remove_import(db: Connection, now: datetime) -> None:
    """Delete the files, handoffs and ledgers that were new at an import, and not changed since."""
    us = clock.to_us(now)
    db.run("DELETE FROM layout_files WHERE at = :at", at=us)
    is_imported = f"{json_number('body', f'{LAYOUT}.imported_at')} = :at"
    db.run(f"DELETE FROM handoffs WHERE {is_imported}", at=us)
    is_same = f"updated_at = {json_number('body', f'{LAYOUT}.at')}"
    db.run(f"DELETE FROM agent_ledgers WHERE {is_imported} AND {is_same}", at=us)


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
