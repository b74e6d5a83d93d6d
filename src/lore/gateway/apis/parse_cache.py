"""Parse cache: reuse the parsed form of messages that clients send again.

An agent sends its whole history with every request, and only the end of it is new.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
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


_MAX_PREFIXES = 16
"""Conversations whose beginnings are cached; each is compared with a request."""


class PrefixCache(Generic[T]):
    """Thread-safe cache of the parsed values of what requests begin with.

    Callers must not modify the values, because they are shared.
    """

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._prefixes: list[tuple[bytes, T]] = []
        _CACHES.add(self)

    def find(self, raw: bytes) -> tuple[bytes, T] | None:
        """Return the longest prefix of these bytes with its value, or None."""
        with self._lock:
            prefixes = [one for one in self._prefixes if raw.startswith(one[0])]
        return max(prefixes, key=lambda one: len(one[0]), default=None)

    def put(self, prefix: bytes, value: T, *, extends: bytes = b"") -> None:
        """Add a prefix in place of one that it extends; evict those that were added first."""
        with self._lock:
            others = [one for one in self._prefixes if one[0] not in (prefix, extends)]
            self._prefixes = [*others, (prefix, value)][-_MAX_PREFIXES:]
            while sum(len(one[0]) for one in self._prefixes) > self._max_bytes:
                del self._prefixes[0]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._prefixes = []


_CACHES: WeakSet[ParseCache[Any] | PrefixCache[Any]] = WeakSet()
"""All caches of this process, so that they can be cleared together."""


def clear_caches() -> None:
    """Clear all parse caches, for instance because their contents must be forgotten."""
    for one in tuple(_CACHES):
        one.clear()
