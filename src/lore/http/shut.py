"""Shut: where the memory cannot be opened, each door of the server says why."""

from __future__ import annotations

from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from lore.errors import LoreError
from lore.http import problems
from lore.records import AccessKey

Trouble = Callable[[], LoreError]
"""What is wrong with the memory at present."""

_WELL = "/health"
"""The server itself is well."""

_UNCHECKED = "Lore has no memory at present, so no key but that of its home can be checked."


class Shut:
    """Stands behind the gate and lets nothing further in."""

    def __init__(self, app: ASGIApp, why: Trouble) -> None:
        self._app = app
        self._why = why

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with what is wrong, and how it is mended."""
        if scope["type"] != "http" or scope["path"] == _WELL:
            await self._app(scope, receive, send)
        else:
            await problems.of_shut(self._why())(scope, receive, send)


def recognise_none(_key: str) -> AccessKey | None:
    """Refuse a key that only the store knows: what cannot be checked opens nothing."""
    raise HTTPException(503, _UNCHECKED)
