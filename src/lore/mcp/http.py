"""MCP over HTTP: `/mcp` for both generations of the protocol, and `/sse` for old clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Receive, Scope, Send

from lore.mcp.late import MCP, MESSAGES, SSE


class McpApps:
    """An MCP server as apps by path, and the task group that they need while they are served.

    Host and Origin, keys and sizes are checked by the app that these are part of.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._sse = SseServerTransport(MESSAGES)
        self.apps: dict[str, ASGIApp] = {
            MCP: self._manager.handle_request,
            SSE: self._serve_sse,
            MESSAGES: self._sse.handle_post_message,
        }

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within this context, once."""
        async with self._manager.run():
            yield

    async def _serve_sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._sse.connect_sse(scope, receive, send) as (reading, writing):
            await self._server.run(reading, writing, self._server.create_initialization_options())
