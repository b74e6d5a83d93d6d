"""Forgetting: what this process has in mind goes too, whoever said that it is to be forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from lore.errors import LoreError

LOOK_S = 5.0
"""So long after it was forgotten, words may be in mind; a look takes some microseconds."""


class Forgetting:
    """Looks whether anything was forgotten, by whatever process, and has it let go of here.

    What is in mind is of an era, and when anything is forgotten another one begins.
    """

    def __init__(
        self,
        find_era: Callable[[], str],
        let_go: Callable[[str], None],
        *,
        every_s: float = LOOK_S,
    ) -> None:
        self._find_era = find_era
        self._let_go = let_go
        self._every_s = every_s
        self._known: str | None = None
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="lore-forgetting", daemon=True)

    def look(self) -> None:
        """Have all let go of that may quote what is forgotten, if it is another era by now."""
        era = self._find_era()
        with self._lock:
            if era == self._known:
                return
            self._let_go(era)
            self._known = era

    def watch(self) -> None:
        """Look again and again until it is closed, also while nobody asks for anything."""
        self._watching.start()

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(self._every_s):
            with suppress(LoreError):  # A store that cannot be read tells it later.
                self.look()
