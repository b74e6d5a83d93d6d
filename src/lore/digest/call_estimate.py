"""Estimate how often a chat would be called in a day, from the conversations of the last weeks."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from lore.digest.extraction import MAX_CHAT_GROUP_TOKENS
from lore.digest.segments import MAX_TOKENS
from lore.records import CallEstimate
from lore.store import sessions
from lore.store.database import Database

DAYS = 14
"""Two weeks: working days and weekends, and not how someone worked a year ago."""


def estimate_calls(database: Database) -> CallEstimate:
    """Return the daily calls that digesting like in the last weeks would take."""
    since = database.now() - timedelta(days=DAYS)
    with database.read() as db:
        sizes = sessions.spoken_tokens_since(db, since)
    # logs, knowledge, and the check of each session: of what the agent says, and what tools say
    calls = sum(ceil(one / MAX_TOKENS) + ceil(one / MAX_CHAT_GROUP_TOKENS) + 2 for one in sizes)
    return CallEstimate(ceil(calls / DAYS), round(len(sizes) / DAYS, 1), round(sum(sizes) / DAYS))
