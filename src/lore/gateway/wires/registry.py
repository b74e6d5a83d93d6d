"""Registry: which wire is spoken at which path."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lore.gateway.wires import anthropic, chat, gemini, responses
from lore.gateway.wires.wire import Wire

WIRES: Mapping[str, Wire] = {
    "anthropic": anthropic,
    "chat": chat,
    "responses": responses,
    "gemini": gemini,
}
"""The wires by their names."""

_PATHS = (
    (re.compile(r"/v1/messages/?"), "anthropic"),
    (re.compile(r"(?:/v1)?/chat/completions/?"), "chat"),
    (re.compile(r"(?:/v1)?/responses/?"), "responses"),
    (re.compile(r"/v1\w*/models/[^:/]+:(?:stream)?[gG]enerateContent"), "gemini"),
)


def find_wire(path: str) -> str | None:
    """Return the name of the wire that is spoken at a path, or None where it passes unread."""
    bare = path.partition("?")[0]
    return next((name for pattern, name in _PATHS if pattern.fullmatch(bare)), None)
