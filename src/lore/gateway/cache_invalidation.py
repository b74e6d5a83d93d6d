"""In-process caches of the gateway, and their invalidation when memory is forgotten."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from lore.context import layers
from lore.errors import LoreError
from lore.records import Block, Entry

ClearCache = Callable[[str], None]
"""Clears a cache whose texts do not belong to this generation."""

CHECK_INTERVAL_S = 5.0
"""Forgotten texts may stay cached for this long; a check takes some microseconds."""


class CacheInvalidator:
    """Clears the caches of this process once any process has forgotten something.

    Cached texts belong to a generation, and whatever is forgotten begins another one.
    """

    def __init__(
        self,
        find_generation: Callable[[], str],
        *clear_caches: ClearCache,
        every_s: float = CHECK_INTERVAL_S,
    ) -> None:
        self._find_generation = find_generation
        self._clear_caches = [*clear_caches]
        self._every_s = every_s
        self._known: str | None = None
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="lore-invalidation", daemon=True)

    def register(self, clear_cache: ClearCache) -> None:
        """Add a cache, which is cleared after those before it."""
        self._clear_caches.append(clear_cache)

    def check(self) -> None:
        """Clear all caches if another generation has begun."""
        generation = self._find_generation()
        with self._lock:
            if generation == self._known:
                return
            for clear_cache in self._clear_caches:
                clear_cache(generation)
            self._known = generation

    def start(self) -> None:
        """Check again and again until it is closed, also while there are no requests."""
        self._thread.start()

    def close(self) -> None:
        """Stop checking."""
        self._is_closed.set()

    def _poll(self) -> None:
        while not self._is_closed.wait(self._every_s):
            with suppress(LoreError):  # A store that cannot be read is checked again later.
                self.check()


_MAX_ANNOTATIONS = 20_000
"""Some 300 bytes each; others are made again, and are the same."""


_BYTES = 16
"""Digest size: outputs of all projects share the cache, and none may be taken for another."""


class AnnotationCache:
    """Annotations that stand for old tool outputs, by what they are made of; safe for threads."""

    def __init__(self, max_size: int = _MAX_ANNOTATIONS) -> None:
        self._max_size = max_size
        self._annotations: OrderedDict[tuple[bytes, str, bool], str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, block: Block) -> str:
        """Return the annotation of an output."""
        key = (_digest(block.text), block.tool, block.failed)
        with self._lock:
            if key in self._annotations:
                self._annotations.move_to_end(key)
                return self._annotations[key]
        annotation = layers.annotate_output(block)
        with self._lock:
            self._annotations[key] = annotation
            while len(self._annotations) > self._max_size:
                self._annotations.popitem(last=False)
        return annotation

    def prepare(self, entries: Iterable[Entry]) -> None:
        """Make the annotations of all long outputs in advance."""
        for entry in entries:
            for block in entry.blocks:
                if layers.is_long_output(block):
                    self.of(block)

    def clear(self) -> None:
        """Drop all annotations."""
        with self._lock:
            self._annotations.clear()


def _digest(text: str) -> bytes:
    encoded = text.encode(errors="surrogatepass")
    return hashlib.blake2b(encoded, digest_size=_BYTES).digest()


_MAX_MARKERS = 200
"""A turn that waits for results has at most ten, and few turns wait at a time."""


class RecentMarkers:
    """The markers that this process set last, for turns that go on while the store is locked."""

    def __init__(self, max_size: int = _MAX_MARKERS) -> None:
        self._max_size = max_size
        self._markers: dict[str, str] = {}
        self._lock = threading.Lock()

    def add(self, stored: Mapping[str, str]) -> None:
        """Add markers by their ids."""
        with self._lock:
            self._markers |= stored
            for old in list(self._markers)[: -self._max_size]:
                del self._markers[old]

    def find(self, marker_id: str) -> str | None:
        """Return what a recent marker stands for, or None."""
        return self._markers.get(marker_id)

    def clear(self) -> None:
        """Drop all markers."""
        with self._lock:
            self._markers = {}
