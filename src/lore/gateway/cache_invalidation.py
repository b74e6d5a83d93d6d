"""In-process caches of the gateway, and their invalidation when memory is forgotten."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

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


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The values that were used last, by their keys; safe for threads."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Add a value; the least recently used one is dropped where there are too many."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._max_size:
                self._values.popitem(last=False)

    def pop(self, key: K) -> V | None:
        """Remove and return the value of a key, or None."""
        with self._lock:
            return self._values.pop(key, None)

    def items(self) -> list[tuple[K, V]]:
        """Return all keys with their values."""
        with self._lock:
            return list(self._values.items())

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()


_MAX_ANNOTATIONS = 20_000
"""Some 300 bytes each; others are made again, and are the same."""

_BYTES = 16
"""Digest size: outputs of all projects share the cache, and none may be taken for another."""


class AnnotationCache:
    """Annotations that stand for old tool outputs, by what they are made of; safe for threads."""

    def __init__(self, max_size: int = _MAX_ANNOTATIONS) -> None:
        self._annotations = BoundedCache[tuple[bytes, str, bool], str](max_size)

    def of(self, block: Block) -> str:
        """Return the annotation of an output."""
        text = block.text.encode(errors="surrogatepass")
        digest = hashlib.blake2b(text, digest_size=_BYTES).digest()
        key = (digest, block.tool, block.failed)
        annotation = self._annotations.get(key)
        if annotation is None:
            annotation = layers.annotate_output(block)
            self._annotations.put(key, annotation)
        return annotation

    def prepare(self, entries: Iterable[Entry]) -> None:
        """Make the annotations of all long outputs in advance."""
        for entry in entries:
            for block in entry.blocks:
                if layers.is_long_output(block):
                    self.of(block)

    def clear(self) -> None:
        """Drop all annotations."""
        self._annotations.clear()
