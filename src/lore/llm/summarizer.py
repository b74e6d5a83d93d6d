"""The Summarizer protocol, and the choice of a summarizer by the settings."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lore.errors import ProviderUnavailable
from lore.lazy_dataclass import dataclass
from lore.records import (
    Extract,
    FactVerdict,
    Fragment,
    JudgedPair,
    Log,
    MessageText,
    Segment,
    Verdict,
)

if TYPE_CHECKING:
    from lore.llm.chat import Chat, Ledger
    from lore.llm.retry import RetryPolicy
    from lore.settings import Settings


class Summarizer(Protocol):
    """Reads text for the digest; it has no tools and changes nothing."""

    @property
    def identity(self) -> str:
        """Return `offline`, or the provider and model of a chat."""

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment that keeps everything operational."""

    def condense(self, logs: Sequence[Log], former: Log, *, limit_tokens: int) -> Log:
        """Condense several logs into one: current state, decisions, changes, timeline."""

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return a new text for a root whose children changed, or its own text without a chat."""

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return the insight that several linked roots yield together; empty if there is none."""

    def check(
        self, facts: Sequence[Fragment], spoken: Sequence[MessageText]
    ) -> Sequence[FactVerdict]:
        """Return for each fact of a session whether it is worth keeping at the end of it."""

    def judge(self, pairs: Sequence[JudgedPair]) -> Sequence[Verdict | None]:
        """Return what the newer one of each pair does to the older one; None if unknown."""


_OFFLINE = "offline"


def _do_nothing() -> None:
    """Close nothing: rules hold no resources."""


@dataclass(frozen=True, slots=True)
class OpenedSummarizer:
    """A summarizer, and a notice if it is less than what the settings ask for.

    `close` aborts running requests, from any thread.
    """

    summarizer: Summarizer
    notice: str = ""
    close: Callable[[], None] = _do_nothing


def uses_chat(settings: Settings) -> bool:
    """Return whether the settings choose a chat; without that choice nothing is sent anywhere."""
    return settings.chat_provider != _OFFLINE


def open_summarizer(
    settings: Settings,
    *,
    offline: Summarizer,
    ledger: Ledger,
    retry_policy: RetryPolicy | None = None,
    command: Path | None = None,
) -> OpenedSummarizer:
    """Return the summarizer that the settings ask for; sends no request and loads no SDK yet.

    An API key in the environment selects nothing. If the selected chat is not available, the
    offline summarizer takes its place, with a notice. `retry_policy` says how to wait for a busy
    provider, `command` where an agent's command lies.
    """
    if not uses_chat(settings):
        return OpenedSummarizer(offline)
    try:
        chat = _open_chat_provider(settings, command)
    except ProviderUnavailable as error:
        notice = f"{error} {error.hint}".strip()
        return OpenedSummarizer(offline, f"{notice} Until then conversations are digested offline.")
    from lore.llm.chat_summarizer import ChatSummarizer

    return OpenedSummarizer(
        ChatSummarizer(chat, ledger, retry_policy=retry_policy), close=chat.close
    )


def _open_chat_provider(settings: Settings, command: Path | None) -> Chat:
    from lore.llm.chat import LazyChat

    if settings.chat_provider.endswith("-cli"):
        return _open_agent_cli(settings, command)
    from lore.llm.presets import resolve_provider

    choice = resolve_provider(settings)
    package = "anthropic" if settings.chat_provider == "anthropic" else "openai"
    if importlib.util.find_spec(package) is None:
        msg = f"The provider '{settings.chat_provider}' needs the package {package}."
        raise ProviderUnavailable(msg, hint=f"Install lore[{package}].")

    def make() -> Chat:
        # Import only the selected provider: each takes a second or two.
        if package == "anthropic":
            from lore.llm.anthropic import AnthropicChat

            return AnthropicChat(choice)
        from lore.llm.openai import OpenAIChat

        return OpenAIChat(choice)

    return LazyChat(choice.identity, make)


def _open_agent_cli(settings: Settings, command: Path | None) -> Chat:
    from lore.llm.agent_cli import AgentCliChat
    from lore.llm.command_table import AGENT_COMMANDS

    agent = AGENT_COMMANDS[settings.chat_provider]
    path = command or shutil.which(agent.command)
    if not path:
        msg = f"The provider '{agent.provider}' needs the command {agent.command}."
        raise ProviderUnavailable(msg, hint=f"Install {agent.title}, or choose another provider.")
    model = settings.chat_model.strip() or agent.model
    if not model:
        msg = f"The provider '{agent.provider}' has no default model."
        raise ProviderUnavailable(msg, hint="Set chat.model.")
    return AgentCliChat(
        agent,
        Path(path),
        model=model,
        folder=settings.agent_chats,
        timeout_s=settings.chat_timeout_s,
    )
