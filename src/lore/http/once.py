"""Once: a moment that is told twice is answered once.

An agent that has Lore by its configuration and by a plugin runs every hook of both, at the same
time and with the same input.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

LASTING_S = 5.0
"""As long as an agent waits for a hook: what is told later is another moment."""


class Once:
    """Remembers for a while which moments were answered, or are about to be."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[bytes, float] = {}
        self._looking = threading.Lock()

    def answer(self, moment: bytes, act: Callable[[], str]) -> str:
        """Return what `act` says; nothing if it says that already, or has said so just now."""
        with self._looking:
            now = self._clock()
            self._until = {known: until for known, until in self._until.items() if until > now}
            if moment in self._until:
                return ""
            self._until[moment] = math.inf
        said = ""
        try:
            said = act()
        finally:
            with self._looking:
                if said:
                    self._until[moment] = self._clock() + LASTING_S
                else:
                    del self._until[moment]
        return said
