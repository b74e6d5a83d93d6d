"""The Chat protocol of all model providers: one request, one response, and its token usage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lore.records import RequestCost, RequestHold


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat request."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chat model; with a schema, the response must be JSON that matches it."""

    system: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    schema: type[BaseModel] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The token usage of a response; `input_tokens` includes cached tokens.

    `usd` is set where the provider reports what it charged.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """A response: its text, the parsed value if a schema was given, and its usage.

    An unusable response was charged too: `problem` says what is wrong with it.
    """

    text: str
    usage: Usage
    value: BaseModel | None = None
    problem: str = ""


class Chat(Protocol):
    """A language model that answers one request at a time, without tools."""

    @property
    def identity(self) -> str:
        """Return the provider and the model, separated by a colon."""

    def complete(self, request: ChatRequest) -> ChatResponse:
        """Send one request and return the response, or raise a `ProviderError`."""

    def close(self) -> None:
        """Abort running requests and release all resources."""


class LazyChat:
    """A chat whose client is created on first use: importing an SDK takes a second or two."""

    def __init__(self, identity: str, make: Callable[[], Chat]) -> None:
        self.identity = identity
        self._make = make
        self._chat: Chat | None = None
        self._lock = threading.Lock()

    def complete(self, request: ChatRequest) -> ChatResponse:
        """Send one request and return the response, or raise a `ProviderError`."""
        with self._lock:
            if self._chat is None:
                self._chat = self._make()
        return self._chat.complete(request)

    def close(self) -> None:
        """Abort running requests and release all resources."""
        if self._chat is not None:
            self._chat.close()


class Ledger(Protocol):
    """Reserve money before a call, and settle its cost after it."""

    def reserve(self, cost: RequestCost) -> RequestHold:
        """Reserve the maximum cost of a call, or raise `BudgetSpent`."""

    def settle(self, hold: RequestHold, used: Usage) -> float | None:
        """Record the cost of a call, and release the rest of its reservation."""

    def release(self, hold: RequestHold) -> None:
        """Release the reservation of a call that used nothing."""
