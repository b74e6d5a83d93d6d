"""The choice of a digester: what can serve is decided here, once, and said so."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lore.errors import ProviderUnavailable
from lore.llm.digester import Digester

if TYPE_CHECKING:
    from lore.llm.chat import Chat
    from lore.llm.ledger import Ledger
    from lore.llm.patience import Patience
    from lore.settings import Settings

_OFFLINE = "offline"
_CLI = "claude-cli"
_CLI_COMMAND = "claude"
_CLI_FOLDER = "claude-cli"
"""Below the home; the command runs there, where no project lies that it could read."""


def _do_nothing() -> None:
    """Do nothing: rules have nothing under way."""


@dataclass(frozen=True, slots=True)
class OpenedDigester:
    """A digester, and what is to be told if it is less than what was asked for.

    `close` ends what is under way, from any thread.
    """

    digester: Digester
    notice: str = ""
    close: Callable[[], None] = _do_nothing


def open_digester(
    settings: Settings,
    *,
    offline: Digester,
    ledger: Ledger,
    patience: Patience | None = None,
    command: Path | None = None,
) -> OpenedDigester:
    """Return the digester that the settings ask for; no service is asked and no SDK loaded yet.

    A key that lies in the environment chooses nothing. A chat that was chosen and cannot serve
    gives way to the offline digester, with a notice. `patience` says how to wait for a busy one,
    `command` where `claude` lies.
    """
    if settings.chat_provider == _OFFLINE:
        return OpenedDigester(offline)
    try:
        chat = _open_chat(settings, command)
    except ProviderUnavailable as error:
        notice = f"{error} {error.hint}".strip()
        return OpenedDigester(offline, f"{notice} Until then conversations are digested offline.")
    from lore.llm.asking import ChatDigester

    return OpenedDigester(ChatDigester(chat, ledger, patience=patience), close=chat.close)


def _open_chat(settings: Settings, command: Path | None) -> Chat:
    from lore.llm.late import LateChat

    if settings.chat_provider == _CLI:
        return _open_cli(settings, command)
    from lore.llm.presets import choose

    choice = choose(settings)
    package = "anthropic" if settings.chat_provider == "anthropic" else "openai"
    if importlib.util.find_spec(package) is None:
        msg = f"The provider '{settings.chat_provider}' needs the package {package}."
        raise ProviderUnavailable(msg, hint=f"Install lore[{package}].")

    def make() -> Chat:
        # Only the chosen provider is imported: each takes a second or two.
        if package == "anthropic":
            from lore.llm.anthropic import AnthropicChat

            return AnthropicChat(choice)
        from lore.llm.openai import OpenAIChat

        return OpenAIChat(choice)

    return LateChat(choice.identity, make)


def _open_cli(settings: Settings, command: Path | None) -> Chat:
    from lore.llm.claude_cli import USUAL_MODEL, ClaudeCliChat

    found = command or shutil.which(_CLI_COMMAND)
    if not found:
        msg = "The provider 'claude-cli' needs the command claude."
        raise ProviderUnavailable(msg, hint="Install Claude Code, or choose another provider.")
    return ClaudeCliChat(
        Path(found),
        model=settings.chat_model.strip() or USUAL_MODEL,
        folder=settings.home / _CLI_FOLDER,
        timeout_s=settings.chat_timeout_s,
    )
