"""Callers over HTTP: what the gate grants them, and what their headers say of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from lore.records import Grant
from lore.tools.tool import Caller

GRANT: Final = "lore.grant"
"""Where a request carries what the gate grants, for every door behind it."""

STANDING: Final = "lore.standing"
"""Where a request carries how to ask anew whether that is still granted, for what lasts."""

_LONGEST_HEADER = 4_096
"""As long as a path can be on Linux."""


def find_grant(scope: Mapping[str, Any]) -> Grant | None:
    """Return what is open to the sender of a request, or None if nothing is."""
    grant: Grant | None = scope.get(GRANT)
    return grant


async def still_stands(scope: Mapping[str, Any]) -> bool:
    """Tell whether what was granted to a request still is: a key may have been revoked since."""
    ask: Callable[[], Awaitable[Grant | None]] | None = scope.get(STANDING)
    return ask is None or await ask() == find_grant(scope)


def caller_of(headers: Mapping[str, str], grant: Grant | None) -> Caller:
    """Return who calls, as far as headers tell: the folder they work in, and their session."""
    return Caller(
        project=_said(headers, "x-lore-project"),
        session=_said(headers, "x-lore-session"),
        origin="user" if grant is not None and grant.browser else "assistant",
        within_s=_patience_s(headers),
    )


def _patience_s(headers: Mapping[str, str]) -> float | None:
    """Return how long the caller waits for an answer, where it says so."""
    said = headers.get("x-lore-within-ms", "")
    return int(said) / 1000 if said.isascii() and said.isdigit() and len(said) < 9 else None


def _said(headers: Mapping[str, str], name: str) -> str:
    """Return what a header says in percent-encoded UTF-8."""
    return unquote(headers.get(name, "")[:_LONGEST_HEADER], errors="replace")
