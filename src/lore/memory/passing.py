"""Passing: what the gateway of this process let pass, and what of that went without memory."""

from __future__ import annotations

import threading
from collections import Counter

LATE = "late"
"""The reason of a request for which memory took longer than it may."""


class Passing:
    """Counts requests, and the reasons for which they went without memory; for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._degraded: Counter[str] = Counter()

    def count(self, why: str = "") -> None:
        """Count a request, with the reason if it went without memory."""
        with self._lock:
            self._requests += 1
            if why:
                self._degraded[why] += 1

    @property
    def requests(self) -> int:
        """Return how many requests passed."""
        return self._requests

    def degraded(self) -> dict[str, int]:
        """Return how many of them went without memory, by reason."""
        with self._lock:
            return dict(self._degraded)
