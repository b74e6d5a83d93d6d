"""The front of a server: finds whose request it is, and passes it to the app of that owner."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar
from urllib.parse import parse_qsl

from anyio import CancelScope, to_thread
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.http import auth
from lore.http.auth import Logins
from lore.http.explorer_pages import ExplorerFiles, serve_health
from lore.http.middleware import FORWARDED, ErrorMiddleware
from lore.http.openapi import EVENTS_PATH
from lore.http.request_limits import ConcurrencyLimit, Limits, RateLimiter, check_head_size
from lore.mcp.lazy_apps import MCP, SSE
from lore.memory.access import KEY_MARK
from lore.proxy.address import API_PREFIX
from lore.records.server_records import ServerKey
from lore.server.owner_pool import OwnerPool
from lore.server.owner_service import TEAM, OwnerService, ServerThreads
from lore.server.registry import Registry

log = logging.getLogger("lore.server")

T = TypeVar("T")

COOKIE = "lore_server"
_NO_KEY = (
    "An access key of this server is needed: 'Authorization: Bearer KEY', or 'x-lore-key: KEY'"
    " beside a provider's key. The operator creates it with 'lore key create'."
)
_HANDLE_BYTES = 9
_STREAMS = frozenset({f"{API_PREFIX}{EVENTS_PATH}", MCP, SSE})
"""Paths whose responses may last for hours, without work on the memory."""


class OwnerLogins:
    """The browser logins of all owners, each with a random handle that begins its cookies."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._logins: dict[str, Logins] = {}
        self._owners: dict[str, str] = {}
        self._lock = threading.Lock()

    def find(self, owner: str) -> Logins:
        """Return the logins of an owner."""
        with self._lock:
            if owner not in self._logins:
                handle = secrets.token_hex(_HANDLE_BYTES)
                self._owners[handle] = owner
                self._logins[owner] = Logins(
                    COOKIE, mark=f"{handle}.", is_key_valid=self._registry.is_key_valid
                )
            return self._logins[owner]

    def find_owner(self, value: str) -> str:
        """Return whose a ticket or the value of a cookie is, by its handle; '' if unknown."""
        return self._owners.get(value.partition(".")[0], "")

    def owner_of_cookies(self, cookies: str) -> str:
        """Return whose browser session a cookie header belongs to; '' if it is none."""
        for pair in cookies.split(";"):
            name, _, value = pair.strip().partition("=")
            owner = self.find_owner(value) if name == COOKIE else ""
            if owner and self._logins[owner].find_session(pair.strip()) is not None:
                return owner
        return ""


@dataclass(slots=True)
class FrontCounters:
    """What the front has answered since it started, without names."""

    requests: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    started_s: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Caller:
    """Whose request it is: an owner, or the operator; `key` is None for a browser or a ticket."""

    owner: str
    key: ServerKey | None = None


class Front:
    """The ASGI app of a server; only /health answers without a key.

    It passes a request on only to the app of the owner whose key, cookie or ticket it bears. That
    app checks the key again, and knows no other owner's.
    """

    def __init__(  # noqa: PLR0913 - all that a front needs, by name
        self,
        registry: Registry,
        pool: OwnerPool[OwnerService],
        logins: OwnerLogins,
        operator: ASGIApp,
        *,
        host_names: frozenset[str],
        limits: Limits,
        counters: FrontCounters,
        threads: ServerThreads,
        on_request: Callable[[str], None] = lambda _owner: None,
        on_shutdown: Callable[[], object] = lambda: None,
    ) -> None:
        self._registry, self._pool, self._logins = registry, pool, logins
        self._operator = operator
        self._names = host_names
        self._counters = counters
        self._on_request, self._on_shutdown = on_request, on_shutdown
        self._health = serve_health(ExplorerFiles())
        self._threads = threads
        self._streams: dict[str, set[CancelScope]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rates = RateLimiter(limits.requests_per_minute)
        self._anonymous_rates = RateLimiter(limits.anonymous_per_minute)
        self._app: ASGIApp = ErrorMiddleware(
            ConcurrencyLimit(self._serve, max_requests=limits.requests_at_once)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        self._counters.in_flight += 1
        try:
            await self._app(scope, receive, self._counted(send))
        finally:
            self._counters.in_flight -= 1

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        """Answer the events of the server; at its end, close the apps while their loop runs."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await to_thread.run_sync(self._on_shutdown)
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _counted(self, send: Send) -> Send:
        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counters.requests[message["status"]] += 1
            await send(message)

        return send_and_count

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_head_size(scope)
        headers = Headers(scope=scope)
        by_cookie = "cookie" in headers and not {"authorization", "x-lore-key"} & set(headers)
        wrong = auth.host_rejection_reason(headers, self._names, by_cookie=by_cookie)
        if wrong:
            self._refuse("host", 403, wrong)
        if scope["path"] == "/health" and scope["method"] in ("GET", "HEAD"):
            response = await self._health(Request(scope, receive))
            await response(scope, receive, send)
            return
        caller = await self._find_caller(scope, headers)
        if caller is None:
            address = (scope.get("client") or ("",))[0]
            self._count(self._anonymous_rates, address)
            reason = await self._look_up(self._rejection_reason, _presented_key(headers))
            self._refuse("key", 401, reason, {"www-authenticate": 'Bearer realm="lore"'})
        self._count(self._rates, caller.owner)
        # The app of the owner sends its own headers, and reads a scope of its own.
        scope[FORWARDED] = True
        if not caller.owner:
            await self._operator(dict(scope), receive, send)
            return
        self._on_request(caller.owner)
        inner = {**scope, TEAM: caller.key.team if caller.key is not None else ""}
        inner.pop(FORWARDED)
        service = await self._acquire(caller.owner)
        try:
            app = service.app or await service.get_app()
            if scope["method"] == "GET" and scope["path"] in _STREAMS:
                await self._serve_stream(caller.owner, app, inner, receive, send)
            else:
                await app(inner, receive, send)
        finally:
            self._pool.release(caller.owner)

    async def _serve_stream(
        self, owner: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a stream until it ends, or until somebody else needs the place of its memory.

        The client then connects again.
        """
        is_open = False

        async def send_and_note(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        with CancelScope() as stream, self._pool.as_stream(owner):
            ending = self._streams.setdefault(owner, set())
            ending.add(stream)
            self._loop = asyncio.get_running_loop()
            try:
                await app(scope, receive, send_and_note)
            finally:
                ending.discard(stream)
                if not ending and self._streams.get(owner) is ending:
                    self._streams.pop(owner, None)
        if is_open:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def end_streams(self, owner: str) -> None:
        """End the streams of an owner; call it from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel_streams, owner)

    def _cancel_streams(self, owner: str) -> None:
        for stream in self._streams.pop(owner, set()):
            stream.cancel()

    async def _acquire(self, owner: str) -> OwnerService:
        service = self._pool.try_acquire(owner)
        if service is not None:
            return service
        opening = to_thread.run_sync(self._pool.acquire, owner, limiter=self._threads.openers)
        # A client that leaves meanwhile must not leave a lease behind.
        task = asyncio.ensure_future(opening)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(
                lambda done: None if done.exception() else self._pool.release(owner)
            )
            raise

    async def _find_caller(self, scope: Scope, headers: Headers) -> _Caller | None:
        """Return whose request it is, by its key, its cookie or its ticket."""
        presented = _presented_key(headers)
        if presented:
            key = await self._look_up(self._registry.find_key, presented)
            return None if key is None else _Caller(key.owner, key)
        if scope["path"] == "/login":
            tickets = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            owner = self._logins.find_owner(tickets.get("ticket", ""))
        else:
            cookies = headers.get("cookie", "")
            owner = await self._look_up(self._logins.owner_of_cookies, cookies)
        return _Caller(owner) if owner else None

    async def _look_up(self, find: Callable[[str], T], what: str) -> T:
        return await to_thread.run_sync(find, what, limiter=self._threads.lookups)

    def _rejection_reason(self, presented: str) -> str:
        """Return why a request is refused; whoever has a whole key may learn that it ended."""
        key = self._registry.identify_key(presented)
        if key is None:
            return _NO_KEY
        return "This access key was revoked." if key.revoked_at else "This access key expired."

    def _count(self, rates: RateLimiter, caller: str) -> None:
        wait_s = rates.wait_s(caller)
        if wait_s:
            detail = "Too many requests; wait before the next one."
            self._refuse("rate", 429, detail, {"retry-after": str(math.ceil(wait_s))})

    def _refuse(
        self, reason: str, status: int, detail: str, headers: Mapping[str, str] | None = None
    ) -> NoReturn:
        self._counters.refused[reason] += 1
        raise HTTPException(status, detail, headers)


def _presented_key(headers: Headers) -> str:
    """Return the Lore key of a request, or ''; other bearer tokens are a provider's."""
    key = headers.get("x-lore-key")
    if key is not None:
        return key.strip()
    scheme, _, value = headers.get("authorization", "").partition(" ")
    is_key = scheme.lower() == "bearer" and value.strip().startswith(KEY_MARK)
    return value.strip() if is_key else ""
