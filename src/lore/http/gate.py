"""The gate: nothing passes without access but the question whether the server is well.

Whatever goes wrong behind it is answered as a problem, and never with a traceback.
"""

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

from lore.errors import LoreError, place_of
from lore.http import hosts, problems
from lore.http.access import Access
from lore.http.limits import Rates, check_head
from lore.records import AccessScope, Grant
from lore.tools.callers import GRANT, STANDING, find_grant

log = logging.getLogger("lore.http")

OPEN = frozenset({"/health", "/login"})
"""What is answered without access; a login needs its ticket."""

_CHANGES_NOTHING = ("GET", "HEAD")

_ELSEWHERE: Final = "lore.elsewhere"
"""Where a request says that it is answered by another server, with that one's headers."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A door for all that is not this server's own; it looks itself who may pass without a key."""

    app: ASGIApp
    is_own: Callable[[str], bool]

    def takes(self, scope: Scope) -> bool:
        """Tell whether a request is for this door: what a browser asks for is not.

        A browser tells the site of its page, too; Node's fetch tells a mode alone.
        """
        if any(name == b"sec-fetch-site" for name, _ in scope["headers"]):
            return False
        probe = scope["method"] == "HEAD" and scope["path"] == "/"
        return probe or not self.is_own(scope["path"])


class Gate:
    """Checks Host, Origin, access and rate of every request, in this order."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        names: frozenset[str],
        rates: Rates,
        strangers: Rates,
        rest: Rest | None = None,
    ) -> None:
        self._app = app
        self._access = access
        self._names = names
        self._rates = rates
        self._strangers = strangers
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on what may pass."""
        if scope["type"] == "http" and self._rest is not None and self._rest.takes(scope):
            scope[GRANT] = await self._checked_elsewhere(scope)
            scope[_ELSEWHERE] = True
            await self._rest.app(scope, receive, send)
            return
        if scope["type"] == "http":
            scope[GRANT] = await self._checked(scope)
            scope[STANDING] = partial(self._access.find_grant, Headers(scope=scope))
        elif scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    async def _checked_elsewhere(self, scope: Scope) -> Grant | None:
        """Return what a key of Lore opens, where one is shown beside those of a provider."""
        check_head(scope)
        headers = Headers(scope=scope)
        wrong = hosts.why_refused(headers, self._names, by_cookie=False)
        if wrong:
            raise HTTPException(403, wrong)
        key = headers.get("x-lore-key")
        if key is None:
            return None
        grant = await self._access.find_grant(Headers({"x-lore-key": key}))
        if grant is None:
            self._count(self._strangers, (scope.get("client") or ("",))[0])
            raise HTTPException(401, "There is no such key of Lore.")
        return grant

    async def _checked(self, scope: Scope) -> Grant | None:
        check_head(scope)
        headers = Headers(scope=scope)
        by_cookie = "cookie" in headers and not {"authorization", "x-lore-key"} & set(headers)
        wrong = hosts.why_refused(headers, self._names, by_cookie=by_cookie)
        if wrong:
            raise HTTPException(403, wrong)
        if scope["path"] in OPEN:
            return None
        grant = await self._access.find_grant(headers)
        if grant is None:
            self._count(self._strangers, (scope.get("client") or ("",))[0])
            told = await self._access.why_closed(headers) or _NO_KEY
            raise HTTPException(401, told, {"www-authenticate": 'Bearer realm="lore"'})
        changes = scope["method"] not in _CHANGES_NOTHING
        if grant.browser and changes and "origin" not in headers:
            raise HTTPException(403, "A change by cookie needs the Origin of its page.")
        self._count(self._rates, grant.name)
        return grant

    @staticmethod
    def _count(rates: Rates, caller: str) -> None:
        wait_s = rates.wait_s(caller)
        if wait_s:
            told = "Too many requests in a short time."
            raise HTTPException(429, told, {"retry-after": str(math.ceil(wait_s))})


_NO_KEY = (
    "An access key is needed: 'Authorization: Bearer KEY'."
    " The file access.key in the home has one, and 'lore key create' makes others;"
    " 'lore open' lets a browser in."
)


def require(scope: Scope, *needed: AccessScope) -> Grant:
    """Return who asks, if all of this is open to them."""
    grant = find_grant(scope)
    if grant is None or not grant.allows(*needed):
        raise HTTPException(403, f"This key does not open that: it needs {' and '.join(needed)}.")
    return grant


class Catching:
    """The outermost: answers every error as a problem and lets none out of the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on and answer for what goes wrong with it, also if that is nothing."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        talk = _Talk(scope, receive, send)
        try:
            await self._app(scope, talk.receive, talk.send)
        except asyncio.CancelledError:
            if not talk.is_answered:
                await problems.of_stop()(scope, receive, talk.send)
            raise
        except Exception as error:  # noqa: BLE001 - the ASGI handler: no traceback ever leaves
            response = _problem_of(error, scope)
        else:
            if talk.is_answered or talk.is_over:
                return
            log.warning("request not answered", extra={"path": _path_kind(scope)})
            response = problems.of_accident()
        if not talk.is_answered:
            await response(scope, receive, talk.send)


class _Talk:
    """What a request and its answer have come to, with what every answer has to say."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.is_answered = self.is_over = False
        self._scope, self._receive, self._send = scope, receive, send

    async def receive(self) -> Message:
        message = await self._receive()
        self.is_over = self.is_over or message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_answered = True
            if _ELSEWHERE not in self._scope:
                message["headers"] = [*message.get("headers", ()), *_ALWAYS]
        await self._send(message)


def _problem_of(error: Exception, scope: Scope) -> Response:
    """Return the answer to a request that failed; what nobody foresaw is logged."""
    if isinstance(error, LoreError):
        return problems.of_error(error)
    if isinstance(error, HTTPException):
        return problems.of_refusal(error, scope)
    fields = {"error": type(error).__name__, "place": place_of(error)}
    log.warning("request failed", extra={"path": _path_kind(scope), **fields})
    return problems.of_accident()


_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


def _path_kind(scope: Scope) -> str:
    """Return what a log may say of a path: its beginning, for the rest may be anybody's words."""
    route = scope.get("route")
    return str(getattr(route, "path", "")) or "/" + scope["path"].strip("/").partition("/")[0][:20]
