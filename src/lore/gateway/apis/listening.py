"""Listening: readers of an answer that passes, whatever the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lore.gateway import events
from lore.gateway.apis.shapes import Json
from lore.gateway.apis.wire import Reply, ReplyReader


class Assembling(Protocol):
    """Puts an answer together from the events of its stream."""

    def take(self, event: Json, /) -> None:
        """Take the next event."""

    def reply(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""


class StreamReader:
    """Reads an answer that is streamed, at its end: all at once that takes a third of the time."""

    def __init__(self, assembly: Assembling) -> None:
        self._pieces: list[bytes] = []
        self._assembly = assembly

    def feed(self, chunk: bytes) -> None:
        """Take the next piece of the answer."""
        self._pieces.append(chunk)

    def end(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""
        for document in events.documents(b"".join(self._pieces)):
            self._assembly.take(document)
        return self._assembly.reply()


class WholeReader:
    """Reads an answer that is one document."""

    def __init__(self, read: Callable[[bytes], Reply]) -> None:
        self._held = bytearray()
        self._read = read

    def feed(self, chunk: bytes) -> None:
        """Take the next piece of the answer."""
        self._held += chunk

    def end(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""
        return self._read(bytes(self._held))


def reader(assembly: Assembling, read: Callable[[bytes], Reply], *, streams: bool) -> ReplyReader:
    """Return a reader of one answer."""
    return StreamReader(assembly) if streams else WholeReader(read)
