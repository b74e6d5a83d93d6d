"""Callers of tools: their grant and headers over HTTP, and the session they work in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from lore.memory import Memory
from lore.records import Grant
from lore.tools.tool import Caller

GRANT: Final = "lore.grant"
"""The key in the ASGI scope of what the authentication middleware grants."""

STANDING: Final = "lore.standing"
"""The key in the ASGI scope of a function that checks the grant again, for long connections."""

_LONGEST_HEADER = 4_096
"""The maximum length of a path on Linux."""


def find_grant(scope: Mapping[str, Any]) -> Grant | None:
    """Return the grant of a request, or None."""
    grant: Grant | None = scope.get(GRANT)
    return grant


async def is_still_granted(scope: Mapping[str, Any]) -> bool:
    """Return whether the grant of a request is still valid: a key may have been revoked."""
    ask: Callable[[], Awaitable[Grant | None]] | None = scope.get(STANDING)
    return ask is None or await ask() == find_grant(scope)


def caller_of(headers: Mapping[str, str], grant: Grant | None) -> Caller:
    """Return the caller by its headers: working folder and session."""
    return Caller(
        project=_decode_header(headers, "x-lore-project"),
        session=_decode_header(headers, "x-lore-session"),
        origin="user" if grant is not None and grant.browser else "assistant",
        within_s=_deadline_s(headers),
    )


def _deadline_s(headers: Mapping[str, str]) -> float | None:
    """Return the caller's deadline in seconds, if it sends one."""
    value = headers.get("x-lore-within-ms", "")
    return int(value) / 1000 if value.isascii() and value.isdigit() and len(value) < 9 else None


def _decode_header(headers: Mapping[str, str], name: str) -> str:
    return unquote(headers.get(name, "")[:_LONGEST_HEADER], errors="replace")


def find_session(memory: Memory, caller: Caller) -> str:
    """Return the session of a caller, or an empty text if it is unknown.

    Agents do not say to an MCP server which session calls: then it is the live session of the
    project. If a caller names a session, no other is used.
    """
    if caller.session:
        return caller.session if memory.sessions.has_session(caller.session) else ""
    live = memory.sessions.find_live_session(caller.project)
    return live.id if live else ""
