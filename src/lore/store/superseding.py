"""Superseding: a newer fragment in the place of an older one; both are kept."""

from __future__ import annotations

from datetime import datetime

from lore.store import edges, fragments, items, watched_edges
from lore.store.edges import EdgeRow
from lore.store.sqlite import Connection
from lore.store.steps import Step, Watch, unwatched


def supersede(
    db: Connection, older: int, newer: int, *, now: datetime, watch: Watch = unwatched
) -> None:
    """Let a newer fragment stand in the place of an older one."""
    former, valid_to = db.rows(
        "SELECT superseded_by, valid_to FROM fragments WHERE n = :n", n=older
    )[0]
    watch(db, Step("superseded", older, newer, note=former or "", at=valid_to))
    watched_edges.draw(db, EdgeRow(newer, older, "supersedes", 1.0), now=now, watch=watch)
    fragments.set_superseded(db, older, items.ids_of(db, [newer])[newer], now=now)


def let_stand(db: Connection, step: Step, now: datetime) -> bool:
    """Let the older one stand again, unless a third one took its place."""
    n, newer = step.fragment_n or 0, step.other_n or 0
    holder = db.value("SELECT superseded_by FROM fragments WHERE n = :n", n=n)
    if holder != items.ids_of(db, [newer]).get(newer):
        return False
    edges.remove(db, newer, n, "supersedes")
    fragments.set_superseded(db, n, step.note or None, now=now)
    db.run("UPDATE fragments SET valid_to = :at WHERE n = :n", at=step.at, n=n)
    return True
