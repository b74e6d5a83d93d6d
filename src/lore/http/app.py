"""The ASGI app: routes, middleware and mounted apps on one port."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import orjson
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.routing import Mount as StarletteMount
from starlette.types import ASGIApp, Receive, Scope, Send

from lore import __version__
from lore.http import (
    error_responses,
    explorer_build,
    explorer_endpoints,
    explorer_pages,
    fragment_endpoints,
    middleware,
    openapi,
    read_endpoints,
    review_endpoints,
    sync_endpoints,
    team_endpoints,
    write_endpoints,
)
from lore.http import hooks as hooking
from lore.http.auth import SESSION_S, Authenticator, Logins
from lore.http.endpoint import Endpoint, etag_response, handle_request
from lore.http.event_stream import ChangeFeed
from lore.http.explorer_pages import ExplorerFiles, serve_asset, serve_health, serve_page
from lore.http.hooks import HookCounters
from lore.http.metrics import serve_metrics
from lore.http.middleware import (
    AuthMiddleware,
    DisabledMemoryMiddleware,
    ErrorMiddleware,
    FailureReason,
    FallbackApp,
    TraceMiddleware,
)
from lore.http.request_limits import (
    BodyLimit,
    ConcurrencyLimit,
    Limits,
    MemoryThreads,
    RateLimiter,
)
from lore.http.write_endpoints import Toolbox
from lore.memory import Memory
from lore.proxy.address import API_PREFIX
from lore.records import AccessScope, Stats

InfoRows = Iterable[tuple[str, str]]
"""Labels and values to show on the welcome page."""

_STAT_LABELS = {
    "sessions": "sessions",
    "messages": "messages",
    "distillations": "logs",
    "fragments": "fragments",
    "edges": "edges",
    "standing": "standing instructions",
}


def serve_welcome(
    memory: Memory, about: Callable[[], InfoRows], files: ExplorerFiles
) -> Callable[[Request], Any]:
    """Return the handler of the welcome page; `about` lists facts about the serving process."""
    template = Template(_read_data("welcome.html"))
    style = _read_data("welcome.css")
    headers = {
        "content-security-policy": _content_security_policy(style),
        "cache-control": "no-store",
    }

    async def serve(request: Request) -> Response:
        middleware.require_scope(request.scope, "read")
        stats, rows = await to_thread.run_sync(lambda: (memory.maintenance.stats(), tuple(about())))
        address = f"{request.url.scheme}://{request.url.netloc}"
        hint = "" if files.is_built else explorer_build.NOT_BUILT
        stats = replace(stats, notice=" ".join(filter(None, (stats.notice, hint))))
        return HTMLResponse(_render_page(template, style, stats, rows, address), headers=headers)

    return serve


def _render_page(template: Template, style: str, stats: Stats, rows: InfoRows, address: str) -> str:
    figures = ((label, f"{getattr(stats, name):,}") for name, label in _STAT_LABELS.items())
    return template.substitute(
        style=style,
        version=escape(__version__),
        figures="".join(f"<div>{_definition(*figure)}</div>" for figure in figures),
        path=escape(stats.path),
        size=escape(f"{stats.bytes / 1e6:,.1f} MB"),
        notice=f'<p class="notice">{escape(stats.notice)}</p>' if stats.notice else "",
        daemon="".join(_definition(*row) for row in rows),
        address=escape(address),
    )


def _definition(name: str, value: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"


def _content_security_policy(style: str) -> str:
    """Return a policy that lets the browser load the page's own style and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _read_data(name: str) -> str:
    return (resources.files("lore") / "data" / name).read_text("utf-8")


SHORT_THREADS = 4
"""Threads for what takes milliseconds: files of the explorer, figures, JSON."""


@dataclass(frozen=True, slots=True)
class MountedApp:
    """Another app on the same port, open to callers whose key has all its `scopes`."""

    path: str
    app: ASGIApp
    lifespan: Callable[[], AbstractAsyncContextManager[object]] | None = None
    scopes: tuple[AccessScope, ...] = ("read", "write")

    def route(self) -> BaseRoute:
        """Return the route of this path, and of all below it if it ends in a slash."""
        if self.path.endswith("/"):
            return StarletteMount(self.path, app=self)
        return Route(self.path, endpoint=self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if the caller has the scopes."""
        middleware.require_scope(scope, *self.scopes)
        await self.app(scope, receive, send)


def endpoints_of(
    toolbox: Toolbox,
    logins: Logins,
    stopping: Callable[[], bool] = lambda: False,
    hook_counters: HookCounters | None = None,
) -> tuple[Endpoint[Any], ...]:
    """Return all endpoints of the REST API, in the order of the documentation.

    They have limits of their own: of many apps in a process, one does not wait for another.
    """
    acting = (
        *write_endpoints.write_endpoints(stopping),
        *hooking.hook_endpoints(hook_counters),
        *write_endpoints.login_endpoints(logins),
    )
    endpoints: tuple[Endpoint[Any], ...] = (
        *write_endpoints.tool_endpoints(toolbox),
        *acting,
        *read_endpoints.READ_ENDPOINTS,
        *fragment_endpoints.FRAGMENT_ENDPOINTS,
        *review_endpoints.REVIEW_ENDPOINTS,
        *sync_endpoints.SYNC_ENDPOINTS,
        *team_endpoints.TEAM_ENDPOINTS,
        *explorer_endpoints.EXPLORER_ENDPOINTS,
    )
    return tuple(one.with_own_limiter() for one in endpoints)


def make_app(  # noqa: PLR0913 - all that one app serves and how
    memory: Memory,
    access: Authenticator,
    toolbox: Toolbox,
    *,
    host_names: frozenset[str],
    limits: Limits | None = None,
    mounts: Sequence[MountedApp] = (),
    fallback: MountedApp | None = None,
    stopping: Callable[[], bool] = lambda: False,
    about: Callable[[], InfoRows] = tuple,
    hook_counters: HookCounters | None = None,
    failure: FailureReason | None = None,
    explorer: Path | None = None,
    describe: Callable[[], bytes] | None = None,
    threads: MemoryThreads | None = None,
) -> Starlette:
    """Return the app of a memory; only /health answers without authentication.

    `fallback` handles all paths that are not this server's own, and authenticates its callers
    itself. `about` lists facts about the serving process for the welcome page. With `failure`,
    everything but `fallback` gets an error that explains why the memory is unavailable. `explorer`
    is the folder of the built pages, by default that of the package. `describe` returns the
    description of the API, and is called when somebody first asks for it: making one takes longer
    than everything else here. `threads` are those of the memory, if other apps work on it, too.
    """
    limits = limits or Limits()
    threads = threads or MemoryThreads()
    endpoints = endpoints_of(toolbox, access.logins, stopping, hook_counters)
    feed = ChangeFeed(memory, stopping)
    files = ExplorerFiles(explorer)
    describe = describe or partial(describe_endpoints, endpoints, cookie=access.logins.cookie)
    routes: list[BaseRoute] = [
        *_page_routes(files, serve_welcome(memory, about, files)),
        Route("/health", serve_health(files), methods=["GET"]),
        Route("/metrics", serve_metrics(memory), methods=["GET"]),
        _get_only_route("/login", _login(access.logins)),
        Route(f"{API_PREFIX}/openapi.json", _serve_document(describe), methods=["GET"]),
        _get_only_route(f"{API_PREFIX}{openapi.EVENTS_PATH}", feed.serve),
        _route(read_endpoints.STATUS_ENDPOINT, memory, threads, prefix=""),
        *(_route(endpoint, memory, threads) for endpoint in endpoints),
        *(mount.route() for mount in mounts),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(ErrorMiddleware),
            Middleware(ConcurrencyLimit, max_requests=limits.requests_at_once),
            Middleware(
                AuthMiddleware,
                access=access,
                host_names=host_names,
                rates=RateLimiter(limits.requests_per_minute),
                anonymous_rates=RateLimiter(limits.anonymous_per_minute),
                fallback=FallbackApp(
                    fallback.app, _own_path_matcher(routes), explorer_pages.is_explorer_path
                )
                if fallback is not None
                else None,
            ),
            Middleware(TraceMiddleware),
            *([Middleware(DisabledMemoryMiddleware, failure=failure)] if failure else []),
            Middleware(BodyLimit, limits=limits),
        ],
        exception_handlers={HTTPException: _handle_http_error, Exception: _handle_any_error},
        lifespan=_lifespan([*mounts, *([fallback] if fallback is not None else [])]),
    )


def describe_endpoints(endpoints: Sequence[Endpoint[Any]], *, cookie: str) -> bytes:
    """Return the OpenAPI document of endpoints as JSON."""
    return orjson.dumps(openapi.describe_api(endpoints, cookie=cookie))


RESERVED_PATHS = ("/metrics", "/status")
"""Paths of this server that have no route of their own in every setup."""


def _own_path_matcher(routes: Sequence[BaseRoute]) -> Callable[[str], bool]:
    """Return a predicate for paths of this server: those of its routes, and all below them."""
    # Pages are told apart by the method, too: see `FallbackApp`.
    paths = {
        route.path
        for route in routes
        if isinstance(route, Route | StarletteMount)
        and (route.path in ("/", "/health") or not explorer_pages.is_explorer_path(route.path))
    }
    exact = frozenset(
        path for path in {*paths, *RESERVED_PATHS} if not path.startswith(f"{API_PREFIX}/")
    )
    under = tuple(f"{path}/" for path in (API_PREFIX, *exact) if path != "/")

    def is_own(path: str) -> bool:
        # With a trailing slash too: a request for this server must not go to a provider.
        return (path.rstrip("/") or path) in exact or path == API_PREFIX or path.startswith(under)

    return is_own


def _route(
    endpoint: Endpoint[Any], memory: Memory, threads: MemoryThreads, *, prefix: str = API_PREFIX
) -> Route:
    async def serve(request: Request) -> Response:
        return await handle_request(request, endpoint, memory, threads)

    return Route(f"{prefix}{endpoint.path}", serve, methods=[endpoint.method])


def _get_only_route(path: str, endpoint: Callable[[Request], Any]) -> Route:
    """Return a route that ignores HEAD: GET uses up a ticket, or opens a stream."""
    route = Route(path, endpoint, methods=["GET"])
    route.methods = {"GET"}
    return route


async def _handle_http_error(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, HTTPException)
    return error_responses.http_error_response(refused, request.scope)


async def _handle_any_error(_request: Request, _error: Exception) -> Response:
    return error_responses.internal_error_response()


def _page_routes(files: ExplorerFiles, welcome: Callable[[Request], Any]) -> list[BaseRoute]:
    page, asset = serve_page(files, welcome), serve_asset(files)
    pages = [path for path in (*explorer_pages.PAGES, *explorer_pages.ITEM_PAGES)
             if path != "/health"]  # fmt: skip
    return [
        *(Route(path, page, methods=["GET"]) for path in pages),
        *(Route(path, asset, methods=["GET"]) for path in explorer_pages.FILES),
        Route(f"{explorer_pages.ASSETS}{{name}}", asset, methods=["GET"]),
    ]


def _serve_document(describe: Callable[[], bytes]) -> Callable[[Request], Any]:
    describe_once = cache(describe)

    async def serve(request: Request) -> Response:
        middleware.require_scope(request.scope, "read")
        return etag_response(request, await to_thread.run_sync(describe_once))

    return serve


_NO_STORE = {"cache-control": "no-store"}


def _login(logins: Logins) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        if request.headers.get("sec-fetch-site") == "cross-site":
            raise HTTPException(403, "A page of another site cannot log a browser in.")
        cookie = logins.redeem(request.query_params.get("ticket", ""))
        if cookie is None:
            raise HTTPException(401, "This login ticket is used or expired; run 'lore open' again.")
        target = explorer_pages.page_target(request.query_params.get("next", "/"))
        response = RedirectResponse(target, 303, _NO_STORE)
        response.set_cookie(
            logins.cookie,
            cookie,
            max_age=int(SESSION_S),
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.headers.get("x-forwarded-proto") == "https",
        )
        return response

    return serve


def _lifespan(
    mounts: Sequence[MountedApp],
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = SHORT_THREADS
        async with AsyncExitStack() as stack:
            for mount in mounts:
                if mount.lifespan is not None:
                    await stack.enter_async_context(mount.lifespan())
            yield

    return lifespan
