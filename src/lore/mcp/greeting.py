"""The greeting of an MCP server: what it answers first, asked of itself for every protocol."""

from __future__ import annotations

import json
from typing import Any

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message

from lore import __version__
from lore.mcp.http import McpApps
from lore.mcp.late import MCP
from lore.mcp.serving import make_listing
from lore.proxy import greeting
from lore.proxy.greeting import ANY, DISCOVER, INITIALIZE, LISTS, Greeting
from lore.settings import Settings

_UNKNOWN = "0000-00-00"
"""A version that no protocol will ever have."""


def keep(settings: Settings) -> str:
    """See to it that the home keeps the greeting of these settings, and return its mark."""
    mark = greeting.mark_of(__version__, settings)
    if greeting.find(str(settings.home), mark) is None:
        greeting.keep(str(settings.home), mark, compose(settings))
    return mark


def compose(settings: Settings) -> Greeting:
    """Return what a server with these settings answers to the first questions of any client."""
    return anyio.run(_ask_all, settings)


async def _ask_all(settings: Settings) -> Greeting:
    apps = McpApps(make_listing(settings))
    app = apps.apps[MCP]
    async with apps.run():
        told = {
            version: await _shake_hands(app, version) for version in HANDSHAKE_PROTOCOL_VERSIONS
        }
        told |= {version: await _discover(app, version) for version in MODERN_PROTOCOL_VERSIONS}
        first = {INITIALIZE: await _ask(app, INITIALIZE, _introduction(_UNKNOWN), {})}
    return {**told, ANY: first}


async def _shake_hands(app: ASGIApp, version: str) -> dict[str, dict[str, Any]]:
    told = {INITIALIZE: await _ask(app, INITIALIZE, _introduction(version), {})}
    for method in LISTS:
        told[method] = await _ask(app, method, {}, {"mcp-protocol-version": version})
    return told


async def _discover(app: ASGIApp, version: str) -> dict[str, dict[str, Any]]:
    meta = {greeting.VERSION_FIELD: version, greeting.CAPABILITIES_FIELD: {}}
    told = {}
    for method in (DISCOVER, *LISTS):
        headers = {"mcp-protocol-version": version, "mcp-method": method}
        told[method] = await _ask(app, method, {"_meta": meta}, headers)
    return told


def _introduction(version: str) -> dict[str, Any]:
    client = {"name": "lore", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": client}


async def _ask(
    app: ASGIApp, method: str, params: dict[str, Any], headers: dict[str, str]
) -> dict[str, Any]:
    """Post one request to an app as the bridge would, and return the result."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
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
        {"type": "http.request", "body": json.dumps(asked).encode(), "more_body": False}
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
