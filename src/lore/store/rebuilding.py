"""Rebuilding: the keyword index and the mentions of entities, made anew from the records."""

from __future__ import annotations

from lore.store import keywords, mentions
from lore.store.sqlite import Connection
from lore.text import entities

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
    _rebuild_mentions(db)
    return keywords.count(db)


def _rebuild_mentions(db: Connection) -> None:
    db.run("DELETE FROM mentions")
    db.run("DELETE FROM entities")
    for n, content, summary in db.rows("SELECT n, content, summary FROM fragments ORDER BY n"):
        found = entities.of_fragment(content, summary)
        mentions.add(db, n, found)
        mentions.link_titles(db, n, content, found)
