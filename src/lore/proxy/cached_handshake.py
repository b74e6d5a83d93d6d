"""Cached MCP handshake: the results of an agent's first requests, stored in the home.

An agent does not wait for a daemon that is still starting. Its first requests always get the same
results, so a cached copy serves them as long as its fingerprint matches the installed Lore.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any, Protocol

from lore.proxy.address import read_file

HANDSHAKE_FILE = "greeting.json"

INITIALIZE, DISCOVER = "initialize", "server/discover"
LIST_METHODS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
HANDSHAKE_METHODS = (INITIALIZE, DISCOVER, *LIST_METHODS)
"""Requests that agents send first."""

UNKNOWN_VERSION = ""
"""Key for protocol versions that Lore does not support, when a client names one in a handshake."""

VERSION_FIELD = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_FIELD = "io.modelcontextprotocol/clientCapabilities"

Handshake = dict[str, dict[str, dict[str, Any]]]
"""Results by protocol version and method."""

_MAX_FILE_BYTES = 4_000_000
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SOURCE_PACKAGES = ("mcp", "tools")
"""Packages whose source determines the results."""

_SDK_FILE = os.path.join("mcp", "server", "__init__.py")


class HandshakeSettings(Protocol):
    """The settings that change the results."""

    @property
    def mcp_profile(self) -> str: ...  # noqa: D102 - the setting of this name
    @property
    def mcp_aliases(self) -> bool: ...  # noqa: D102
    @property
    def mcp_structured(self) -> bool: ...  # noqa: D102


def fingerprint(version: str, choices: HandshakeSettings) -> str:
    """Return the fingerprint of this handshake: version, settings and source files."""
    chosen = (choices.mcp_profile, choices.mcp_aliases, choices.mcp_structured)
    return "|".join(map(str, (version, *chosen, *_code_fingerprint())))


def load_handshake(home: str, mark: str) -> Handshake | None:
    """Return the cached handshake of a home, if it is readable and the fingerprint matches."""
    try:
        stored = json.loads(read_file(os.path.join(home, HANDSHAKE_FILE), _MAX_FILE_BYTES))
        if not mark or stored["mark"] != mark:
            return None
        answers: Handshake = stored["answers"]
        results = [result for by_method in answers.values() for result in by_method.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return answers if all(isinstance(result, dict) for result in results) else None


def delete_handshake(home: str) -> None:
    """Delete the cached handshake, because the daemon that it describes cannot be started."""
    with suppress(OSError):
        os.unlink(os.path.join(home, HANDSHAKE_FILE))


def find_result(
    handshake: Handshake, message: dict[str, Any], agreed: str
) -> dict[str, Any] | None:
    """Return the cached result of a request, or None if the cache does not cover the request.

    `agreed` is the protocol version of an earlier handshake, or ''.
    """
    params = message.get("params", {})
    if not isinstance(params, dict) or type(message["id"]) not in (str, int):
        return None
    raw_meta = params.get("_meta", {})
    meta = raw_meta if isinstance(raw_meta, dict) else {}
    if message["method"] == INITIALIZE:
        return _initialize_result(handshake, params)
    if params.keys() - {"_meta"}:
        return None
    version = meta.get(VERSION_FIELD, agreed)
    if not isinstance(version, str) or version == UNKNOWN_VERSION:
        return None
    if VERSION_FIELD in meta and not isinstance(meta.get(CAPABILITIES_FIELD), dict):
        return None
    return handshake.get(version, {}).get(message["method"])


def _initialize_result(handshake: Handshake, params: dict[str, Any]) -> dict[str, Any] | None:
    version = params.get("protocolVersion")
    objects = (params.get("capabilities"), params.get("clientInfo"))
    if not isinstance(version, str) or not all(isinstance(one, dict) for one in objects):
        return None
    result = handshake.get(version, {}).get(INITIALIZE)
    return result if result is not None else handshake.get(UNKNOWN_VERSION, {}).get(INITIALIZE)


def _code_fingerprint() -> tuple[object, ...]:
    """Return what changes with the source of Lore's MCP packages and of the SDK."""
    files = [
        entry.stat()
        for room in _SOURCE_PACKAGES
        for entry in os.scandir(os.path.join(_PACKAGE, room))
        if entry.name.endswith(".py")
    ]
    return (
        len(files),
        sum(file.st_size for file in files),
        sum(file.st_mtime_ns for file in files),
        *_sdk_fingerprint(),
    )


def _sdk_fingerprint() -> tuple[object, ...]:
    for folder in sys.path:
        try:
            stat = os.stat(os.path.join(folder, _SDK_FILE))
        except OSError:
            continue
        return (folder, stat.st_size, stat.st_mtime_ns)
    return ()
