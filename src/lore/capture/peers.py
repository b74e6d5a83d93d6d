"""Peers: what the export of another home may bring, and how far it is believed."""

from __future__ import annotations

from typing import Any

from lore.records import TRUST, Origin
from lore.store import fragments, loading
from lore.store.db import Connection

Line = dict[str, Any]

_BROUGHT = frozenset(("project", "session", "message", "fragment", "version", "edge"))
"""The rest would act here: tombstones delete; watermarks and claims keep files and messages from
being read; staged turns are stored later, as one's own; spend counts against one's budget. A
distillation is made of messages, and can be made anew."""


def as_peers(db: Connection, line: Line) -> Line | None:
    """Return a record of another home as a peer's word; None if it is not to come in."""
    if line["record"] not in _BROUGHT:
        return None
    if line["record"] == "message":
        return {**line, "origin": _lowered(line["origin"])}
    if line["record"] == "fragment":
        origin = _lowered(line["origin"])
        return {**line, "origin": origin, "trust": min(line["trust"], TRUST[origin])}
    ends = [line[name] for name in ("fragment_id", "source", "target") if name in line]
    return line if _are_peers(db, ends) else None


def _lowered(origin: Origin) -> Origin:
    return min(origin, "peer", key=TRUST.__getitem__)


def _are_peers(db: Connection, ids: list[str]) -> bool:
    """Tell whether fragments are no more trusted than a peer: others are not drawn upon."""
    found = fragments.by_number(db, loading.numbers_of(db, ids))
    return all(fragment.trust <= TRUST["peer"] for fragment in found.values())
