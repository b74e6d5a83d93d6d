"""Parse cache: reuse the parsed form of messages that clients send again.

An agent sends its whole history with every request, and only the end of it is new.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")

MAX_CACHE_BYTES = 16_000_000
"""The histories of about twenty long sessions; the parsed values take three times as much."""


class ParseCache(Generic[T]):
    """Thread-safe LRU cache of parsed values by their raw bytes.

    Callers must not modify the values, because they are shared.
    """

    def __init__(self, most_bytes: int = MAX_CACHE_BYTES) -> None:
        self._max_bytes = most_bytes
        self._lock = threading.Lock()
        self._values: OrderedDict[bytes, T] = OrderedDict()
        self._bytes = 0
        _CACHES.add(self)

    def get(self, raw: bytes) -> T | None:
        """Return the value of these bytes, or None."""
        with self._lock:
            value = self._values.get(raw)
            if value is not None:
                self._values.move_to_end(raw)
            return value

    def get_all(self, all_raw: Sequence[bytes]) -> list[T | None]:
        """Return the values of several bytes, each as `get` does."""
        with self._lock:
            values, touch = self._values, self._values.move_to_end
            cached = [values.get(raw) for raw in all_raw]
            for raw, value in zip(all_raw, cached, strict=True):
                if value is not None:
                    touch(raw)
            return cached

    def put(self, raw: bytes, value: T) -> None:
        """Add a value; evict the least recently used ones if the cache is full."""
        with self._lock:
            if raw not in self._values:
                self._bytes += len(raw)
            self._values[raw] = value
            while self._bytes > self._max_bytes:
                evicted, _ = self._values.popitem(last=False)
                self._bytes -= len(evicted)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()
            self._bytes = 0


_CACHES: WeakSet[ParseCache[Any]] = WeakSet()
"""All caches of this process, so that they can be cleared together."""


def clear_caches() -> None:
    """Clear all parse caches, for instance because their contents must be forgotten."""
    for one in tuple(_CACHES):
        one.clear()
