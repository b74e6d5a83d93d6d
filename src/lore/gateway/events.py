"""Events: server-sent events out of a stream that may be cut anywhere, and back to bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

_BOUND = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
"""Two ends of a line in a row; each may be written in three ways."""

_LONGEST_BOUND = 4

_USUAL_BOUNDS = (b"\n\n", b"\r\n\r\n")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: the bytes that it came in, with those that end it, and what they say."""

    raw: bytes
    name: str = ""
    data: bytes = b""

    def document(self) -> dict[str, Any]:
        """Return the data as a table; empty if they are something else, such as `[DONE]`."""
        return _table(self.data)


def _table(data: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def end_of_last(stream: bytes | bytearray, since: int = 0) -> int:
    """Return where the last event ends that is complete, 0 if none is.

    None ends before `since`: whoever has looked so far need not look again.
    """
    if stream.endswith(_USUAL_BOUNDS):
        return len(stream)
    ends = [found.end() for found in _BOUND.finditer(stream, max(0, since - _LONGEST_BOUND))]
    if ends and ends[-1] == len(stream) and stream.endswith(b"\r"):
        ends.pop()  # it may be the first half of a line's end
    return ends[-1] if ends else 0


def documents(stream: bytes) -> Iterator[dict[str, Any]]:
    """Yield what all events of a stream say; quicker than to read them while they come."""
    data: list[bytes] = []
    # Of bytes, only the three ends of a line that events know are ends of a line.
    for line in (*stream.splitlines(), b""):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif data and not line:
            yield _table(b"\n".join(data))
            data.clear()


class EventReader:
    """Reads events from pieces of a stream; the raw bytes of all events are the whole stream."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._seen = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next piece, and return the events that are complete now."""
        self._held += chunk
        events: list[Event] = []
        start = 0
        while found := _BOUND.search(self._held, max(start, self._seen - _LONGEST_BOUND)):
            # A carriage return at the very end may be the first half of a line's end.
            if found.end() == len(self._held) and self._held.endswith(b"\r"):
                break
            events.append(_read(bytes(self._held[start : found.end()])))
            start = self._seen = found.end()
        del self._held[:start]
        self._seen = len(self._held)
        return events

    def end(self) -> list[Event]:
        """Return what is left when the stream has ended: an event without its end, or nothing."""
        rest, self._held, self._seen = bytes(self._held), bytearray(), 0
        return [_read(rest)] if rest else []


def _read(raw: bytes) -> Event:
    name, data = "", []
    # Only these three end a line; str.splitlines knows many more.
    for line in raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode(errors="replace")
    return Event(raw, name, b"\n".join(data))


def write(document: object, name: str = "") -> bytes:
    """Write an event with a document as its data."""
    return frame(orjson.dumps(document), name)


def frame(data: bytes, name: str = "") -> bytes:
    """Write an event with data of one line."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + data + b"\n\n"
