"""Build the cached handshake: ask the MCP server for the first results of every protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message

from lore import __version__
from lore.config_files import replace_file
from lore.mcp.lazy_apps import MCP
from lore.mcp.server import make_server
from lore.mcp.transports import McpApps
from lore.memory.facade import closed_memory
from lore.proxy import cached_handshake
from lore.proxy.cached_handshake import (
    DISCOVER,
    HANDSHAKE_FILE,
    INITIALIZE,
    LIST_METHODS,
    UNKNOWN_VERSION,
    Handshake,
)
from lore.settings import Settings

_UNKNOWN_VERSION = "0000-00-00"
"""A version that no protocol will ever have."""


def ensure_saved(settings: Settings) -> str:
    """Save the handshake of these settings unless the home has it; return its fingerprint."""
    mark = cached_handshake.fingerprint(__version__, settings)
    if cached_handshake.load_handshake(str(settings.home), mark) is None:
        save_handshake(settings.home, mark, build_handshake(settings))
    return mark


def save_handshake(home: Path, mark: str, handshake: Handshake) -> None:
    """Replace the cached handshake atomically; only the owner can read the file."""
    content = json.dumps({"mark": mark, "answers": handshake})
    replace_file(home / HANDSHAKE_FILE, content.encode())


def build_handshake(settings: Settings) -> Handshake:
    """Return the results of a client's first requests to a server with these settings."""
    return anyio.run(_collect_results, settings)


async def _collect_results(settings: Settings) -> Handshake:
    apps = McpApps(make_server(closed_memory(settings)))
    app = apps.apps[MCP]
    async with apps.run():
        results = {
            version: await _handshake_results(app, version)
            for version in HANDSHAKE_PROTOCOL_VERSIONS
        }
        results |= {
            version: await _discovery_results(app, version) for version in MODERN_PROTOCOL_VERSIONS
        }
        first = {
            INITIALIZE: await _post_request(
                app, INITIALIZE, _initialize_params(_UNKNOWN_VERSION), {}
            )
        }
    return {**results, UNKNOWN_VERSION: first}


async def _handshake_results(app: ASGIApp, version: str) -> dict[str, dict[str, Any]]:
    results = {INITIALIZE: await _post_request(app, INITIALIZE, _initialize_params(version), {})}
    for method in LIST_METHODS:
        results[method] = await _post_request(app, method, {}, {"mcp-protocol-version": version})
    return results


async def _discovery_results(app: ASGIApp, version: str) -> dict[str, dict[str, Any]]:
    meta = {cached_handshake.VERSION_FIELD: version, cached_handshake.CAPABILITIES_FIELD: {}}
    results = {}
    for method in (DISCOVER, *LIST_METHODS):
        headers = {"mcp-protocol-version": version, "mcp-method": method}
        results[method] = await _post_request(app, method, {"_meta": meta}, headers)
    return results


def _initialize_params(version: str) -> dict[str, Any]:
    client = {"name": "lore", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": client}


async def _post_request(
    app: ASGIApp, method: str, params: dict[str, Any], headers: dict[str, str]
) -> dict[str, Any]:
    """Post one request to an app, as the stdio proxy does, and return the result."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": MCP,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in (usual | headers).items()],
    }
    body = bytearray()
    unread: list[Message] = [
        {"type": "http.request", "body": json.dumps(request).encode(), "more_body": False}
    ]

    async def receive() -> Message:
        if not unread:
            await anyio.sleep_forever()
        return unread.pop()

    async def send(message: Message) -> None:
        body.extend(message.get("body", b""))

    await app(scope, receive, send)
    result: dict[str, Any] = json.loads(body)["result"]
    return result
