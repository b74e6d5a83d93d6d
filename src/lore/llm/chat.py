"""What every chat offers: one question with a bound on its answer, and what the answer cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the talk with a chat."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to a chat; with a schema, the answer must be JSON that fits it."""

    system: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    schema: type[BaseModel] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer took; `input_tokens` has those of the cache in it.

    `usd` is there where the provider itself tells what it charged.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its text, the value in it if one was asked for, and what it took.

    An answer that cannot be used has cost money too: `problem` says what is wrong with it.
    """

    text: str
    usage: Usage
    value: BaseModel | None = None
    problem: str = ""


class Chat(Protocol):
    """A language model that is asked one question at a time; it gets no tools."""

    @property
    def identity(self) -> str:
        """Return the provider and the model, with a colon between them."""

    def ask(self, ask: Ask) -> Reply:
        """Ask once, and return the answer or raise a `ProviderError`."""

    def close(self) -> None:
        """End what is under way, and give everything back."""
