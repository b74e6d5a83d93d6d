"""Exchanges for the tests of extraction, written as who said what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lore.llm.offline.extraction_rules import extract
from lore.records import Extract, MessageText, Origin, Segment

AT = datetime(2026, 5, 13, 12, tzinfo=UTC)
WORK = ("assistant", "Let me check the code.")

SpokenLine = tuple[str, str]


def as_messages(told: Sequence[SpokenLine], start: int = 0) -> tuple[MessageText, ...]:
    """Return messages with ids in order."""
    return tuple(
        MessageText(f"m{n}", n, AT, voice, text, _origin(voice), 10)
        for n, (voice, text) in enumerate(told, start)
    )


def _origin(voice: str) -> Origin:
    return "assistant" if voice == "assistant" else "tool" if voice == "tool" else "user"


def extract_all(*told: SpokenLine, later: Sequence[SpokenLine] = ()) -> list[Extract]:
    """Return what is kept of an exchange, with all that hangs below."""
    exchange = Segment("s", as_messages(told), later=as_messages(later, len(told)))
    return [one for root in extract(exchange) for one in (root, *root.children)]


def contents(*told: SpokenLine, later: Sequence[SpokenLine] = ()) -> list[str]:
    """Return the texts of what is kept of an exchange."""
    return [one.content for one in extract_all(*told, later=later)]
