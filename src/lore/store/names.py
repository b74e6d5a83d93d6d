"""Names: titles, branches and names of sessions that were forgotten and must not come back.

An agent's files still have what a person had forgotten here. A digest of a name, bound to its
session, knows it again without holding it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from lore.store import changes
from lore.store.sqlite import Connection

What = Literal["title", "branch", "session"]


class Named(NamedTuple):
    """A session by its id, its agent and the agent's own name for it."""

    id: str
    agent: str
    name: str


def bury(db: Connection, session: Named, what: What, text: str, *, now: datetime) -> None:
    """Remember that a name of a session is forgotten."""
    if text:
        source = _source(session.agent, session.name, what, text)
        id_ = f"{session.id}/{what}/{source[:8]}"
        changes.bury(db, [id_], now, sources={id_: source})


def kept(db: Connection, agent: str, name: str, what: What, text: str) -> str:
    """Return a name of a session, or nothing if it was forgotten."""
    if not text or not changes.buried_sources(db, [_source(agent, name, what, text)]):
        return text
    return ""


def find_renamed(db: Connection, agent: str, name: str) -> str | None:
    """Return the id of the session whose own name was forgotten."""
    found = changes.buried_sources(db, [_source(agent, name, "session", name)])
    return next((id_.partition("/")[0] for id_ in found.values()), None)


def are_among(ids: Iterable[str]) -> bool:
    """Tell whether some of the tombstones are of names."""
    return any("/title/" in id_ or "/branch/" in id_ or "/session/" in id_ for id_ in ids)


def _source(agent: str, name: str, what: What, text: str) -> str:
    return changes.source_of(agent, name, f"\0{what}\0{text}")
