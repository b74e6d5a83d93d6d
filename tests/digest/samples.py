"""Candidates without a store, and the recording of episodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lore.digest import episodes
from lore.digest.placement import Candidate
from lore.records import Fragment, FragmentKind
from lore.store.database import Database
from tests.fakes import NOON


def candidate(
    content: str, *, n: int = 1, cosine: float = 0.5, kind: FragmentKind = "fact",
    payload: Mapping[str, Any] | None = None, at: datetime = NOON,
) -> Candidate:  # fmt: skip
    """Return a known fragment, so near to a draft."""
    fragment = Fragment(
        id=f"f{n}", content=content, summary=content, depth=0, kind=kind,
        payload=dict(payload or {}), importance=0.5, confidence=0.7, decay_rate=0.04,
        access_count=0, last_accessed=None, last_reinforced=at, relevance=0.5, origin="user",
        trust=2, project_id=None, session_id=None, source_messages=(), superseded_by=None,
        valid_from=None, valid_to=None, created_at=at, updated_at=at, version=1, parent_id=None,
        metadata={},
    )  # fmt: skip
    return Candidate(n, cosine, fragment)


def store_episode(database: Database, session: str) -> str | None:
    """Tell a session as an episode and return the fragment's id, if it is kept."""
    episode = episodes.derive_episode(database, session)
    return None if episode is None else episodes.store_episode(database, session, episode)
