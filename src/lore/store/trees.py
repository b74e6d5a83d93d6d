"""Trees: which fragment hangs below which, and at what depth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lore.store import edges, fragments, watched_edges
from lore.store.edges import EdgeRow
from lore.store.sqlite import Connection
from lore.store.steps import Step, Watch, unwatched


def reparent(
    db: Connection, child: int, parent: int | None, *, now: datetime, watch: Watch = unwatched
) -> None:
    """Hang a fragment with all below it under another one, or let it be a root.

    All of them get the depths that belong there. Nobody may hang below itself.
    """
    former = edges.find_parent(db, child)
    if former is not None:
        if former == parent:
            return
        watched_edges.erase(db, former, child, "hierarchical", watch=watch)
    depth = 0
    if parent is not None:
        hung = EdgeRow(parent, child, "hierarchical", 1.0)
        watched_edges.draw(db, hung, now=now, watch=watch)
        depth = int(db.value("SELECT depth FROM fragments WHERE n = :n", n=parent)) + 1
    set_depths(db, child, depth, watch=watch)


def take_place(
    db: Connection, child: int, parent: int, *, now: datetime, watch: Watch = unwatched
) -> None:
    """Let a child stand where its parent stands, and its siblings below it."""
    reparent(db, child, edges.find_parent(db, parent), now=now, watch=watch)
    for sibling in edges.all_children(db, parent):
        reparent(db, sibling, child, now=now, watch=watch)


def set_depths(db: Connection, top: int, depth: int, *, watch: Watch = unwatched) -> None:
    """Give a fragment a depth, and all below it those that follow from it."""
    rows = _misplaced(db, top, depth)
    for n, _, old in rows:
        watch(db, Step("depth", n, value=old))
    for n, fresh, _ in rows:
        fragments.set_depth(db, n, fresh)


def _misplaced(db: Connection, top: int, depth: int) -> list[tuple[int, int, int]]:
    """Return what has another depth than it should, if the top has this one: (n, should, has)."""
    rows = db.rows(
        "WITH RECURSIVE below (n, depth) AS (SELECT :top, :depth UNION"
        " SELECT e.target_n, b.depth + 1 FROM below b JOIN edges e ON e.source_n = b.n"
        " WHERE e.kind = 'hierarchical' AND b.depth < 64)"
        " SELECT b.n, b.depth, f.depth FROM below b JOIN fragments f ON f.n = b.n"
        " WHERE b.depth <> f.depth",
        top=top,
        depth=depth,
    )
    return [(n, should, has) for n, should, has in rows]


def settle(db: Connection, done: Sequence[Step], *, now: datetime) -> None:
    """Give what was moved back a parent and its depth, also where the former one is gone."""
    moved = [step for step in done if step.kind == "hierarchical"]
    for step in moved:
        child = step.other_n or 0
        lost = fragments.by_number(db, [child]) and edges.find_parent(db, child) is None
        if step.verb == "edge_added" and lost:
            edges.put(db, step.fragment_n or 0, child, "hierarchical", now=now)
    for child in {step.other_n or 0 for step in moved}:
        set_depths(db, child, len(edges.ancestors(db, child)))


def move_back(db: Connection, step: Step, _now: datetime) -> bool:
    """Give a fragment its former depth back."""
    fragments.set_depth(db, step.fragment_n or 0, int(step.value or 0))
    return True
