"""A real server with MCP on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lore.daemon.http_server import mcp_mounts
from lore.mcp.server import make_server
from tests.http_api.live_server import Served, serving


@contextmanager
def serving_mcp(home: Path) -> Iterator[Served]:
    """Serve a new memory by MCP until the block ends."""
    with serving(home, mounts_for=lambda memory: mcp_mounts(lambda: make_server(memory))) as served:
        yield served
