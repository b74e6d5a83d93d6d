"""What every digester offers: six questions about text, asked of a chat or answered by rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lore.records import Extract, Fragment, Log, Segment, Verdict


class Digester(Protocol):
    """Something that reads text for the digest; it gets no tools and changes nothing."""

    @property
    def identity(self) -> str:
        """Return who it is: `offline`, or the provider and model of a chat."""

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment in which nothing operational is lost."""

    def condense(self, logs: Sequence[str], former: str, *, limit_tokens: int) -> Log:
        """Write one log of several: current state, decisions, changes, timeline."""

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return a fresh text for a root whose children changed."""

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return the insight that several linked roots yield together; empty if there is none."""

    def judge(self, pairs: Sequence[tuple[Fragment, Fragment]]) -> Sequence[Verdict | None]:
        """Say for each pair (older, newer) what the newer one does to the older, if it is known."""
