"""Recent: what was asked for last is held, and besides it whatever somebody still works on."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by name, as many as `most`; for many threads.

    One that is let go of while a thread works on it is still found: two that share a name would
    have two locks.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: OrderedDict[str, T] = OrderedDict()
        self._in_use: WeakValueDictionary[str, T] = WeakValueDictionary()
        self._lock = threading.Lock()

    def find(self, name: str) -> T | None:
        """Return the value of a name, None where none is held."""
        with self._lock:
            found = self._in_use.get(name)
            if found is not None:
                self._hold(name, found)
            return found

    def add(self, name: str, value: T) -> T:
        """Hold a value, unless there is one of this name; return the one that is held."""
        with self._lock:
            held = self._in_use.setdefault(name, value)
            self._hold(name, held)
            return held

    def all(self) -> list[T]:
        """Return all that is held, or worked on."""
        with self._lock:
            return list(self._in_use.values())

    def _hold(self, name: str, value: T) -> None:
        self._last[name] = value
        self._last.move_to_end(name)
        while len(self._last) > self._most:
            self._last.popitem(last=False)
