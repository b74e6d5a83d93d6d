"""MCP over HTTP: `/mcp` for both generations of the protocol, and `/sse` for old clients."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.mcp.late import MCP, MESSAGES, SSE
from lore.tools.callers import find_grant, still_stands

LOOK_S = 5.0
"""How often a stream looks whether its key still opens anything, besides each time it sends."""

_ANY_SIZE = sys.maxsize


class McpApps:
    """An MCP server as apps by path, and the task group that they need while they are served.

    Host and Origin, keys and sizes are checked by the app that these are part of. A stream is for
    whoever opened it, as long as their key opens anything.
    """

    def __init__(self, server: Server[Any], look_s: float = LOOK_S) -> None:
        self._server = server
        self._look_s = look_s
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=_ANY_SIZE
        )
        self._sse = SseServerTransport(MESSAGES, max_request_body_size=_ANY_SIZE)
        self.apps: dict[str, ASGIApp] = {
            MCP: self._manager.handle_request,
            SSE: self._serve_sse,
            MESSAGES: self._take_message,
        }

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within this context, once."""
        async with self._manager.run():
            yield

    async def _serve_sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            told = f"A stream is opened by GET; messages are posted to {MESSAGES}."
            raise HTTPException(405, told, {"allow": "GET"})

        async def send_while_open(message: Message) -> None:
            if await still_stands(scope):
                await send(message)

        receive_while_open = partial(self._receive_while_open, scope, receive)
        owned, options = _with_owner(scope), self._server.create_initialization_options()
        async with self._sse.connect_sse(owned, receive_while_open, send_while_open) as streams:
            reading, writing = streams
            await self._server.run(reading, writing, options)

    async def _receive_while_open(self, scope: Scope, receive: Receive) -> Message:
        """Return what comes next; once the key opens nothing any more, that the client has left."""
        message: Message = {"type": "http.disconnect"}
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                nonlocal message
                message = await receive()
                tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            while await still_stands(scope):
                await anyio.sleep(self._look_s)
            tasks.cancel_scope.cancel()
        return message

    async def _take_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._sse.handle_post_message(_with_owner(scope), receive, send)


def _with_owner(scope: Scope) -> Scope:
    """Return a request as the SDK knows whose it is: it lets nobody else into a stream."""
    grant = find_grant(scope)
    name = "" if grant is None else grant.name
    owner = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
    return {**scope, "user": owner}
