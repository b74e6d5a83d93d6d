"""A chat that is made when it is first asked: an SDK takes a second or two to import."""

from __future__ import annotations

import threading
from collections.abc import Callable

from lore.llm.chat import Ask, Chat, Reply


class LateChat:
    """A chat that is known by its identity, and made once."""

    def __init__(self, identity: str, make: Callable[[], Chat]) -> None:
        self.identity = identity
        self._make = make
        self._made: Chat | None = None
        self._lock = threading.Lock()

    def ask(self, ask: Ask) -> Reply:
        """Ask once, and return the answer or raise a `ProviderError`."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return self._made.ask(ask)

    def close(self) -> None:
        """End what is under way, and give everything back."""
        if self._made is not None:
            self._made.close()
