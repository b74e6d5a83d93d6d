"""Rounds: the answers of one request that become one, as far as that is alike on every wire."""

from __future__ import annotations

from abc import ABC, abstractmethod

import orjson

from lore.gateway.events import Event, EventReader, end_of_last
from lore.gateway.wires.searches import Searches
from lore.gateway.wires.wire import Call, MakeId, Request, Tool


class Rounds(ABC):
    """Takes answers in, one after the other; what a client sees of each, a wire's splice says.

    As long as the first answer does not name our tool, its bytes pass unread: so most answers do
    from beginning to end. Within the text of a stream the name has no bare quotation marks.
    """

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        self._streams = request.streams
        self._body = body
        self._tool = tool.name
        self._name = orjson.dumps(tool.name)
        self._unread: list[bytes] | None = []
        """What has passed so far of the first answer; None once all is read."""
        self._rest = b""
        """What has come since, of an event that is not complete."""
        self._searches = Searches(make_id)
        self._round = 0
        self._begin()

    def _begin(self) -> None:
        """Begin with the next answer."""
        self._round += 1
        self._events = EventReader()
        self._held = bytearray()
        self._is_paused = False
        self._searches.begin()

    @property
    @abstractmethod
    def _is_alone(self) -> bool:
        """Tell whether the answer waits for nothing but results of ours."""

    @abstractmethod
    def _pass(self, event: Event) -> bytes:
        """Return what the client gets of an event."""

    @abstractmethod
    def _pass_whole(self, body: bytes) -> bytes:
        """Return what the client gets of an answer that came as one document."""

    @property
    def _is_last(self) -> bool:
        return not self._is_alone or self._searches.is_spent

    def feed(self, chunk: bytes) -> bytes:
        """Take the next piece of an answer, and return what the client gets now."""
        if not self._streams:
            self._held += chunk
            return b""
        if self._unread is None:
            return self._read(chunk)
        come = self._rest + chunk if self._rest else chunk
        if self._name in come:
            return self._begin_to_read(come)
        end = end_of_last(come)
        whole, self._rest = come[:end], come[end:]
        self._unread.append(whole)
        return whole

    def pause(self) -> bytes:
        """Take note that an answer has ended, and return what the client gets now."""
        self._is_paused = True
        if not self._streams:
            return self._pass_whole(bytes(self._held))
        if self._unread is not None:
            return self._rest
        return b"".join([self._pass(event) for event in self._events.end()])

    def _begin_to_read(self, come: bytes) -> bytes:
        """Read what has passed, for what follows from it, and what has come now."""
        self._read(b"".join(self._unread or ()))
        self._unread = None
        return self._read(come)

    def _read(self, chunk: bytes) -> bytes:
        return b"".join([self._pass(event) for event in self._events.feed(chunk)])

    @property
    def goes_on(self) -> bool:
        """Tell whether the upstream has to be asked again before the answer is complete."""
        return self._is_paused and not self._is_last

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the calls to be carried out now."""
        return self._searches.calls
