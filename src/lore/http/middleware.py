"""ASGI middleware: authentication, rate limits, error responses."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore import telemetry
from lore.errors import LoreError, error_location
from lore.http import auth, error_responses
from lore.http.auth import Authenticator
from lore.http.request_limits import RateLimiter, check_head_size
from lore.records import AccessKey, AccessScope, Grant
from lore.tools.tool import GRANT, RECHECK_GRANT, find_grant

log = logging.getLogger("lore.http")

PUBLIC_PATHS = frozenset({"/health", "/login"})
"""Paths that need no key; a login needs its ticket."""

_SAFE_METHODS = ("GET", "HEAD")

FORWARDED: Final = "lore.elsewhere"
"""Scope key of requests that another server answers, with its own headers."""


@dataclass(frozen=True, slots=True)
class FallbackApp:
    """The app for all paths that are not this server's own; it authenticates its callers itself."""

    app: ASGIApp
    is_own: Callable[[str], bool]
    is_page: Callable[[str], bool] = lambda _path: False

    def handles(self, scope: Scope) -> bool:
        """Return whether this app handles a request; requests of browsers are never forwarded.

        Browsers send sec-fetch-site; Node's fetch sends only sec-fetch-mode. Pages are only read:
        what a client posts to such a path is meant for a provider.
        """
        if any(name == b"sec-fetch-site" for name, _ in scope["headers"]):
            return False
        method, path = scope["method"], scope["path"]
        if method == "HEAD" and path == "/":
            return True
        return not self.is_own(path) and not (method in _SAFE_METHODS and self.is_page(path))


class AuthMiddleware:
    """Checks Host, Origin, access key and rate limit of every request, in this order."""

    def __init__(
        self,
        app: ASGIApp,
        access: Authenticator,
        host_names: frozenset[str],
        rates: RateLimiter,
        anonymous_rates: RateLimiter,
        fallback: FallbackApp | None = None,
    ) -> None:
        self._app = app
        self._access = access
        self._names = host_names
        self._rates = rates
        self._anonymous_rates = anonymous_rates
        self._fallback = fallback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that passes the checks."""
        if scope["type"] == "http" and self._fallback is not None and self._fallback.handles(scope):
            scope[GRANT] = await self._authenticate_forwarded(scope)
            scope[FORWARDED] = True
            await self._fallback.app(scope, receive, send)
            return
        if scope["type"] == "http":
            scope[GRANT] = await self._authenticate(scope)
            scope[RECHECK_GRANT] = partial(self._access.find_grant, Headers(scope=scope))
        elif scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    async def _authenticate_forwarded(self, scope: Scope) -> Grant | None:
        """Return the grant of a Lore key that is sent beside a provider's key."""
        check_head_size(scope)
        headers = Headers(scope=scope)
        wrong = auth.host_rejection_reason(headers, self._names, by_cookie=False)
        if wrong:
            raise HTTPException(403, wrong)
        key = headers.get("x-lore-key")
        if key is None:
            return None
        grant = await self._access.find_grant(Headers({"x-lore-key": key}))
        if grant is None:
            self._count(self._anonymous_rates, (scope.get("client") or ("",))[0])
            raise HTTPException(401, "This Lore access key is not valid.")
        return grant

    async def _authenticate(self, scope: Scope) -> Grant | None:
        check_head_size(scope)
        headers = Headers(scope=scope)
        by_cookie = "cookie" in headers and not {"authorization", "x-lore-key"} & set(headers)
        wrong = auth.host_rejection_reason(headers, self._names, by_cookie=by_cookie)
        if wrong:
            raise HTTPException(403, wrong)
        if scope["path"] in PUBLIC_PATHS:
            return None
        grant = await self._access.find_grant(headers)
        if grant is None:
            self._count(self._anonymous_rates, (scope.get("client") or ("",))[0])
            detail = await self._access.rejection_reason(headers) or _KEY_NEEDED
            raise HTTPException(401, detail, {"www-authenticate": 'Bearer realm="lore"'})
        changes = scope["method"] not in _SAFE_METHODS
        if grant.browser and changes and "origin" not in headers:
            raise HTTPException(403, "A write with a cookie needs an Origin header.")
        self._count(self._rates, grant.name)
        return grant

    @staticmethod
    def _count(rates: RateLimiter, caller: str) -> None:
        wait_s = rates.wait_s(caller)
        if wait_s:
            detail = "Too many requests; wait before the next one."
            raise HTTPException(429, detail, {"retry-after": str(math.ceil(wait_s))})


_KEY_NEEDED = (
    "An access key is needed: 'Authorization: Bearer KEY'."
    " The file access.key in the home has one, and 'lore key create' makes others;"
    " 'lore open' lets a browser in."
)


def require_scope(scope: Scope, *needed: AccessScope) -> Grant:
    """Return the caller's grant, or reject the request if it lacks a scope."""
    grant = find_grant(scope)
    if grant is None or not grant.allows(*needed):
        raise HTTPException(403, f"This access key lacks a scope: it needs {' and '.join(needed)}.")
    return grant


class TraceMiddleware:
    """Records a span of each request that was let in, named by its route and never by its path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within a span, in the trace that its header names."""
        if scope["type"] != "http" or not telemetry.is_on():
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        attributes = {telemetry.METHOD: method}
        headers = Headers(scope=scope)
        refusal: HTTPException | LoreError | None = None
        with telemetry.span(method, attributes, kind="server", headers=headers) as span:
            try:
                await self._app(scope, receive, telemetry.watch_status(send, span))
            except (HTTPException, LoreError) as error:  # the outermost middleware answers it
                refusal = error
                span.set(telemetry.ERROR, type(error).__name__)
                span.set_status(_status_of(error))
            finally:
                route = getattr(scope.get("route"), "path", "")
                if route:
                    span.rename(f"{method} {route}")
                    span.set(telemetry.ROUTE, route)
        if refusal is not None:
            raise refusal


def _status_of(error: HTTPException | LoreError) -> int:
    if isinstance(error, HTTPException):
        return error.status_code
    return error_responses.status_code(type(error))


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class ErrorMiddleware:
    """Outermost middleware: turns every exception into an error response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; answer errors, and requests that the app left unanswered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except asyncio.CancelledError:
            if not exchange.is_answered:
                headers = {"connection": "close"}
                response = error_responses.problem_response(
                    503, "Stopping", "The server stops.", headers=headers
                )
                await response(scope, receive, exchange.send)
            raise
        except Exception as error:  # noqa: BLE001 - the ASGI handler: no traceback ever leaves
            response = _error_response(error, scope)
        else:
            if exchange.is_answered or exchange.is_disconnected:
                return
            log.warning("request not answered", extra={"path": _loggable_path(scope)})
            response = error_responses.internal_error_response()
        if not exchange.is_answered:
            await response(scope, receive, exchange.send)


class _Exchange:
    """State of a request and its response; adds the security headers."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.is_answered = self.is_disconnected = False
        self._scope, self._receive, self._send = scope, receive, send

    async def receive(self) -> Message:
        message = await self._receive()
        self.is_disconnected = self.is_disconnected or message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_answered = True
            if FORWARDED not in self._scope:
                message["headers"] = [*message.get("headers", ()), *_SECURITY_HEADERS]
        await self._send(message)


def _error_response(error: Exception, scope: Scope) -> Response:
    """Return the response for an exception; log unexpected ones."""
    if isinstance(error, LoreError):
        return error_responses.lore_error_response(error)
    if isinstance(error, HTTPException):
        return error_responses.http_error_response(error, scope)
    fields = {"error": type(error).__name__, "place": error_location(error)}
    log.warning("request failed", extra={"path": _loggable_path(scope), **fields})
    return error_responses.internal_error_response()


_SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


def _loggable_path(scope: Scope) -> str:
    """Return the part of a path that may be logged: the route, or its first segment."""
    route = scope.get("route")
    return str(getattr(route, "path", "")) or "/" + scope["path"].strip("/").partition("/")[0][:20]


FailureReason = Callable[[], LoreError]
"""Returns why the memory is unavailable."""

_HEALTH_PATH = "/health"

_KEY_UNCHECKED = "Lore's memory is unavailable, so only the local access key can be checked."


class DisabledMemoryMiddleware:
    """Answers every request with an error while the memory is unavailable."""

    def __init__(self, app: ASGIApp, failure: FailureReason) -> None:
        self._app = app
        self._why = failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the reason and what to do about it."""
        if scope["type"] != "http" or scope["path"] == _HEALTH_PATH:
            await self._app(scope, receive, send)
        else:
            why = self._why()
            response = error_responses.problem_response(
                503, type(why).__name__, str(why), hint=why.hint
            )
            await response(scope, receive, send)


def reject_stored_keys(_key: str) -> AccessKey | None:
    """Reject a stored key that cannot be checked while the memory is unavailable."""
    raise HTTPException(503, _KEY_UNCHECKED)
