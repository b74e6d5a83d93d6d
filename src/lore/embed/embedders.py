"""The embedders of one memory: the one that the settings name, and those that served before."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lore.embed.embedder import Embedder, open_former
from lore.embed.embedding_cache import CachedEmbedder

if TYPE_CHECKING:
    from lore.settings import Settings


class Embedders:
    """Finds an embedder by its identity; each is opened once and loads its model when used."""

    def __init__(self, wanted: Embedder, settings: Settings, *, owns_wanted: bool) -> None:
        self.wanted = CachedEmbedder(wanted) if wanted.dimension else wanted
        self._settings = settings
        self._owns_wanted = owns_wanted
        self._former: dict[str, Embedder] = {}
        self._lock = threading.Lock()

    def find(self, identity: str) -> Embedder | None:
        """Return the embedder of an identity, or None if it is not at hand."""
        if identity == self.wanted.identity:
            return self.wanted
        with self._lock:
            if identity not in self._former:
                former = open_former(self._settings, identity)
                if former is None:
                    return None
                self._former[identity] = CachedEmbedder(former)
            return self._former[identity]

    def drop_former(self, *, serving: str) -> None:
        """Drop the embedders that no longer serve; a model still in use unloads when idle."""
        with self._lock:
            self._former = {name: one for name, one in self._former.items() if name == serving}

    def close(self) -> None:
        """Release all embedders, except one that the caller passed in."""
        with self._lock:
            for former in self._former.values():
                former.close()
            self._former.clear()
        if self._owns_wanted:
            self.wanted.close()
