"""A scripted chat, a counting ledger, and sample records."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lore.llm.chat import ChatRequest, ChatResponse, Usage
from lore.llm.chat_summarizer import ChatSummarizer
from lore.llm.retry import RetryPolicy
from lore.llm.structured_output import parse_response
from lore.records import (
    TRUST,
    Fragment,
    Log,
    LogLine,
    MessageText,
    Origin,
    RequestCost,
    RequestHold,
    Segment,
)
from lore.text import tokens
from tests.fakes import NOON

Answering = Callable[[ChatRequest], str]

BOUNDARY = "b0b1b2b3b4b5b6b7b8b9babb"


class ScriptedChat:
    """Answers by a function or from a list; what a list holds may be an error to raise."""

    identity = "anthropic:claude-haiku-5-5"

    def __init__(self, *script: str | Exception, by: Answering | None = None) -> None:
        self.asked: list[ChatRequest] = []
        self.closed = False
        self._script = list(script)
        self._by = by

    def complete(self, request: ChatRequest) -> ChatResponse:
        """Give the next answer, read as any chat's would be."""
        self.asked.append(request)
        said = self._by(request) if self._by else self._script.pop(0)
        if isinstance(said, Exception):
            raise said
        return parse_response(said, Usage(100, 10), request.schema)

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


class CountingLedger:
    """Allows everything, and writes it down."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.settled: list[Usage] = []

    def reserve(self, cost: RequestCost) -> RequestHold:
        """Write down a call."""
        self.told.append(("reserve", cost.kind))
        return RequestHold(str(len(self.told)), NOON, cost, 0.0)

    def settle(self, hold: RequestHold, used: Usage) -> None:
        """Write down what it took."""
        self.told.append(("settle", hold.cost.kind))
        self.settled.append(used)

    def release(self, hold: RequestHold) -> None:
        """Write down that it took nothing."""
        self.told.append(("release", hold.cost.kind))


def summarizer(chat: Any, ledger: Any = None) -> ChatSummarizer:
    """Return a summarizer that waits for nothing and has a known boundary."""
    return ChatSummarizer(
        chat,
        ledger or CountingLedger(),
        retry_policy=RetryPolicy(sleep=lambda _: None),
        boundary=lambda: BOUNDARY,
    )


def message_text(ordinal: int, text: str, origin: Origin = "user", voice: str = "") -> MessageText:
    """Return a message of a segment."""
    voice = voice or (origin if origin in ("user", "assistant", "tool") else "tool")
    at = NOON + timedelta(minutes=ordinal)
    return MessageText(f"id-{ordinal}", ordinal, at, voice, text, origin, tokens.count(text))


def segment(*messages: MessageText, title: str = "") -> Segment:
    """Return a segment of messages."""
    return Segment("s", messages, title)


def log(*lines: str | tuple[str, tuple[int, ...]]) -> Log:
    """Return a log of lines, some with their sources."""
    return Log(tuple(LogLine(one) if isinstance(one, str) else LogLine(*one) for one in lines))


def fragment(id: str, content: str, origin: Origin = "user", **changed: Any) -> Fragment:
    """Return a fragment as the store would."""
    given: dict[str, Any] = {
        "summary": content[:40], "depth": 0, "kind": "fact", "payload": {}, "importance": 0.5,
        "confidence": 0.7, "decay_rate": 0.04, "access_count": 0, "last_accessed": None,
        "last_reinforced": NOON, "relevance": 0.5, "project_id": None, "session_id": None,
        "source_messages": (), "superseded_by": None, "valid_from": None, "valid_to": None,
        "created_at": NOON, "updated_at": NOON, "version": 1, "parent_id": None, "metadata": {},
        **changed,
    }  # fmt: skip
    return Fragment(id=id, content=content, origin=origin, trust=TRUST[origin], **given)


def fact(number: int, content: str, **changed: Any) -> dict[str, Any]:
    """Return a fact as a chat lists it."""
    return {
        "number": number, "under": 0, "content": content, "summary": content[:60], "kind": "fact",
        "importance": "medium", "sources": [1], "corrects": "", "relations": [], "details": "",
        "keywords": [], "context": "", "payload": {"form": "fact"}, **changed,
    }  # fmt: skip


def facts(*listed: dict[str, Any]) -> str:
    """Return the answer that lists facts."""
    return json.dumps({"facts": list(listed)})
