"""MCP transports: streamable HTTP, SSE for old clients, and stdio."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, BinaryIO, Protocol

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.mcp.lazy_apps import MCP, MESSAGES, SSE
from lore.mcp.server import make_server
from lore.memory import Memory
from lore.proxy import stdio_proxy
from lore.proxy.stdio_proxy import INVALID_REQUEST, InvalidMessage
from lore.tools.tool import Caller, find_grant, is_still_granted

KEY_CHECK_INTERVAL_S = 5.0
"""How often a stream checks whether its access key is still valid, besides every time it sends."""

_NO_SIZE_LIMIT = sys.maxsize


class McpApps:
    """ASGI apps of an MCP server by path, and the task group that they need.

    The enclosing app checks Host, Origin, keys and sizes. A stream belongs to the caller that
    opened it, as long as the caller's key is valid.
    """

    def __init__(self, server: Server[Any], look_s: float = KEY_CHECK_INTERVAL_S) -> None:
        self._server = server
        self._key_check_interval_s = look_s
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=_NO_SIZE_LIMIT
        )
        self._sse = SseServerTransport(MESSAGES, max_request_body_size=_NO_SIZE_LIMIT)
        self.apps: dict[str, ASGIApp] = {
            MCP: self._manager.handle_request,
            SSE: self._serve_sse,
            MESSAGES: self._receive_message,
        }

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the apps within this context; enter it once."""
        async with self._manager.run():
            yield

    async def _serve_sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            detail = f"Open a stream with GET; post messages to {MESSAGES}."
            raise HTTPException(405, detail, {"allow": "GET"})

        async def send_while_open(message: Message) -> None:
            if await is_still_granted(scope):
                await send(message)

        receive_while_open = partial(self._receive_while_open, scope, receive)
        owned, options = _with_owner(scope), self._server.create_initialization_options()
        async with self._sse.connect_sse(owned, receive_while_open, send_while_open) as streams:
            reading, writing = streams
            await self._server.run(reading, writing, options)

    async def _receive_while_open(self, scope: Scope, receive: Receive) -> Message:
        """Return the next message, or a disconnect once the access key is no longer valid."""
        message: Message = {"type": "http.disconnect"}
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                nonlocal message
                message = await receive()
                tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            while await is_still_granted(scope):
                await anyio.sleep(self._key_check_interval_s)
            tasks.cancel_scope.cancel()
        return message

    async def _receive_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._sse.handle_post_message(_with_owner(scope), receive, send)


def _with_owner(scope: Scope) -> Scope:
    """Return the scope with its owner, as the SDK expects it: only the owner may use a stream."""
    grant = find_grant(scope)
    name = "" if grant is None else grant.name
    owner = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
    return {**scope, "user": owner}


def serve_stdio(memory: Memory, project: str) -> None:
    """Serve one client on standard input and output until it closes its end."""
    server = make_server(memory, Caller(project=project))
    input_lines = _InputLines(_detach_stdin())

    async def run() -> None:
        async with stdio_server(stdin=input_lines) as (reading, writing):  # type: ignore[arg-type]  # it is only iterated over
            input_lines.answers = writing
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)


class _Sender(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


class _InputLines:
    """The client's lines; unlike the SDK, answer invalid ones with an error."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.answers: _Sender | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in anyio.wrap_file(self._source):
            if not line.strip():
                continue
            try:
                yield _check_line(line)
            except InvalidMessage as refused:
                assert self.answers is not None
                await self.answers.send(_error_message(refused))


def _check_line(line: bytes) -> str:
    message = stdio_proxy.parse_line(line)
    text = line.decode()
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        msg = "This is not a JSON-RPC 2.0 message."
        raise InvalidMessage(INVALID_REQUEST, msg, message.get("id")) from error
    return text


def _error_message(refused: InvalidMessage) -> SessionMessage:
    details: Any = types.ErrorData(code=refused.code, message=str(refused))
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=refused.id, error=details))


def _detach_stdin() -> BinaryIO:
    """Return standard input for this process alone, so that child processes cannot read from it."""
    own = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return own
