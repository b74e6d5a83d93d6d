"""API adapters: the model APIs that clients speak, each as pure functions from bytes to bytes."""

from __future__ import annotations

from collections.abc import Mapping

from lore.gateway.apis import anthropic, gemini, openai_chat, openai_responses
from lore.gateway.apis.adapter import ApiAdapter

ADAPTERS: Mapping[str, ApiAdapter] = {
    "anthropic": anthropic,
    "chat": openai_chat,
    "responses": openai_responses,
    "gemini": gemini,
}
"""The adapters by the names that routes use."""
