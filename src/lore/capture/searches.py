"""Searches: where the gateway searched memory for a model, an agent's transcript has a marker.

What stands around a marker were answers of their own, and the gateway brings them as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lore.records import NewMessage
from lore.text import marks


def taken_apart(messages: Iterable[NewMessage]) -> Iterator[NewMessage]:
    """Yield messages as they were said, without markers."""
    for message in messages:
        has_markers = message.role == "assistant" and any(
            marks.may_have_searches(part.text) for part in message.parts
        )
        if has_markers:
            yield from _apart(message)
        else:
            yield message


def _apart(message: NewMessage) -> Iterator[NewMessage]:
    number = 0
    for part in message.parts:
        # Every second piece is the id of a marker.
        pieces = marks.SEARCHED.split(part.text)[::2] if part.kind == "text" else [part.text]
        for piece in pieces:
            if piece.strip():
                key = f"{message.key}:{number}" if number and message.key else message.key
                usage = {} if number else message.usage
                yield replace(message, parts=(replace(part, text=piece),), key=key, usage=usage)
                number += 1
