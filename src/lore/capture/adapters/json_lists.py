"""JSON lists: their objects one after the other, out of a stream that may be of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from lore.errors import InvalidInput

CHUNK_BYTES = 1 << 20

_PLAIN = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_OPENING, _QUOTE, _BACKSLASH = b"[{", ord('"'), ord("\\")
_SPACE = b" \t\r\n\xef\xbb\xbf"


def read_objects(stream: BinaryIO, *, most_bytes: int) -> Iterator[bytes]:
    """Yield each object of a list as JSON, or the whole if it is one object.

    No more than one of them is held, and none that is larger than `most_bytes`.
    """
    cutter = _Cutter()
    while chunk := stream.read(max(CHUNK_BYTES, cutter.held)):
        yield from cutter.feed(chunk)
        if cutter.held > most_bytes:
            msg = f"One of its conversations is larger than {most_bytes >> 20} MB."
            raise InvalidInput(msg)
    if not cutter.done:
        raise _no_json()


class _Cutter:
    """Cuts a list where its objects end; reads no further into them than that takes."""

    def __init__(self) -> None:
        self.done = False
        self._buffer = bytearray()
        self._at = 0
        self._depth = 0
        self._floor = 0
        """How deep it is between objects: 1 in a list."""
        self._in_string = False

    @property
    def held(self) -> int:
        """Return how many bytes wait for their end."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take in more of the stream, and yield the objects that it completes."""
        self._buffer += chunk
        start = 0
        while (mark := self._next_mark()) is not None:
            if mark in _OPENING:
                if not self._depth:
                    self._begin(mark)
                if self._depth == self._floor:
                    start = self._at
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == self._floor:
                    yield bytes(self._buffer[start : self._at + 1])
                self.done = self._depth <= 0
            self._at += 1
        if self._depth <= self._floor:
            start = self._at  # between objects nothing is kept
        del self._buffer[:start]
        self._at -= start

    def _begin(self, mark: int) -> None:
        if self._buffer[: self._at].strip(_SPACE):
            raise _no_json()
        self._floor = int(mark == _OPENING[0])

    def _next_mark(self) -> int | None:
        """Return the next bracket outside of strings; None if more has to be read for it."""
        if self.done:
            self._at = len(self._buffer)
        while self._at < len(self._buffer):
            self._pass_over(_IN_STRING if self._in_string else _PLAIN)
            if self._at == len(self._buffer):
                return None
            mark = self._buffer[self._at]
            if mark == _BACKSLASH:
                return None  # what it escapes is still to come
            if mark != _QUOTE:
                return mark
            self._in_string = not self._in_string
            self._at += 1
        return None

    def _pass_over(self, pattern: re.Pattern[bytes]) -> None:
        found = pattern.match(self._buffer, self._at)
        self._at = found.end() if found else self._at


def _no_json() -> InvalidInput:
    return InvalidInput("It is no JSON, or ends in the middle.")
