"""Telling sessions: the two steps that the front desk does in one."""

from __future__ import annotations

from lore.curate import episodes
from lore.store.db import Database


def record(database: Database, session: str) -> str | None:
    """Tell a session as an episode and return the fragment's id, if it is kept."""
    episode = episodes.derive(database, session)
    return None if episode is None else episodes.keep(database, session, episode)
