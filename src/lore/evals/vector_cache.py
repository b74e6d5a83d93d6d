"""A cache of vectors on disk, so that an evaluation embeds each text once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lore import settings
from lore.embed import Embedder, open_embedder

_KEY_BYTES = 16

Matrix = NDArray[np.float32]


class DiskCachedEmbedder:
    """Return cached vectors from a file, and embed only new texts."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self.name = inner.name
        self.identity = inner.identity
        self.dimension = inner.dimension
        self._inner = inner
        folder.mkdir(parents=True, exist_ok=True)
        safe = inner.identity.replace("/", "-")
        self._path = folder / f"{safe}.vectors"
        self._record = _KEY_BYTES + 4 * inner.dimension
        self._known: dict[bytes, Matrix] = {}
        self._load()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        """Return the vectors of texts, like the wrapped embedder."""
        keys = [self._key(text, query=query) for text in texts]
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if key not in self._known
        }
        if missing:
            fresh = self._inner.embed(list(missing.values()), query=query)
            self._append(list(missing), fresh)
        vectors = np.zeros((len(keys), self.dimension), np.float32)
        for place, key in enumerate(keys):
            vectors[place] = self._known[key]
        return vectors

    def close(self) -> None:
        """Close the wrapped embedder."""
        self._inner.close()

    def _key(self, text: str, *, query: bool) -> bytes:
        kind = b"q" if query else b"p"
        return hashlib.blake2b(
            kind + text.encode("utf-8", "replace"), digest_size=_KEY_BYTES
        ).digest()

    def _load(self) -> None:
        if not self._path.exists():
            return
        raw = self._path.read_bytes()
        whole = len(raw) // self._record
        if len(raw) % self._record:
            os.truncate(self._path, whole * self._record)
        table = np.frombuffer(raw[: whole * self._record], np.uint8).reshape(whole, self._record)
        matrix = table[:, _KEY_BYTES:].copy().view(np.float32)
        for place in range(whole):
            self._known[table[place, :_KEY_BYTES].tobytes()] = matrix[place]

    def _append(self, keys: list[bytes], matrix: Matrix) -> None:
        rows = np.ascontiguousarray(matrix, np.float32)
        data = b"".join(key + rows[i].tobytes() for i, key in enumerate(keys))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
        self._known.update({key: rows[i] for i, key in enumerate(keys)})


@contextmanager
def open_cached_embedder(
    folder: Path | None, local_model: str = ""
) -> Iterator[tuple[DiskCachedEmbedder, str]]:
    """Open the configured embedder or a local model with a cache; yield it with its notice."""
    chosen = replace(settings.load().settings, embed_threads=0)
    if local_model:
        chosen = replace(chosen, embed_provider="local", embed_model=local_model)
    opened = open_embedder(chosen)
    folder = folder or Path(tempfile.gettempdir()) / "lore-eval-cache"
    embedder = DiskCachedEmbedder(opened.embedder, folder)
    try:
        yield embedder, opened.notice
    finally:
        embedder.close()
