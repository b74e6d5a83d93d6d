"""An embedder that remembers: a text that was embedded a moment ago is not embedded again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lore.embed.embedder import Embedder
from lore.text import digests

MOST = 1_024
"""Texts that are remembered, 1.5 MB of vectors: what a digest reads twice, it reads in one go."""


class RememberingEmbedder:
    """Another embedder, with the vectors of the last texts at hand; questions are not kept.

    Nor are the texts, which may be forgotten: a vector is found by a digest.
    """

    def __init__(self, inner: Embedder, *, most: int = MOST) -> None:
        self._inner = inner
        self._most = most
        self._known: OrderedDict[int, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._inner.name

    @property
    def identity(self) -> str:
        """Model, precision and input limit, as of the other one."""
        return self._inner.identity

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""
        if query or not texts:
            return self._inner.embed(texts, query=query)
        digest_of = {text: digests.of_text(text) for text in texts}
        with self._lock:
            rows = {
                text: self._known[digest]
                for text, digest in digest_of.items()
                if digest in self._known
            }
        unknown = [text for text in digest_of if text not in rows]
        if unknown:
            rows |= dict(zip(unknown, self._inner.embed(unknown), strict=True))
        with self._lock:
            for text, digest in digest_of.items():
                self._known[digest] = rows[text]
                self._known.move_to_end(digest)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return np.stack([rows[text] for text in texts])

    def close(self) -> None:
        """Give back what the other embedder holds."""
        self._inner.close()
