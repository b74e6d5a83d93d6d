"""Fakes that speak the protocols of the house; nothing is patched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from lore.text import words

NOON = datetime(2026, 5, 13, 12, tzinfo=UTC)
"""A Wednesday."""


class FakeEmbedder:
    """Hashes each word to a direction: texts that share words are near each other."""

    def __init__(
        self,
        identity: str = "fake",
        dimension: int = 32,
        *,
        before: Callable[[Sequence[str]], object] | None = None,
    ) -> None:
        self.name = identity
        self.identity = identity
        self.dimension = dimension
        self.asked: list[str] = []
        self.closed = False
        self._before = before

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text."""
        if self._before:
            self._before(texts)
        self.asked += texts
        rows = [self._row(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.dimension)

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    def _row(self, text: str) -> NDArray[np.float32]:
        total = np.zeros(self.dimension)
        for word in words.split(text) or [""]:
            digest = hashlib.sha256(f"{self.identity}\0{word}".encode()).digest()
            seed = int.from_bytes(digest[:8], "little")
            total += np.random.default_rng(seed).standard_normal(self.dimension)
        return (total / np.linalg.norm(total)).astype(np.float32)


class FixedClock:
    """A clock that moves only when it is told to."""

    def __init__(self, moment: datetime = NOON) -> None:
        self.moment = moment

    def __call__(self) -> datetime:
        """Return the time at which it stands."""
        return self.moment

    def advance(self, **by: float) -> None:
        """Move on by so much."""
        self.moment += timedelta(**by)
