"""The offline digester: answers the six questions by rules, without a model or network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lore.llm.offline import judging, overview, reflecting
from lore.records import Extract, Fragment, Log, Segment, Verdict

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Gives one row of length 1 for each text."""

IDENTITY = "offline"


class OfflineDigester:
    """Reads text for the digest by rules; with an embedder it also sees what is alike."""

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    @property
    def identity(self) -> str:
        """Return who it is."""
        return IDENTITY

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment in which nothing operational is lost."""
        raise NotImplementedError

    def condense(self, logs: Sequence[str], former: str, *, limit_tokens: int) -> Log:
        """Write one log of several: current state, decisions, changes, timeline."""
        raise NotImplementedError

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""
        raise NotImplementedError

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return a fresh text for a root whose children changed."""
        return overview.overview(root, children)

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return the insight that several linked roots yield together; empty if there is none."""
        return reflecting.reflect(cluster)

    def judge(self, pairs: Sequence[tuple[Fragment, Fragment]]) -> list[Verdict]:
        """Say for each pair (older, newer) what the newer one does to the older."""
        return judging.judge(pairs)
