"""Kept: an answer as it came, for whoever reads it at its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_KEPT_BYTES = 8_000_000
"""Of a stream; the longest answers of models have about one."""

MOST_WHOLE_BYTES = 32_000_000
"""Of an answer that is one document: it may hold pictures, and is read whole or not at all."""

KEPT_END_BYTES = 65_536
"""What a stream took is told at its end."""

_STREAM = "text/event-stream"


@dataclass(slots=True)
class Kept:
    """An answer as it came; of one that is too long, its beginning and its end."""

    status: int
    streams: bool
    _first: list[bytes] = field(default_factory=list)
    _last: deque[bytes] = field(default_factory=deque)
    _first_bytes: int = 0
    _last_bytes: int = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        if self._first_bytes < (MOST_KEPT_BYTES if self.streams else MOST_WHOLE_BYTES):
            self._first.append(piece)
            self._first_bytes += len(piece)
            return
        self._last.append(piece)
        self._last_bytes += len(piece)
        while self._last_bytes - len(self._last[0]) >= KEPT_END_BYTES:
            self._last_bytes -= len(self._last.popleft())

    @property
    def pieces(self) -> list[bytes]:
        """Return what is kept; where some is missing, one event ends and another begins."""
        return [*self._first, b"\n\n", *self._last] if self._last else self._first


def is_stream(headers: Mapping[str, str], *, asked: bool) -> bool:
    """Tell whether an answer is a stream: its own word goes before what was asked for."""
    form = headers.get("content-type", "")
    return form.startswith(_STREAM) if form else asked
