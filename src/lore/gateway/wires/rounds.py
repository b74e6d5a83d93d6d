"""Rounds: the answers of one request that become one, as far as that is alike on every wire."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lore.gateway.events import Event, EventReader
from lore.gateway.wires.searches import Searches
from lore.gateway.wires.wire import Call, MakeId, Request, Tool


class Rounds(ABC):
    """Takes answers in, one after the other; what a client sees of each, a wire's splice says."""

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        self._streams = request.streams
        self._body = body
        self._tool = tool.name
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
        return b"".join(self._pass(event) for event in self._events.feed(chunk))

    def pause(self) -> bytes:
        """Take note that an answer has ended, and return what the client gets now."""
        self._is_paused = True
        if not self._streams:
            return self._pass_whole(bytes(self._held))
        return b"".join(self._pass(event) for event in self._events.end())

    @property
    def goes_on(self) -> bool:
        """Tell whether the upstream has to be asked again before the answer is complete."""
        return self._is_paused and not self._is_last

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the calls to be carried out now."""
        return self._searches.calls
