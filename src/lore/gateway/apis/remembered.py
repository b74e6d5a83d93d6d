"""Remembered: what pieces of requests were read as, for the next request that says them again.

An agent sends its whole history with every request, and all but the end of it is known.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")

MOST_BYTES = 16_000_000
"""The histories of some twenty long sessions; with what was made of them, three times that."""


class Remembered(Generic[T]):
    """Values by the bytes that they were made of, the latest ones; for many threads.

    Whoever takes a value changes nothing in it: others have the same.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._values: OrderedDict[bytes, T] = OrderedDict()
        self._bytes = 0
        _ALL.add(self)

    def find(self, raw: bytes) -> T | None:
        """Return what these bytes were read as, or None."""
        with self._lock:
            found = self._values.get(raw)
            if found is not None:
                self._values.move_to_end(raw)
            return found

    def put(self, raw: bytes, value: T) -> None:
        """Remember a value; what was asked for least lately makes room for it."""
        with self._lock:
            if raw not in self._values:
                self._bytes += len(raw)
            self._values[raw] = value
            while self._bytes > self._most_bytes:
                gone, _ = self._values.popitem(last=False)
                self._bytes -= len(gone)

    def clear(self) -> None:
        """Remember nothing."""
        with self._lock:
            self._values.clear()
            self._bytes = 0


_ALL: WeakSet[Remembered[Any]] = WeakSet()
"""What all wires remember: it is let go of in one go."""


def let_go() -> None:
    """Remember nothing of what any request said: it may be what nobody is to remember."""
    for one in tuple(_ALL):
        one.clear()
