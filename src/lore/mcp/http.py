"""MCP over HTTP: `/mcp` for both generations of the protocol, and `/sse` for old clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

MESSAGES = "/messages/"


class McpRoutes:
    """The routes of an MCP server, and the task group that they need while they are served."""

    def __init__(self, server: Server[Any]) -> None:
        # Host and Origin are checked for every route by the app that these are part of.
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._server = server
        self._sse = SseServerTransport(MESSAGES)

    @property
    def routes(self) -> list[BaseRoute]:
        """Return the routes, to be put into an app."""
        return [
            Route("/mcp", endpoint=_Asgi(self._manager.handle_request)),
            Route("/sse", endpoint=_Asgi(self._serve_sse), methods=["GET"]),
            Mount(MESSAGES, app=self._sse.handle_post_message),
        ]

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within this context, once."""
        async with self._manager.run():
            yield

    async def _serve_sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._sse.connect_sse(scope, receive, send) as (reading, writing):
            await self._server.run(reading, writing, self._server.create_initialization_options())
        await Response()(scope, receive, send)


class _Asgi:
    """An ASGI callable that a route takes as it is: a function would be taken for a view."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
