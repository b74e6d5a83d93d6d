"""Limits on requests: size, JSON depth, rate, concurrency, and timeouts for slow clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
import orjson
from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.errors import StoreBusy
from lore.http import error_responses
from lore.settings import Settings

T = TypeVar("T")

MAX_JSON_DEPTH = 32
"""The deepest JSON that clients send is the payload of fragments, with 6 or 7 levels."""

MAX_HEAD_BYTES = 32_768
"""All headers of a request together; Lore's own clients send less than 1,000 bytes."""

BURST_S = 6.0
"""A caller may send the requests of this many seconds at once."""

_MAX_DISCARDED_BYTES, _DISCARD_TIMEOUT_S = 64_000_000, 10.0
"""How much of a too large body is read and discarded, and for how long, before the connection is
closed.
"""

_MAX_CALLERS = 1_000
"""Number of callers that are counted; the least recent one is dropped."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits, timeouts and rate limits of the server.

    A client has `head_s` to send the head of a request and `body_s` for the body; it is
    disconnected if it reads nothing for `send_s`. Anonymous callers are addresses without a valid
    key. Idle connections make room for new ones; running requests do not.
    """

    body_bytes: int = 8_000_000
    requests_per_minute: int = 6_000
    anonymous_per_minute: int = 600
    head_s: float = 10.0
    body_s: float = 30.0
    send_s: float = 30.0
    connections: int = 512
    requests_at_once: int = 256

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        """Return the limits from the settings."""
        return cls(settings.server_max_body_bytes, settings.server_requests_per_minute)


class RateLimiter:
    """Token bucket per caller."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_minute / 60
        self._most = max(1.0, self._per_s * BURST_S)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, caller: str) -> float:
        """Count a request and return 0, or the seconds until the caller may send the next."""
        if not self._per_s:
            return 0.0
        now = self._clock()
        with self._lock:
            left, then = self._left.pop(caller, (self._most, now))
            left = min(self._most, left + (now - then) * self._per_s)
            allowed = left >= 1
            left -= allowed
            self._left[caller] = (left, now)
            while len(self._left) > _MAX_CALLERS:
                self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._per_s


class ConcurrencyLimit:
    """Limits the number of concurrent requests, including open streams."""

    def __init__(self, app: ASGIApp, max_requests: int) -> None:
        self._app = app
        self._most = max_requests
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it with 503."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._running >= self._most:
            detail = "Too many concurrent requests; try again in a moment."
            raise HTTPException(503, detail, {"retry-after": "1", **_CLOSE_CONNECTION})
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1


MEMORY_THREADS = 4
"""Requests that work on a memory at a time.

Each holds a database connection with its own cache; more would only compete for the same cores.
"""


class MemoryThreads:
    """Threads for the requests that work on one memory; `shared` bounds those of all memories.

    A request first waits for a thread of its memory: one with many slow requests takes none from
    the others.
    """

    def __init__(self, shared: CapacityLimiter | None = None) -> None:
        self._own = CapacityLimiter(MEMORY_THREADS)
        self._shared = shared or CapacityLimiter(MEMORY_THREADS)

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread; it is left alone if its client disconnects."""
        return await run_in_places(work, self._own, self._shared)


async def run_in_places(work: Callable[[], T], *limiters: CapacityLimiter) -> T:
    """Run work in a thread that takes a place of each limiter until it ends.

    A caller that is cancelled is not waited for, but its thread goes on and has its places: else
    callers who leave could start any number of threads.
    """
    places = _Places(limiters)
    await places.take()
    try:
        return await to_thread.run_sync(
            places.run, work, abandon_on_cancel=True, limiter=CapacityLimiter(1)
        )
    finally:
        places.leave()


class _Places:
    """The places of one thread; whoever is the last to need them gives them back."""

    def __init__(self, limiters: Sequence[CapacityLimiter]) -> None:
        self._limiters = limiters
        self._taken: list[CapacityLimiter] = []
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._is_running = False
        self._left = threading.Event()

    async def take(self) -> None:
        """Wait for a place of each limiter."""
        try:
            for limiter in self._limiters:
                await limiter.acquire_on_behalf_of(self)
                self._taken.append(limiter)
        except BaseException:
            self._give_back()
            raise

    def run(self, work: Callable[[], T]) -> T:
        """Run work in the thread, unless its caller left before it began."""
        with self._lock:
            if self._left.is_set():
                msg = "The caller left."
                raise StoreBusy(msg)  # nobody reads it
            self._is_running = True
        try:
            return work()
        finally:
            with self._lock:
                self._is_running = False
                is_last = self._left.is_set()
            if is_last:
                with suppress(RuntimeError):  # the loop ended, and its limits with it
                    self._loop.call_soon_threadsafe(self._give_back)

    def leave(self) -> None:
        """Give the places back, or let the thread do so that still runs."""
        with self._lock:
            self._left.set()
            is_last = not self._is_running
        if is_last:
            self._give_back()

    def _give_back(self) -> None:
        while self._taken:
            self._taken.pop().release_on_behalf_of(self)


class BodyLimit:
    """Rejects bodies that are too large or too slow, and disconnects slow readers."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._most = limits.body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its body while it is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced[:20]) > self._most:
            refusal = error_responses.http_error_response(_too_large(self._most), scope)
            waits = b"expect" in headers  # the client sends nothing before it gets 100 Continue
            await refusal(
                scope, receive, send if waits else partial(_send_and_discard, receive, send)
            )
            return
        received, deadline, whole = 0, 0.0, False

        async def receive_within() -> Message:
            nonlocal received, deadline, whole
            if whole:  # only a disconnect can follow
                return await receive()
            deadline = deadline or anyio.current_time() + self._limits.body_s
            try:
                with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(
                    408, "The body was not sent in time.", _CLOSE_CONNECTION
                ) from error
            received += len(message.get("body", b""))
            if received > self._most:
                raise _too_large(self._most)
            whole = not message.get("more_body", False)
            return message

        async def send_within(message: Message) -> None:
            if received > self._most:
                await _send_and_discard(receive, send, message)
                return
            with anyio.fail_after(self._limits.send_s):
                await send(message)

        await self._app(scope, receive_within, send_within)


def check_head_size(scope: Scope) -> None:
    """Reject a request with a too large head."""
    lines = sum(len(name) + len(value) for name, value in scope["headers"])
    if lines + len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEAD_BYTES:
        raise HTTPException(
            431, f"Path and headers are larger than {MAX_HEAD_BYTES:,} bytes.", _CLOSE_CONNECTION
        )


async def _send_and_discard(receive: Receive, send: Send, message: Message) -> None:
    """Send a response and discard the rest of the body before the connection is closed.

    A client that sends its whole body first would otherwise lose the connection before it can read
    the response.
    """
    if message["type"] != "http.response.body" or message.get("more_body", False):
        await send(message)
        return
    await send({**message, "more_body": True})
    await _discard_rest(receive)
    await send({"type": "http.response.body"})


async def _discard_rest(receive: Receive) -> None:
    dropped = 0
    with anyio.move_on_after(_DISCARD_TIMEOUT_S):
        while dropped < _MAX_DISCARDED_BYTES:
            message = await receive()
            dropped += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


_CLOSE_CONNECTION = {"connection": "close"}
"""The rest of a rejected body is not read."""


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"The body is larger than {most:,} bytes.", _CLOSE_CONNECTION)


def parse_json(body: bytes) -> object:
    """Parse a JSON body; reject invalid or too deeply nested JSON."""
    try:
        tree = orjson.loads(body) if body.strip() else {}
    except ValueError as error:
        raise HTTPException(400, "The body is not JSON.") from error
    level = [tree]
    for _ in range(MAX_JSON_DEPTH):
        level = [inner for value in level for inner in _children(value)]
        if not level:
            return tree
    raise HTTPException(422, f"The body is nested deeper than {MAX_JSON_DEPTH} levels.")


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
