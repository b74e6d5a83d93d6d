"""A bounded pool of what is open for owners: one thing each, closed when it is not used."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from lore.errors import StoreBusy

T = TypeVar("T")

log = logging.getLogger("lore.server")

WAIT_S = 5.0
"""How long a request waits for a place in a full pool."""

_OPENING_S = 30.0
"""How long it waits while another one opens or closes the same memory; a disk may be slow."""


@dataclass(slots=True)
class _Entry(Generic[T]):
    """What is open for an owner; `value` is None while it is being opened or closed."""

    value: T | None = None
    leases: int = 0
    streams: int = 0
    """Those of the leases that end when somebody else needs the place."""
    used_s: float = 0.0
    is_closing: bool = False


class OwnerPool(Generic[T]):
    """Opens one thing per owner, and closes the least recently used one for another.

    What is leased is never closed. Each owner is opened and closed by one thread at a time, outside
    of the pool's lock: one slow disk does not stop the others. If all places are leased,
    `on_crowded` is called with an owner whose leases are all of streams, and has to end them.
    """

    def __init__(
        self,
        open_: Callable[[str], T],
        close: Callable[[T], None],
        *,
        most: int,
        idle_s: float,
        on_crowded: Callable[[str], None] = lambda _owner: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self._close = open_, close
        self._on_crowded = on_crowded
        self._most, self._idle_s = most, idle_s
        self._monotonic = monotonic
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()
        self._changed = threading.Condition()
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many are open, or about to be."""
        return len(self._entries)

    def owners(self) -> list[str]:
        """Return whose are open, the least recently used first."""
        with self._changed:
            return list(self._entries)

    @contextmanager
    def lease(self, owner: str, *, wait_s: float = WAIT_S, is_use: bool = True) -> Iterator[T]:
        """Open what an owner has, and keep it open until the block ends.

        Background work is no `use`: what only it looks at may be closed.
        """
        value = self.acquire(owner, wait_s=wait_s, is_use=is_use)
        try:
            yield value
        finally:
            self.release(owner)

    def try_acquire(self, owner: str) -> T | None:
        """Lease what is open already, without waiting; None if it is not."""
        with self._changed:
            entry = self._entries.get(owner)
            if entry is None or entry.value is None or entry.is_closing or self._is_closed:
                return None
            self._use(owner, entry)
            return entry.value

    def acquire(self, owner: str, *, wait_s: float = WAIT_S, is_use: bool = True) -> T:
        """Lease what an owner has; open it first if needed. Every lease is released once."""
        came_s = time.monotonic()
        while True:
            evicted: tuple[str, T] | None = None
            with self._changed:
                self._require_open()
                entry = self._entries.get(owner)
                if entry is not None and entry.value is not None and not entry.is_closing:
                    self._use(owner, entry, is_use=is_use)
                    return entry.value
                if entry is None and len(self._entries) < self._most:
                    entry = self._entries[owner] = _Entry(used_s=self._monotonic())
                    break
                evicted = self._start_eviction() if entry is None else None
                if entry is None and evicted is None:
                    self._end_streams()
                # One that is being opened has its place: that takes as long as it takes.
                until = came_s + (wait_s if entry is None else max(wait_s, _OPENING_S))
                if evicted is None and not self._changed.wait(max(0.0, until - time.monotonic())):
                    msg = "The server has too many memories open."
                    raise StoreBusy(msg, hint="Try again in a moment.")
            if evicted is not None:
                self._finish_closing(*evicted)
        return self._open_entry(owner, entry)

    @contextmanager
    def as_stream(self, owner: str) -> Iterator[None]:
        """Let a lease of this owner end, in this block, if somebody else needs the place."""
        with self._changed:
            self._entries[owner].streams += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._entries[owner].streams -= 1

    def release(self, owner: str) -> None:
        """End one lease."""
        with self._changed:
            entry = self._entries[owner]
            entry.leases -= 1
            self._changed.notify_all()

    def close_idle(self) -> int:
        """Close what was not used for a while; return how many."""
        now_s = self._monotonic()
        with self._changed:
            idle = [
                (owner, entry)
                for owner, entry in self._entries.items()
                if self._may_close(entry) and now_s - entry.used_s >= self._idle_s
            ]
            ended = [(owner, self._mark_closing(entry)) for owner, entry in idle]
        for owner, value in ended:
            self._finish_closing(owner, value)
        return len(ended)

    def close_owner(self, owner: str, *, wait_s: float = WAIT_S) -> bool:
        """Close what an owner has open; return False if it is still leased."""
        until = time.monotonic() + wait_s
        with self._changed:
            while (entry := self._entries.get(owner)) is not None and not self._may_close(entry):
                if not self._changed.wait(max(0.0, until - time.monotonic())):
                    return False
            if entry is None:
                return True
            value = self._mark_closing(entry)
        self._finish_closing(owner, value)
        return True

    def close(self, *, wait_s: float = WAIT_S) -> bool:
        """Open nothing more and close everything; return False if something was still leased."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        until = time.monotonic() + wait_s
        while owners := self.owners():
            # One may hold a lease of another: what can be closed at once goes first.
            closed = [self.close_owner(one, wait_s=0.0) for one in owners]
            if not any(closed):
                rest_s = max(0.0, until - time.monotonic())
                return all(self.close_owner(one, wait_s=rest_s) for one in owners)
        return True

    def _require_open(self) -> None:
        if self._is_closed:
            msg = "The server stops."
            raise StoreBusy(msg, hint="Try again in a moment.")

    def _use(self, owner: str, entry: _Entry[T], *, is_use: bool = True) -> None:
        entry.leases += 1
        if is_use:
            entry.used_s = self._monotonic()
            self._entries.move_to_end(owner)

    def _may_close(self, entry: _Entry[T]) -> bool:
        return entry.value is not None and not entry.leases and not entry.is_closing

    def _mark_closing(self, entry: _Entry[T]) -> T:
        assert entry.value is not None
        entry.is_closing = True
        return entry.value

    def _start_eviction(self) -> tuple[str, T] | None:
        """Choose the least recently used owner that nobody leases."""
        for owner, entry in self._entries.items():
            if self._may_close(entry):
                return owner, self._mark_closing(entry)
        return None

    def _end_streams(self) -> None:
        """Ask the streams of the least recently used owner that has nothing else to end."""
        for owner, entry in self._entries.items():
            if entry.streams and entry.streams == entry.leases:
                self._on_crowded(owner)
                return

    def _finish_closing(self, owner: str, value: T) -> None:
        try:
            self._close(value)
        finally:
            with self._changed:
                del self._entries[owner]
                self._changed.notify_all()

    def _open_entry(self, owner: str, entry: _Entry[T]) -> T:
        try:
            value = self._open(owner)
        except BaseException:
            with self._changed:
                del self._entries[owner]
                self._changed.notify_all()
            raise
        with self._changed:
            entry.value = value
            entry.leases += 1
            self._changed.notify_all()
        return value
