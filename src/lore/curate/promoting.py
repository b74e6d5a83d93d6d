"""Promoting: what was confirmed in several projects may hold in all."""

from __future__ import annotations

from lore import clock
from lore.curate.fragments import scoped
from lore.errors import InvalidInput
from lore.records import UNASKED_TRUST, Offer
from lore.store import actions, confirmations, fragments, items, superseding
from lore.store.db import Connection, Database
from lore.store.fragments import NewFragment
from lore.text import entities

PROJECTS, CONFIDENCE = 3, 0.8
"""Confirmed in so many projects and so sure, a fragment is offered; from the specification."""


def offers(db: Connection) -> list[Offer]:
    """Return what may be promoted, confirmed in most projects first."""
    found = confirmations.widely_confirmed(
        db, projects=PROJECTS, confidence=CONFIDENCE, trust=UNASKED_TRUST
    )
    known = fragments.by_number(db, [n for n, _ in found])
    return [Offer(known[n], confirmations.by_project(db, n)) for n, _ in found]


def promote(database: Database, id_: str, *, key: str = "") -> str:
    """Let a fragment hold in all projects and return the id of the one that does.

    It is a new fragment in the place of the old one: undo lets the old one stand again. A person
    promotes, so a preference of an assistant stands like the person's own from then on.
    """
    now = database.now()

    def work(db: Connection) -> str:
        n = items.resolve(db, id_, type="fragment").n
        old = fragments.get(db, n)
        if old.project_id is None:
            msg = f"Fragment '{id_}' holds in all projects already."
            raise InvalidInput(msg)
        if old.superseded_by is not None or fragments.is_deleted(db, n):
            msg = f"Fragment '{id_}' no longer stands, so it cannot be promoted."
            raise InvalidInput(msg)
        new = NewFragment(
            id=clock.new_id(now),
            content=old.content,
            summary=old.summary,
            kind=old.kind,
            created_at=old.created_at,
            payload=old.payload,
            importance=old.importance,
            confidence=old.confidence,
            origin=old.origin,
            trust=old.trust,
            source_messages=old.source_messages,
            mentions=entities.of_fragment(old.content, old.summary),
            metadata={**old.metadata, "promoted_from": old.id},
        )
        newer = fragments.add(db, new, now=now)
        superseding.supersede(db, n, newer, now=now)
        actions.record(db, "store", newer, now=now)
        return new.id

    return database.write(work, key=scoped("promote", key))
