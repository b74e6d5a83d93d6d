"""Exchanges for the tests of extraction, written as who said what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lore.llm.offline.extraction import extract
from lore.records import Extract, MessageText, Origin, Segment

AT = datetime(2026, 5, 13, 12, tzinfo=UTC)
WORK = ("assistant", "Let me check the code.")

Told = tuple[str, str]


def heard(told: Sequence[Told], start: int = 0) -> tuple[MessageText, ...]:
    """Return messages with ids in order."""
    return tuple(
        MessageText(f"m{n}", n, AT, voice, text, _origin(voice), 10)
        for n, (voice, text) in enumerate(told, start)
    )


def _origin(voice: str) -> Origin:
    return "assistant" if voice == "assistant" else "tool" if voice == "tool" else "user"


def kept(*told: Told, later: Sequence[Told] = ()) -> list[Extract]:
    """Return what is kept of an exchange, with all that hangs below."""
    exchange = Segment("s", heard(told), later=heard(later, len(told)))
    return [one for root in extract(exchange) for one in (root, *root.children)]


def contents(*told: Told, later: Sequence[Told] = ()) -> list[str]:
    """Return the texts of what is kept of an exchange."""
    return [one.content for one in kept(*told, later=later)]
