"""Observes upstream responses: buffers them, and never lets a failing observer break the stream."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from lore.gateway.http_body import decode_body
from lore.gateway.plugin_protocol import Observer, Outcome, RequestPlan
from lore.gateway.workers import Failure, attempt

MAX_STREAM_BYTES = 8_000_000
"""Of a stream; the longest responses of models have about one megabyte."""

MAX_DOCUMENT_BYTES = 32_000_000
"""Of a response that is one document: it may hold images, and is read whole or not at all."""

STREAM_TAIL_BYTES = 65_536
"""The usage of a stream is at its end."""

MAX_QUICK_BYTES = 1_000_000
"""Of a request and its response; the usage of longer ones is read in a thread."""

SUCCESS = range(200, 300)
"""Statuses of responses that are no errors."""

_STREAM = "text/event-stream"


def is_stream(headers: Mapping[str, str]) -> bool | None:
    """Return whether the headers announce an event stream; None if they do not say."""
    form = headers.get("content-type", "").strip().lower()
    return form.startswith(_STREAM) if form else None


@dataclass(slots=True)
class ResponseBuffer:
    """A response as it came; of one that is too long, its start and its end."""

    status: int
    streams: bool
    encodings: str = ""
    """Content encodings, although upstream is asked for none."""
    _first: list[bytes] = field(default_factory=list)
    _last: deque[bytes] = field(default_factory=deque)
    _first_bytes: int = 0
    _last_bytes: int = 0

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], *, streams: bool) -> ResponseBuffer:
        """Start a buffer; `streams` if the request asked for a stream."""
        announced = is_stream(headers)
        # The response's content type decides; not every request says whether it streams.
        streams = streams if announced is None else announced
        return cls(status, streams and status in SUCCESS, headers.get("content-encoding", ""))

    def add(self, piece: bytes) -> None:
        """Add the next chunk."""
        if self._first_bytes < (MAX_STREAM_BYTES if self.streams else MAX_DOCUMENT_BYTES):
            self._first.append(piece)
            self._first_bytes += len(piece)
            return
        self._last.append(piece)
        self._last_bytes += len(piece)
        while self._last_bytes - len(self._last[0]) >= STREAM_TAIL_BYTES:
            self._last_bytes -= len(self._last.popleft())

    @property
    def length(self) -> int:
        """Return how many bytes are buffered, still encoded."""
        return self._first_bytes + self._last_bytes

    @property
    def pieces(self) -> list[bytes]:
        """Return the chunks; an event boundary marks a gap between start and end."""
        return [*self._first, b"\n\n", *self._last] if self._last else self._first

    def body(self) -> bytes:
        """Return the decoded bytes, or raise `InvalidInput`."""
        body = decode_body(
            b"".join(self.pieces), self.encodings, MAX_DOCUMENT_BYTES + STREAM_TAIL_BYTES
        )
        return body.removeprefix(codecs.BOM_UTF8)


EndLater = Callable[[Observer, Outcome, int], None]
"""Has an observer's `end` called off the request path; the number is its buffered bytes."""

PendingPlan = Future[RequestPlan | Failure]
"""A pass-through plan whose budget check is still running."""


class SafeObserver:
    """An observer that gets no more chunks once it has failed; `end` is called in any case."""

    def __init__(
        self,
        observer: Observer | None,
        end_later: EndLater | None = None,
        buffered_bytes: int = 0,
        *,
        ends_quickly: bool = False,
    ) -> None:
        self._observer = observer
        self._ends_quickly = ends_quickly
        self._end_later = end_later
        self._buffered_bytes = buffered_bytes
        self._is_intact = observer is not None
        self._is_ended = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Pass on the status of a response."""
        if headers.get("content-encoding"):
            self._ends_quickly = False  # Decoding may take long.
        if self._is_intact and self._observer is not None:
            self._try(partial(self._observer.begin, status, headers))

    def see(self, piece: bytes) -> None:
        """Pass on a chunk."""
        if self._is_intact and self._observer is not None:
            self._buffered_bytes += len(piece)
            self._try(partial(self._observer.see, piece))

    def end(self, outcome: Outcome) -> None:
        """Pass on how the response ended, once; in a thread if that may take long."""
        if self._is_ended or self._observer is None or self._end_later is None:
            return
        self._is_ended = True
        is_quick = self._ends_quickly and self._buffered_bytes <= MAX_QUICK_BYTES
        end = _end_now if is_quick else self._end_later
        end(self._observer, outcome, self._buffered_bytes)

    def _try(self, work: Callable[[], None]) -> None:
        self._is_intact = not isinstance(attempt("record", work), Failure)


class DeferredObserver:
    """Stands in for the observer of a plan that is not there yet, and replays the response to it.

    A request whose budget check was late is sent and is counted nevertheless, without waiting.
    """

    def __init__(self, pending: PendingPlan, end_later: EndLater, buffered_bytes: int = 0) -> None:
        """Stand in; `end_later` as in `SafeObserver`, for a plan that comes after the response has
        ended."""
        self._pending = pending
        self._end_later = end_later
        self._buffered_bytes = buffered_bytes
        self._responses: list[tuple[ResponseBuffer, Mapping[str, str]]] = []

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Buffer the status of a response."""
        self._responses.append((ResponseBuffer.of(status, headers, streams=False), headers))

    def see(self, piece: bytes) -> None:
        """Buffer a chunk."""
        self._responses[-1][0].add(piece)

    def end(self, outcome: Outcome) -> None:
        """Replay everything to the observer, now or once it is there."""
        end_later = _end_now if self._pending.done() else self._end_later
        self._pending.add_done_callback(partial(self._replay, outcome, end_later))

    def settle(self, outcome: Outcome) -> None:
        """Replay everything, but settle only the cost."""
        self._pending.add_done_callback(partial(self._replay, outcome, _settle_now))

    def _replay(self, outcome: Outcome, end_later: EndLater, pending: PendingPlan) -> None:
        plan = None if pending.cancelled() else pending.result()
        observer = plan.observer if isinstance(plan, RequestPlan) else None
        safe = SafeObserver(observer, end_later, self._buffered_bytes)
        for buffer, headers in self._responses:
            safe.begin(buffer.status, headers)
            for piece in buffer.pieces:
                safe.see(piece)
        safe.end(outcome)


def _end_now(observer: Observer, outcome: Outcome, _buffered_bytes: int) -> None:
    attempt("record", partial(observer.end, outcome))


def _settle_now(observer: Observer, outcome: Outcome, _buffered_bytes: int) -> None:
    attempt("settle", partial(observer.settle, outcome))
