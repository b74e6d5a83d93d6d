"""A gateway with a memory behind it, in front of the scripted upstream, and clients of SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai

from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from tests.fakes import FakeEmbedder
from tests.gateway.gateway_server import proxied
from tests.upstream import ReceivedRequest, Upstream, running_upstream
from tests.waiting import PATIENCE_S

CLAUDE = "claude-sonnet-5"


class Behind:
    """A gateway with a memory, and clients of both SDKs in front of it."""

    def __init__(self, memory: Memory, url: str, up: Upstream) -> None:
        self.memory = memory
        self.url = url
        self.up = up
        self.claude = anthropic.Anthropic(base_url=url, api_key="of a client", max_retries=0)
        self.bearer = anthropic.Anthropic(base_url=url, auth_token="of a client", max_retries=0)
        self.gpt = openai.OpenAI(base_url=f"{url}/v1", api_key="of a client", max_retries=0)

    def ask(self, text: str = "Hello?", **more: Any) -> anthropic.types.Message:
        """Ask Claude something."""
        messages: Any = more.pop("messages", [{"role": "user", "content": text}])
        return self.claude.messages.create(  # type: ignore[no-any-return]
            model=CLAUDE, max_tokens=4_000, messages=messages, **more
        )

    def stored(self) -> list[str]:
        """Return all that is stored."""
        return [
            part.text
            for session in self.memory.sessions()
            for message in self.memory.sessions.messages(session.id)
            for part in message.parts
        ]

    @property
    def last(self) -> ReceivedRequest:
        """Return what upstream was asked last."""
        return self.up.requests[-1]


@contextmanager
def behind(home: Path, *, window_tokens: int = 200_000) -> Iterator[Behind]:
    """Serve both until the block ends."""
    with (
        running_upstream(window_tokens=window_tokens) as up,
        Memory.open(home, embedder=FakeEmbedder()) as memory,
    ):
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        with proxied(home, up.url, plugin=plugin, within_s=PATIENCE_S) as gateway:
            held = Behind(memory, gateway.url, up)
            with held.claude, held.bearer, held.gpt:
                yield held
        plugin.close()
