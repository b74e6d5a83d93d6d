"""Rounds: the answers of one request that become one, as far as that is alike on every wire."""

from __future__ import annotations

from abc import ABC, abstractmethod

import orjson

from lore.gateway.apis import shapes
from lore.gateway.apis.searches import Searches
from lore.gateway.apis.shapes import table
from lore.gateway.apis.wire import Call, MakeId, Request, Tool
from lore.gateway.events import Event, EventReader, end_of_last

_BAD_GATEWAY = 502
_NO_STREAM = b"The answer did not go on as the stream that it was."


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
        self._rest = bytearray()
        """What has come since, of an event that is not complete; it is looked through once."""
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
    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where the upstream did not go on, in its own words."""

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
        seen = len(self._rest)
        self._rest += chunk
        if self._rest.find(self._name, max(0, seen - len(self._name))) >= 0:
            return self._begin_to_read(bytes(self._rest))
        end = end_of_last(self._rest, seen)
        if not end:
            return b""
        whole = bytes(self._rest[:end])
        del self._rest[:end]
        self._unread.append(whole)
        return whole

    @property
    def is_idle(self) -> bool:
        """Tell whether all of a stream passed as it came: nothing in it names the tool."""
        return self._streams and self._unread is not None

    def pause(self) -> bytes:
        """Take note that an answer has ended, and return what the client gets now."""
        self._is_paused = True
        if not self._streams:
            return self._pass_whole(bytes(self._held))
        if self._unread is not None:
            return bytes(self._rest)
        return b"".join([self._pass_rest(event) for event in self._events.end()])

    def _pass_rest(self, event: Event) -> bytes:
        """Return what the client gets of an event without its end; a document is none at all."""
        document = table(shapes.loaded(event.raw.decode(errors="replace")))
        if self._round == 1 or not document:
            return self._pass(event)
        return self.fail(_BAD_GATEWAY, event.raw if "error" in document else _NO_STREAM)

    def _begin_to_read(self, come: bytes) -> bytes:
        """Read what has passed, for what follows from it, and what has come now."""
        passed = b"".join(self._unread or ())
        self._unread, self._rest = None, bytearray()
        shown: list[bytes] = []
        end = 0
        for event in self._events.feed(passed + come):
            told = self._pass(event)
            start, end = end, end + len(event.raw)
            if end > len(passed):
                # More ends of a line than an event needs may have passed before it.
                shown.append(told[max(0, len(passed) - start) :] if told is event.raw else told)
        return b"".join(shown)

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
