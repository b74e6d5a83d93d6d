"""Exchanges for the tests of extraction, written as who said what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lore.llm.offline.extractor import extract
from lore.records import Extract, MessageText, Origin, Segment

AT = datetime(2026, 5, 13, 12, tzinfo=UTC)
WORK = ("assistant", "Let me check the code.")

SpokenLine = tuple[str, str] | tuple[str, str, Origin]
"""A voice, what it says, and an origin that does not follow from the voice."""


def as_messages(lines: Sequence[SpokenLine], start: int = 0) -> tuple[MessageText, ...]:
    """Return messages with ids in order."""
    origins: dict[str, Origin] = {"assistant": "assistant", "tool": "tool"}
    return tuple(
        MessageText(f"m{n}", n, AT, voice, text, next(iter(origin), origins.get(voice, "user")), 10)
        for n, (voice, text, *origin) in enumerate(lines, start)
    )


def extract_all(
    *lines: SpokenLine, later: Sequence[SpokenLine] = (), earlier: Sequence[SpokenLine] = ()
) -> list[Extract]:
    """Return what is kept of an exchange, with all that hangs below."""
    before, now = as_messages(earlier), as_messages(lines, len(earlier))
    after = as_messages(later, len(earlier) + len(lines))
    exchange = Segment("s", now, later=after, earlier=before)
    return [one for root in extract(exchange) for one in (root, *root.children)]


def contents(*lines: SpokenLine, later: Sequence[SpokenLine] = ()) -> list[str]:
    """Return the texts of what is kept of an exchange."""
    return [one.content for one in extract_all(*lines, later=later)]
