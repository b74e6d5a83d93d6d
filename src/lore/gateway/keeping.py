"""Keeping: an answer as it came from upstream, to be read once it has ended."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from lore.gateway.bodies import decoded

MOST_KEPT_BYTES = 8_000_000
"""Of a stream; the longest answers of models have about one."""

MOST_WHOLE_BYTES = 32_000_000
"""Of an answer that is one document: it may hold pictures, and is read whole or not at all."""

KEPT_END_BYTES = 65_536
"""What a stream took is told at its end."""

WELL = range(200, 300)
"""The statuses of an answer that is none of a refusal."""

_STREAM = "text/event-stream"


def is_stream(headers: Mapping[str, str]) -> bool | None:
    """Tell whether an answer says that it is a stream of events; None where it does not say."""
    form = headers.get("content-type", "").strip().lower()
    return form.startswith(_STREAM) if form else None


@dataclass(slots=True)
class Kept:
    """An answer as it came; of one that is too long, its beginning and its end."""

    status: int
    streams: bool
    encodings: str = ""
    """As upstream has packed it, which is asked to leave that."""
    _first: list[bytes] = field(default_factory=list)
    _last: deque[bytes] = field(default_factory=deque)
    _first_bytes: int = 0
    _last_bytes: int = 0

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], *, streams: bool) -> Kept:
        """Begin to keep an answer; `streams` if that was asked for."""
        told = is_stream(headers)
        # Its own word goes before what was asked for, which not every request tells.
        streams = streams if told is None else told
        return cls(status, streams and status in WELL, headers.get("content-encoding", ""))

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
    def length(self) -> int:
        """Return how much is kept, packed as it came."""
        return self._first_bytes + self._last_bytes

    @property
    def pieces(self) -> list[bytes]:
        """Return what is kept; where some is missing, one event ends and another begins."""
        return [*self._first, b"\n\n", *self._last] if self._last else self._first

    def body(self) -> bytes:
        """Return what is kept, unpacked, or raise `InvalidInput` where that cannot be done."""
        body = decoded(b"".join(self.pieces), self.encodings, MOST_WHOLE_BYTES + KEPT_END_BYTES)
        return body.removeprefix(codecs.BOM_UTF8)
