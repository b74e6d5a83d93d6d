"""Registry: the wires by the names that paths lead to."""

from __future__ import annotations

from collections.abc import Mapping

from lore.gateway.apis import anthropic, gemini, openai_chat, openai_responses
from lore.gateway.apis.wire import Wire

WIRES: Mapping[str, Wire] = {
    "anthropic": anthropic,
    "chat": openai_chat,
    "responses": openai_responses,
    "gemini": gemini,
}
"""The wires by their names."""
