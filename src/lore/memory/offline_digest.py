"""A whole memory digested offline, as evaluations and demonstrations need it."""

from __future__ import annotations

from collections.abc import Callable

from lore.distill import condensing, distilling
from lore.llm.offline.digester import OfflineDigester
from lore.memory.desk import Desk
from lore.records import Session

Digest = Callable[[Desk, list[Session]], None]


def distil(desk: Desk, found: list[Session]) -> None:
    """Distil sessions and condense the long ones."""
    embedder = desk.sources.embedder
    digester = OfflineDigester(embedder.embed if embedder.dimension else None)
    threshold = desk.settings.distill_meta_threshold
    for session in found:
        distilling.distil_session(desk.database, digester, session.id, dimension=embedder.dimension)
        condensing.condense_session(desk.database, digester, session.id, threshold=threshold)


STEPS: tuple[Digest, ...] = (distil,)
"""What turns messages into what is known, in order; curation takes its place behind distilling."""


def digest(desk: Desk, found: list[Session]) -> None:
    """Take sessions through every step, offline, and give what was made its vectors."""
    for step in STEPS:
        step(desk, found)
    desk.embed_waiting()
