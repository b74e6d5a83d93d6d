"""The offline digester: rules and the embedder, the same answer every time, no network."""

from __future__ import annotations

from collections.abc import Sequence

from lore.llm.offline import (
    condensing,
    extracting,
    judging,
    observing,
    overview,
    reflecting,
)
from lore.llm.offline.topics import Embed
from lore.records import Extract, Fragment, Log, Segment, Verdict


class OfflineDigester:
    """Answers the six questions by rules; without `embed`, words are compared."""

    @property
    def identity(self) -> str:
        """Return who it is."""
        return "offline"

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment in which nothing operational is lost."""
        return observing.observe(segment, limit_tokens=limit_tokens)

    def condense(self, logs: Sequence[str], former: str, *, limit_tokens: int) -> Log:
        """Write one log of several: current state, decisions, changes, timeline."""
        return condensing.condense(logs, former, limit_tokens=limit_tokens)

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""
        return extracting.extract(exchange, embed=self._embed)

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return a fresh text for a root whose children changed."""
        return overview.overview(root, children)

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return the insight that several linked roots yield together; empty if there is none."""
        return reflecting.reflect(cluster)

    def judge(self, pairs: Sequence[tuple[Fragment, Fragment]]) -> list[Verdict]:
        """Say for each pair (older, newer) what the newer one does to the older."""
        return judging.judge(pairs)
