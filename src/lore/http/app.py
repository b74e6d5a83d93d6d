"""The app: one for every door that speaks HTTP, behind one gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.routing import Mount as StarletteMount
from starlette.types import ASGIApp, Receive, Scope, Send

from lore import __version__
from lore.http import calling, doing, gate, hooking, openapi, problems, reading, tickets
from lore.http.access import Access
from lore.http.calling import Toolbox
from lore.http.endpoint import Endpoint, answer, tagged
from lore.http.gate import Catching, Gate, Rest
from lore.http.limits import Bounds, Crowd, Limits, Rates
from lore.http.logins import SESSION_S, Logins
from lore.http.metrics import serve_metrics
from lore.http.shut import Shut, Trouble
from lore.http.tally import Tally
from lore.http.welcome import Rows, serve_welcome
from lore.memory import Memory
from lore.proxy.address import PREFIX
from lore.records import AccessScope

THREADS = 4
"""Requests that work on the memory at a time: each holds a connection with its own cache, and
more would only wait for the same few cores."""


@dataclass(frozen=True, slots=True)
class Mount:
    """Another door in the same app: open to who may do all that it `needs`."""

    path: str
    app: ASGIApp
    lifespan: Callable[[], AbstractAsyncContextManager[object]] | None = None
    needs: tuple[AccessScope, ...] = ("read", "write")

    def route(self) -> BaseRoute:
        """Return the route: of this path alone, or of all below where it ends in a slash."""
        if self.path.endswith("/"):
            return StarletteMount(self.path, app=self)
        return Route(self.path, endpoint=self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on what may pass this door."""
        gate.require(scope, *self.needs)
        await self.app(scope, receive, send)


def endpoints_of(
    toolbox: Toolbox,
    logins: Logins,
    stopping: Callable[[], bool] = lambda: False,
    hooks: Tally | None = None,
) -> tuple[Endpoint[Any], ...]:
    """Return all endpoints of the REST interface, in the order they are documented."""
    done = (*doing.endpoints(stopping), *hooking.endpoints(hooks), *tickets.endpoints(logins))
    return (*calling.endpoints(toolbox), *done, *reading.ENDPOINTS)


def make_app(  # noqa: PLR0913 - all that one app serves and how
    memory: Memory,
    access: Access,
    toolbox: Toolbox,
    *,
    names: frozenset[str],
    limits: Limits | None = None,
    mounts: Sequence[Mount] = (),
    rest: Mount | None = None,
    stopping: Callable[[], bool] = lambda: False,
    about: Callable[[], Rows] = tuple,
    hooks: Tally | None = None,
    shut: Trouble | None = None,
) -> Starlette:
    """Return the app of a memory; only /health answers without access.

    `rest` has all that is not this server's own, and looks itself who may pass. `about` tells of
    the process that serves, for the page at `/`; `hooks` counts what became of those that agents
    call. With `shut`, all but `rest` is answered with what is wrong with the memory.
    """
    limits = limits or Limits()
    endpoints = endpoints_of(toolbox, access.logins, stopping, hooks)
    described = orjson.dumps(openapi.describe(endpoints, cookie=access.logins.cookie))
    routes: list[BaseRoute] = [
        Route("/", serve_welcome(memory, about), methods=["GET"]),
        Route("/health", _health, methods=["GET"]),
        Route("/metrics", serve_metrics(memory), methods=["GET"]),
        _get_alone("/login", _login(access.logins)),
        Route(f"{PREFIX}/openapi.json", _document(described), methods=["GET"]),
        *(_route(endpoint, memory) for endpoint in endpoints),
        *(mount.route() for mount in mounts),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Catching),
            Middleware(Crowd, most=limits.requests_at_once),
            Middleware(
                Gate,
                access=access,
                names=names,
                rates=Rates(limits.requests_per_minute),
                strangers=Rates(limits.strangers_per_minute),
                rest=Rest(rest.app, _owning(routes)) if rest is not None else None,
            ),
            *([Middleware(Shut, why=shut)] if shut is not None else []),
            Middleware(Bounds, limits=limits),
        ],
        exception_handlers={HTTPException: _refuse, Exception: _answer_for},
        lifespan=_lifespan([*mounts, *([rest] if rest is not None else [])]),
    )


RESERVED = ("/metrics", "/status")
"""Paths of this server beside those of its routes."""


def _owning(routes: Sequence[BaseRoute]) -> Callable[[str], bool]:
    """Return what tells whether a path is this server's own: one of a route, or below it."""
    named = {route.path for route in routes if isinstance(route, Route | StarletteMount)}
    exact = frozenset(path for path in {*named, *RESERVED} if not path.startswith(f"{PREFIX}/"))
    under = tuple(f"{path}/" for path in (PREFIX, *exact) if path != "/")

    def is_own(path: str) -> bool:
        # Also with a slash behind it: what is meant for this server goes to no provider.
        return (path.rstrip("/") or path) in exact or path == PREFIX or path.startswith(under)

    return is_own


def _route(endpoint: Endpoint[Any], memory: Memory) -> Route:
    async def serve(request: Request) -> Response:
        return await answer(request, endpoint, memory)

    return Route(f"{PREFIX}{endpoint.path}", serve, methods=[endpoint.method])


def _get_alone(path: str, endpoint: Callable[[Request], Any]) -> Route:
    """Return a route that HEAD does not reach: who only looks at it must change nothing."""
    route = Route(path, endpoint, methods=["GET"])
    route.methods = {"GET"}
    return route


async def _refuse(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, HTTPException)
    return problems.of_refusal(refused, request.scope)


async def _answer_for(_request: Request, _error: Exception) -> Response:
    """Answer for what even the gate did not catch."""
    return problems.of_accident()


async def _health(_request: Request) -> Response:
    return JSONResponse({"ok": True, "version": __version__})


def _document(described: bytes) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        gate.require(request.scope, "read")
        return tagged(request, described)

    return serve


_UNKEPT = {"cache-control": "no-store"}


def _login(logins: Logins) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        cookie = logins.redeem(request.query_params.get("ticket", ""))
        if cookie is None:
            raise HTTPException(401, "This ticket is used or too old; 'lore open' makes another.")
        response = RedirectResponse("/", 303, _UNKEPT)
        response.set_cookie(
            logins.cookie,
            cookie,
            max_age=int(SESSION_S),
            path="/",
            httponly=True,
            samesite="strict",
        )
        return response

    return serve


def _lifespan(
    mounts: Sequence[Mount],
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        async with AsyncExitStack() as stack:
            for mount in mounts:
                if mount.lifespan is not None:
                    await stack.enter_async_context(mount.lifespan())
            yield

    return lifespan
