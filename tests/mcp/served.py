"""A real server with MCP on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.server import Server

from lore.mcp.http import MCP, McpApps
from lore.server.app import Mount
from tests.server.served import Served, serving


def mounts_of(server: Server[Any]) -> list[Mount]:
    """Return the doors of an MCP server as the daemon opens them."""
    mcp = McpApps(server)
    return [
        Mount(path, app, lifespan=mcp.run if path == MCP else None)
        for path, app in mcp.apps.items()
    ]


@contextmanager
def serving_mcp(home: Path) -> Iterator[Served]:
    """Serve a new memory by MCP until the block ends."""
    from lore.mcp.serving import make_server

    with serving(home, mounts_for=lambda memory: mounts_of(make_server(memory))) as served:
        yield served
