"""Registry of the sessions that this process holds in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from lore.errors import StoreError
from lore.gateway.session import session_state
from lore.gateway.session.session_state import SessionState
from lore.gateway.session.session_store import MARKER_TIMEOUT_S, SessionStore, changed_fields
from lore.records import ClientSession, Dialogue, SessionSnapshot

T = TypeVar("T")


class LruCache(Generic[T]):
    """Least-recently-used cache by name; safe for threads.

    A value that is evicted while a thread still uses it is found again: two values of one name
    would have two locks.
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._last: OrderedDict[str, T] = OrderedDict()
        self._in_use: WeakValueDictionary[str, T] = WeakValueDictionary()
        self._lock = threading.Lock()

    def find(self, name: str) -> T | None:
        """Return the value of a name, or None."""
        with self._lock:
            value = self._in_use.get(name)
            if value is not None:
                self._touch(name, value)
            return value

    def add(self, name: str, value: T) -> T:
        """Add a value unless the name has one; return the value of the name."""
        with self._lock:
            current = self._in_use.setdefault(name, value)
            self._touch(name, current)
            return current

    def all(self) -> list[T]:
        """Return all values that are cached or in use."""
        with self._lock:
            return list(self._in_use.values())

    def _touch(self, name: str, value: T) -> None:
        self._last[name] = value
        self._last.move_to_end(name)
        while len(self._last) > self._max_size:
            self._last.popitem(last=False)


MAX_SESSIONS = 256
"""Sessions cached in this process; the state of others is in the store."""


class SessionRegistry:
    """Finds the state of a session in this process or in the store, and saves it."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._sessions = LruCache[SessionState](MAX_SESSIONS)
        self._private_mode = store.private_mode

    def find(self, client: ClientSession) -> SessionState | None:
        """Return the cached state of a session, or None."""
        return self._sessions.find(client.place)

    def get(self, client: ClientSession, *, from_cache: bool = False) -> SessionState:
        """Return the state of a session.

        With `from_cache` a cached state is not compared with the store; that is enough where
        nothing is given from memory.
        """
        state = self.find(client) if from_cache else None
        state = state or self._load(client)
        with state.lock:
            if self._private_mode.is_pending(client) and not state.snapshot.is_private:
                state.snapshot = replace(state.snapshot, is_private=True)
        return state

    def _load(self, client: ClientSession) -> SessionState:
        cached = self.find(client)
        if cached is not None:
            self.refresh(client, cached)
            return cached
        # The generation first: what is forgotten between the two reads is then dropped again.
        generation = self._store.generation()
        snapshot = self._store.load(client)
        if client.began and not session_state.has_begun(snapshot):
            snapshot = self._continue_from_first(client, snapshot)
        state = SessionState(
            snapshot, session_state.restore_calibration(snapshot.measured), generation
        )
        return self._sessions.add(client.place, state)

    def _continue_from_first(
        self, client: ClientSession, snapshot: SessionSnapshot
    ) -> SessionSnapshot:
        """Return the state of a session that had another name at its first request."""
        first = self.get(client.first).snapshot
        with suppress(StoreError):
            self._store.copy_injections(client)
        return replace(first, is_private=snapshot.is_private)

    def _set_private(self, client: ClientSession, *, is_private: bool) -> None:
        state = self.get(client)
        with state.lock:
            state.snapshot = replace(state.snapshot, is_private=is_private)
            state.revision += 1

    def refresh(self, client: ClientSession, state: SessionState) -> None:
        """Drop texts that may quote forgotten memory, and reread private mode: any process may have
        changed both."""
        before = state.revision
        generation, is_private = self._generation_and_privacy(client, state)
        if (generation, is_private) == (state.generation, state.snapshot.is_private):
            return
        with state.lock:
            if state.revision != before:
                return  # Changed meanwhile: what was read may be older.
            state.revision += 1
            state.snapshot = replace(state.snapshot, is_private=is_private)
            session_state.advance_generation(state, generation)

    def clear_caches(self, generation: str) -> None:
        """Drop the texts of all sessions that belong to another generation."""
        for state in self._sessions.all():
            with state.lock:
                state.revision += state.generation != generation
                session_state.advance_generation(state, generation)

    def _generation_and_privacy(
        self, client: ClientSession, state: SessionState
    ) -> tuple[str, bool]:
        """Return both as stored, or as cached where the store cannot be read."""
        try:
            generation, is_private = self._store.generation_and_privacy(client)
        except StoreError:
            return state.generation, state.snapshot.is_private
        return generation, is_private or self._private_mode.is_pending(client)

    def save(self, client: ClientSession, state: SessionState) -> None:
        """Save the state of a session without waiting; a write that failed is retried, a pending
        one is not."""
        with state.lock:
            if state.snapshot.is_private:
                return
            changed = changed_fields(state.snapshot, state.submitted)
            state.unsaved |= changed
            state.submitted = state.snapshot
            is_pending = state.pending_write is not None and not state.pending_write.done()
            if not state.unsaved or (is_pending and not changed):
                return
            state.write_count += 1
            with suppress(StoreError):
                # Under the lock, so that the last write comes last.
                names = frozenset(state.unsaved)
                pending_write = self._store.save(
                    client, state.snapshot, generation=state.generation, names=names
                )
                pending_write.add_done_callback(partial(_mark_saved, state, state.write_count))
                state.pending_write = pending_write

    def markers(self, client: ClientSession, *, from_cache: bool = False) -> Mapping[str, str]:
        """Return what the markers of a session stand for; `from_cache`: only those cached here."""
        if from_cache:
            return self._cached_markers(client)
        state = self.get(client)
        with state.lock:
            generation, is_complete = state.generation, state.has_all_markers
        if not is_complete:
            stored = self._store.load_markers(client)
            with state.lock:
                # Markers of another generation may quote what is forgotten.
                if state.generation == generation:
                    state.markers, state.has_all_markers = {**stored, **state.markers}, True
        return self._cached_markers(client)

    def _cached_markers(self, client: ClientSession) -> Mapping[str, str]:
        states = [self.find(one) for one in dict.fromkeys((client.first, client))]
        return {id_: text for state in states if state for id_, text in state.markers.items()}

    def save_markers(
        self,
        client: ClientSession,
        markers: Mapping[str, str],
        *,
        timeout_s: float = MARKER_TIMEOUT_S,
    ) -> None:
        """Cache what markers stand for, and wait until they are durable."""
        state = self.get(client, from_cache=True)
        with state.lock:
            state.markers = {**state.markers, **markers}
        self._store.save_markers(client, markers, timeout_s=timeout_s)

    def mark_private(self, client: ClientSession) -> None:
        """Switch private mode on in this process, without asking the store."""
        self._private_mode.mark_pending(client)

    def begin_private_mode(self, client: ClientSession) -> None:
        """Switch private mode on for a named session, and store that."""
        if client.unnamed:
            return
        self._private_mode.mark_pending(client)
        self._private_mode.begin(client)
        self._set_private(client, is_private=True)
        self._private_mode.clear_pending(client)

    def end_private_mode(self, client: ClientSession, dialogue: Dialogue) -> None:
        """Switch private mode off after this dialogue."""
        if client.unnamed:
            return
        self._store.end_private_mode(client, dialogue.entries)
        self._private_mode.clear_pending(client)
        self._set_private(client, is_private=False)

    def retry_private_mode(self, client: ClientSession) -> None:
        """Store a switch to private mode that could not be stored before."""
        if self._private_mode.must_retry(client):
            self.begin_private_mode(client)


def _mark_saved(state: SessionState, number: int, pending_write: Future[None]) -> None:
    """Clear the unsaved fields if this was the last write: it contains all earlier ones."""
    if pending_write.cancelled() or pending_write.exception() is not None:
        return
    with state.lock:
        if state.write_count == number:
            state.unsaved.clear()
