"""Limits: how much, how deep, how often and how slowly a caller may send."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio
import orjson
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.http import problems
from lore.settings import Settings

DEEPEST_JSON = 32
"""Payloads of fragments are the deepest that is sent, at 6 or 7."""

HEAD_BYTES = 32_768
"""All headers of a request together; Lore's own take under a thousand."""

BURST_S = 6.0
"""What a key may send at once is what it may send in so many seconds."""

_DROPPED_BYTES, _DROPPED_S = 64_000_000, 10.0
"""So much, and for so long, is read of a body that is too large before its sender is cut off."""

_MOST_CALLERS = 1_000
"""So many callers are counted; one that has not come for longest is forgotten."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may have and how long it may take, and how many one caller may send.

    A client has `head_s` for the head of a request, `body_s` for all of its body, and is not
    waited for if it reads nothing for `send_s`. Strangers are an address without a valid key.
    Connections that ask for nothing make room for others; requests at hand do not.
    """

    body_bytes: int = 8_000_000
    requests_per_minute: int = 6_000
    strangers_per_minute: int = 600
    head_s: float = 10.0
    body_s: float = 30.0
    send_s: float = 30.0
    connections: int = 512
    requests_at_once: int = 256

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return the limits that are configured."""
        return cls(settings.server_max_body_bytes, settings.server_requests_per_minute)


class Rates:
    """How many requests each caller has left; what is used comes back with time."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_minute / 60
        self._most = max(1.0, self._per_s * BURST_S)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, caller: str) -> float:
        """Count a request and return 0, or how long its caller has to wait before the next."""
        if not self._per_s:
            return 0.0
        now = self._clock()
        with self._lock:
            left, then = self._left.pop(caller, (self._most, now))
            left = min(self._most, left + (now - then) * self._per_s)
            allowed = left >= 1
            left -= allowed
            self._left[caller] = (left, now)
            while len(self._left) > _MOST_CALLERS:
                self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._per_s


class Crowd:
    """Lets no more requests in at a time than there is room for, streams among them."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._at_hand = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, or send it away for a moment."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._at_hand >= self._most:
            told = "Too many requests are at hand."
            raise HTTPException(503, told, {"retry-after": "1", **_CLOSING})
        self._at_hand += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._at_hand -= 1


class Bounds:
    """Lets no body through that is too large or too slow, and waits for no slow reader."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._most = limits.body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, with its body counted while it is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced[:20]) > self._most:
            refusal = problems.of_refusal(_too_large(self._most), scope)
            waits = b"expect" in headers  # it sends nothing before it is told to
            await refusal(scope, receive, send if waits else partial(_send_and_drop, receive, send))
            return
        taken, deadline, whole = 0, 0.0, False

        async def receive_within() -> Message:
            nonlocal taken, deadline, whole
            if whole:  # what comes now is only that the client has left
                return await receive()
            deadline = deadline or anyio.current_time() + self._limits.body_s
            try:
                with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, "The body was not sent in time.", _CLOSING) from error
            taken += len(message.get("body", b""))
            if taken > self._most:
                raise _too_large(self._most)
            whole = not message.get("more_body", False)
            return message

        async def send_within(message: Message) -> None:
            if taken > self._most:
                await _send_and_drop(receive, send, message)
                return
            with anyio.fail_after(self._limits.send_s):
                await send(message)

        await self._app(scope, receive_within, send_within)


def check_head(scope: Scope) -> None:
    """Refuse a request whose head is too large; one that comes in pieces is cut off before."""
    lines = sum(len(name) + len(value) for name, value in scope["headers"])
    if lines + len(scope["raw_path"]) + len(scope["query_string"]) > HEAD_BYTES:
        raise HTTPException(
            431, f"Path and headers are larger than {HEAD_BYTES:,} bytes.", _CLOSING
        )


async def _send_and_drop(receive: Receive, send: Send, message: Message) -> None:
    """Send an answer, and forget what is still sent of a body before the connection is closed.

    Who writes all of it first would else find the connection gone, and not read the answer.
    """
    if message["type"] != "http.response.body" or message.get("more_body", False):
        await send(message)
        return
    await send({**message, "more_body": True})
    await _drop_rest(receive)
    await send({"type": "http.response.body"})


async def _drop_rest(receive: Receive) -> None:
    dropped = 0
    with anyio.move_on_after(_DROPPED_S):
        while dropped < _DROPPED_BYTES:
            message = await receive()
            dropped += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


_CLOSING = {"connection": "close"}
"""What is left of a body that was refused is not read."""


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"The body is larger than {most:,} bytes.", _CLOSING)


def parsed(body: bytes) -> object:
    """Return what a JSON body says; refuse what is none, or is nested without need."""
    try:
        tree = orjson.loads(body) if body.strip() else {}
    except ValueError as error:
        raise HTTPException(400, "The body is not JSON.") from error
    level = [tree]
    for _ in range(DEEPEST_JSON):
        level = [inner for value in level for inner in _within(value)]
        if not level:
            return tree
    raise HTTPException(422, f"The body is nested deeper than {DEEPEST_JSON} levels.")


def _within(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
