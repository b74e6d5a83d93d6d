"""The chat providers as data: address, default model and API differences."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lore.errors import ProviderUnavailable
from lore.proxy.address import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from lore.settings import Settings


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider: its address, its default model, and how its API differs from the others'.

    `structured` says that every model of it accepts a JSON schema.
    """

    name: str
    base_url: str
    model: str = ""
    needs_key: bool = True
    limit_field: str = "max_tokens"
    structured: bool = True


PRESETS = {
    "anthropic": Preset("Anthropic", "https://api.anthropic.com", "claude-haiku-5-5"),
    "openai": Preset(
        "OpenAI", "https://api.openai.com/v1", "gpt-5.4-mini", limit_field="max_completion_tokens"
    ),
    "openrouter": Preset("OpenRouter", "https://openrouter.ai/api/v1", structured=False),
    "ollama": Preset("Ollama", "http://127.0.0.1:11434/v1", needs_key=False),
    "vllm": Preset("vLLM", "http://127.0.0.1:8000/v1", needs_key=False),
    "gemini": Preset(
        "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3.5-flash"
    ),
}
"""The small models of each family: writing logs needs no larger one."""


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The checked and complete configuration of a provider; `repr` leaves the API key out."""

    provider: str
    preset: Preset
    model: str
    base_url: str
    api_key: str = field(repr=False)
    timeout_s: float

    @property
    def identity(self) -> str:
        """Return the provider and the model."""
        return f"{self.provider}:{self.model}"


def resolve_provider(settings: Settings) -> ProviderConfig:
    """Return the provider that the settings ask for, or raise if something is missing or unsafe."""
    preset = PRESETS[settings.chat_provider]
    model = settings.chat_model.strip() or preset.model
    if not model:
        msg = f"The provider '{settings.chat_provider}' has no default model."
        raise ProviderUnavailable(msg, hint="Set chat.model.")
    key = settings.chat_api_key.strip()
    if preset.needs_key and not key and not settings.chat_base_url:
        msg = f"The provider '{settings.chat_provider}' needs an API key."
        raise ProviderUnavailable(msg, hint="Set chat.api_key, best as LORE_CHAT_API_KEY.")
    if not (key.isascii() and key.isprintable()):
        msg = "chat.api_key contains characters that no API key has."
        raise ProviderUnavailable(msg, hint="Check chat.api_key.")
    url = (settings.chat_base_url.strip() or preset.base_url).rstrip("/")
    check_base_url(url)
    return ProviderConfig(
        settings.chat_provider, preset, model, url, key or "none", settings.chat_timeout_s
    )


def check_base_url(url: str) -> None:
    """Reject an address to which texts and the API key would travel unencrypted."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    plain = url.isascii() and url.isprintable() and " " not in url
    schemes = ("https", "http") if host in LOOPBACK_HOSTS else ("https",)
    if host and plain and parts.scheme in schemes:
        return
    msg = "chat.base_url must be an https address, or http on this machine."
    raise ProviderUnavailable(msg, hint="Texts and the API key must not be sent unencrypted.")
