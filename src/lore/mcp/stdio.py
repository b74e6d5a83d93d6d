"""MCP over standard input and output in this process, where no daemon can be reached."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from lore.mcp.serving import make_server
from lore.memory import Memory
from lore.tools.tool import Caller


def serve(memory: Memory, project: str) -> None:
    """Serve one client until it hangs up."""
    server = make_server(memory, Caller(project=project))

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)
