"""The digester of this machine: rules and the embedder, no model, no key, no network."""

from __future__ import annotations

from collections.abc import Sequence

from lore.llm.offline import extracting
from lore.llm.offline.topics import Embed
from lore.records import Extract, Fragment, Log, Segment, Verdict


class OfflineDigester:
    """Answers by rules, the same for the same text; without `embed`, words are compared."""

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    @property
    def identity(self) -> str:
        """Return who it is."""
        return "offline"

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment in which nothing operational is lost."""
        raise NotImplementedError

    def condense(self, logs: Sequence[str], former: str, *, limit_tokens: int) -> Log:
        """Write one log of several: current state, decisions, changes, timeline."""
        raise NotImplementedError

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""
        return extracting.extract(exchange, embed=self._embed)

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return a fresh text for a root whose children changed."""
        raise NotImplementedError

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return the insight that several linked roots yield together; empty if there is none."""
        raise NotImplementedError

    def judge(self, pairs: Sequence[tuple[Fragment, Fragment]]) -> list[Verdict]:
        """Say for each pair (older, newer) what the newer one does to the older."""
        raise NotImplementedError
