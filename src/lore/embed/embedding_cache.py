"""An LRU cache in front of an embedder: a recent text is not embedded again.

A module of its own because it imports numpy, which opening an embedder must not.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lore import telemetry
from lore.embed.embedder import Embedder
from lore.text import message_features

MOST = 1_024
"""Cached texts, 1.5 MB of vectors: enough for a digest, which reads its texts twice in a row."""


class CachedEmbedder:
    """Wraps an embedder and caches the vectors of recent texts; queries are not cached.

    The cache keys are digests: the texts themselves may have to be forgotten.
    """

    def __init__(self, inner: Embedder, *, most: int = MOST) -> None:
        self._inner = inner
        self._most = most
        self._cache: OrderedDict[int, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._inner.name

    @property
    def identity(self) -> str:
        """Model, precision and input limit of the wrapped embedder."""
        return self._inner.identity

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""
        if query or not texts:
            return self._compute(texts, query=query)
        digest_of = {text: message_features.text_fingerprint(text) for text in texts}
        with self._lock:
            rows = {
                text: self._cache[digest]
                for text, digest in digest_of.items()
                if digest in self._cache
            }
        missing = [text for text in digest_of if text not in rows]
        if missing:
            rows |= dict(zip(missing, self._compute(missing), strict=True))
        with self._lock:
            for text, digest in digest_of.items():
                self._cache[digest] = rows[text]
                self._cache.move_to_end(digest)
            while len(self._cache) > self._most:
                self._cache.popitem(last=False)
        return np.stack([rows[text] for text in texts])

    def _compute(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        attributes: dict[str, telemetry.Value] = {
            telemetry.OPERATION: "embeddings",
            telemetry.MODEL: self.name,
            telemetry.DIMENSIONS: self.dimension,
            "lore.texts": len(texts),
            "lore.query": query,
        }
        with telemetry.span(telemetry.model_span("embeddings", self.name), attributes):
            return self._inner.embed(texts, query=query)

    def close(self) -> None:
        """Close the wrapped embedder."""
        self._inner.close()
