"""Registry: the wires by the names that paths lead to."""

from __future__ import annotations

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
