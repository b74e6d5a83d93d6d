"""Vectors of owners in the memory of this process, as many as a limit allows.

The database is the source of truth. It counts the transactions that change an owner's vectors, so
that one small query of a search's own snapshot tells whether what is here is still right.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from lore.index.owner_vectors import OwnerVectors

DEFAULT_MB = 256
"""The limit, if the setting says nothing else: 80 owners of 10,000 vectors of 256 dimensions."""

_MOST_OWNERS = 10_000
"""Owners who are remembered: that they have searched once, or have too many vectors."""


class VectorState(NamedTuple):
    """The state of an owner's vectors: a life of the memory, and the changes in it so far."""

    epoch: str
    changes: int

    def follows(self, other: VectorState | None) -> bool:
        """Return whether vectors of the other state lack something of this one."""
        return other is None or self.epoch != other.epoch or self.changes > other.changes

    def precedes(self, other: VectorState | None) -> bool:
        """Return whether vectors of the other state may have what this one does not have yet."""
        return other is not None and self.epoch == other.epoch and self.changes < other.changes


class CacheKey(NamedTuple):
    """Whose vectors, and of which embedder."""

    owner: UUID
    embedder: str


@dataclass(slots=True)
class _Entry:
    """What is known of an owner's vectors; None if they are too many."""

    used_at: int
    state: VectorState | None = None
    vectors: OwnerVectors | None = None
    size: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class VectorCache:
    """The vectors of the owners who search most, for the threads of one process.

    An owner's vectors are read at the second search: a process that asks once scans them in the
    database. When the limit is reached, they replace those of the owner whose last search is the
    longest ago, if that is longer than the owner's own last one.
    """

    def __init__(self, most_bytes: int = DEFAULT_MB * 1_000_000) -> None:
        self.most_bytes = most_bytes
        self._entries: OrderedDict[CacheKey, _Entry] = OrderedDict()
        self._misses: OrderedDict[CacheKey, int] = OrderedDict()
        self._searches = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The bytes of all vectors that are here."""
        with self._lock:
            return self._size()

    def find(
        self,
        key: CacheKey,
        state: VectorState,
        load: Callable[[OwnerVectors | None], OwnerVectors | None],
    ) -> OwnerVectors | None:
        """Return vectors that lack nothing of a state, or None if the database is to be searched.

        `load` reads what has changed since the vectors that it gets, or all; it returns None if
        they are too many, which they then remain.
        """
        entry = self._find_entry(key)
        if entry is None:
            return None
        with entry.lock:
            if state.precedes(entry.state):  # an older moment, or a database that was set back
                self._drop([key])
                return None
            if state.follows(entry.state):
                is_same_life = entry.state is not None and entry.state.epoch == state.epoch
                if is_same_life and entry.vectors is None:
                    return None
                try:
                    entry.vectors = load(entry.vectors if is_same_life else None)
                except BaseException:
                    self._drop([key])
                    raise
                entry.state = state
                entry.size = entry.vectors.size if entry.vectors is not None else 0
                self._evict(key)
            return entry.vectors

    def release(self, owner: UUID) -> None:
        """Forget what is here of an owner."""
        with self._lock:
            keys = [key for key in self._entries if key.owner == owner]
        self._drop(keys)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._misses.clear()

    def _find_entry(self, key: CacheKey) -> _Entry | None:
        with self._lock:
            self._searches += 1
            entry = self._entries.get(key)
            if entry is None and self._admits(key):
                entry = self._entries[key] = _Entry(self._searches)
            if entry is not None:
                entry.used_at = self._searches
                self._entries.move_to_end(key)
            return entry

    def _admits(self, key: CacheKey) -> bool:
        """Return whether an owner who is not here searches more often than one who is."""
        last = self._misses.pop(key, None)
        if self.most_bytes <= 0:
            return False
        if last is not None:
            oldest = next(iter(self._entries.values()), None)
            if oldest is None or self._size() < self.most_bytes or oldest.used_at < last:
                return True
        self._misses[key] = self._searches
        if len(self._misses) > _MOST_OWNERS:
            self._misses.popitem(last=False)
        return False

    def _size(self) -> int:
        return sum(entry.size for entry in self._entries.values())

    def _evict(self, newest: CacheKey) -> None:
        """Drop the entries that were used the longest ago until the rest is within the limit."""
        with self._lock:
            size = self._size()
            for key in [*(key for key in self._entries if key != newest), newest]:
                if size <= self.most_bytes and len(self._entries) <= _MOST_OWNERS:
                    return
                entry = self._entries.pop(key, None)
                size -= entry.size if entry else 0

    def _drop(self, keys: list[CacheKey]) -> None:
        with self._lock:
            for key in keys:
                self._entries.pop(key, None)
