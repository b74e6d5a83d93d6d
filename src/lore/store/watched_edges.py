"""Watched edges: drawn and taken away so that a cycle can be taken back."""

from __future__ import annotations

from datetime import datetime

from lore.records import EdgeKind
from lore.store import edges
from lore.store.edges import EdgeRow
from lore.store.sqlite import Connection
from lore.store.steps import Step, Watch, unwatched


def draw(
    db: Connection, edge: EdgeRow, *, now: datetime, watch: Watch = unwatched, note: str = ""
) -> bool:
    """Draw an edge, unless it is there: somebody may have given it a weight and a note.

    Tell whether it is new.
    """
    if edges.find(db, edge.source_n, edge.target_n, edge.kind) is not None:
        return False
    watch(db, Step("edge_added", edge.source_n, edge.target_n, edge.kind))
    edges.put(db, *edge[:3], now=now, weight=edge.weight, note=note)
    return True


def erase(
    db: Connection, source_n: int, target_n: int, kind: EdgeKind, *, watch: Watch = unwatched
) -> None:
    """Take an edge away, if it is there."""
    row = db.find(
        "DELETE FROM edges WHERE source_n = :source_n AND target_n = :target_n AND kind = :kind"
        " RETURNING weight, note, created_at",
        source_n=source_n,
        target_n=target_n,
        kind=kind,
    )
    if row:
        weight, note, at = row
        watch(db, Step("edge_dropped", source_n, target_n, kind, weight, note, at))


def rub_out(db: Connection, step: Step, _now: datetime) -> bool:
    """Take away what was drawn."""
    edges.remove(db, step.fragment_n or 0, step.other_n or 0, step.kind)  # type: ignore[arg-type]
    return True


def put_back(db: Connection, step: Step, _now: datetime) -> bool:
    """Draw an edge as it was, unless another of its sort was drawn since."""
    if step.kind == "hierarchical" and edges.find_parent(db, step.other_n or 0) is not None:
        return False
    done = db.run(
        "INSERT INTO edges (source_n, target_n, kind, weight, note, created_at)"
        " VALUES (:source_n, :target_n, :kind, :weight, :note, :at) ON CONFLICT DO NOTHING",
        source_n=step.fragment_n,
        target_n=step.other_n,
        kind=step.kind,
        weight=step.value,
        note=step.note,
        at=step.at,
    )
    return bool(done)
