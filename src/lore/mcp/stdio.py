"""MCP over standard input and output in this process, where no daemon can be reached."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, Protocol

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from lore.mcp.serving import make_server
from lore.memory import Memory
from lore.proxy import lines
from lore.proxy.lines import NO_REQUEST, Refused
from lore.tools.tool import Caller


def serve(memory: Memory, project: str) -> None:
    """Serve one client until it hangs up."""
    server = make_server(memory, Caller(project=project))
    given = _Given(_take_input())

    async def run() -> None:
        async with stdio_server(stdin=given) as (reading, writing):  # type: ignore[arg-type]  # it is only iterated over
            given.answers = writing
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)


class _Answers(Protocol):
    """Where answers go."""

    async def send(self, item: SessionMessage, /) -> None: ...


class _Given:
    """What a client writes, line by line; the SDK leaves unanswered what it cannot read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.answers: _Answers | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in anyio.wrap_file(self._source):
            if not line.strip():
                continue
            try:
                yield _checked(line)
            except Refused as refused:
                assert self.answers is not None
                await self.answers.send(_refusal(refused))


def _checked(line: bytes) -> str:
    message = lines.read(line)
    text = line.decode()
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        told = "This is no message of JSON-RPC 2.0."
        raise Refused(NO_REQUEST, told, message.get("id")) from error
    return text


def _refusal(refused: Refused) -> SessionMessage:
    told: Any = types.ErrorData(code=refused.code, message=str(refused))
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=refused.id, error=told))


def _take_input() -> BinaryIO:
    """Return standard input for this process alone: what it starts reads nothing of the client."""
    own = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return own
