"""Rebuilding: the keyword index made anew from the records, and the counts of entities."""

from __future__ import annotations

from lore.store import keywords, mentions
from lore.store.sqlite import Connection

_BATCH = 500


def rebuild_keywords(db: Connection) -> int:
    """Make the keyword index anew and return how many items it holds."""
    keywords.clear(db)
    ns = [row[0] for row in db.rows("SELECT n FROM messages ORDER BY n")]
    for start in range(0, len(ns), _BATCH):
        keywords.index_messages(db, ns[start : start + _BATCH])
    for n, text in db.rows("SELECT n, text FROM distillations"):
        keywords.add_distillation(db, n, text)
    for n, summary, content, kind in db.rows(
        "SELECT n, summary, content, kind FROM fragments"
        " WHERE deleted_at IS NULL AND superseded_by IS NULL"
    ):
        keywords.add_fragment(db, n, summary, content, kind)
    for (n,) in db.rows("SELECT n FROM sessions"):
        keywords.index_session(db, n)
    mentions.recount(db)
    return keywords.count(db)
