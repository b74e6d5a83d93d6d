"""Recalling: the gateway carries out the searches of a model inside one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lore.gateway.wires.wire import Splice

Recall = Callable[[Mapping[str, object]], str]
Keep = Callable[[Mapping[str, str]], None]


class Recalling:
    """Stands in an answer: passes on what the client may see, and answers calls of recall."""

    def __init__(self, inner: Splice, recall: Recall, keep: Keep) -> None:
        self._inner = inner
        self._recall = recall
        self._keep = keep
        self._waiting = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what may go out to the client, given the next piece from upstream."""
        waiting, self._waiting = self._waiting, b""
        return waiting + self._inner.feed(piece)

    def follow(self) -> bytes | None:
        """Answer the calls of recall, and return the next request if the model goes on."""
        self._waiting += self._inner.pause()
        calls = self._inner.calls
        if calls:
            found = {call.id: self._recall(call.arguments) for call in calls}
            self._keep(self._inner.answer(found))
        return self._inner.follow_up() if self._inner.goes_on else None

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where upstream refused the next request."""
        del body
        waiting, self._waiting = self._waiting, b""
        return waiting + self._inner.fail(f"The provider answered with status {status}.")

    def rest(self) -> bytes:
        """Return what ends the answer."""
        waiting, self._waiting = self._waiting, b""
        return waiting
