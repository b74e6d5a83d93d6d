"""Latest: the markers that this process set last, for turns that go on while the store does not."""

from __future__ import annotations

import threading
from collections.abc import Mapping

MOST = 200
"""A turn that waits for results has ten at most, and few of them wait at a time."""


class LatestMarkers:
    """Keeps what markers stand for, the latest of them; for all threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: dict[str, str] = {}
        self._lock = threading.Lock()

    def keep(self, stored: Mapping[str, str]) -> None:
        """Keep markers by their ids."""
        with self._lock:
            self._held |= stored
            for old in list(self._held)[: -self._most]:
                del self._held[old]

    def find(self, marker_id: str) -> str | None:
        """Return what a marker stands for, if it is one of the latest."""
        return self._held.get(marker_id)

    def clear(self) -> None:
        """Keep none."""
        with self._lock:
            self._held = {}
