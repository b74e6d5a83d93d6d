"""Replies: a hit that asks is shown with what was answered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lore.records import TRUST, UNASKED_TRUST, Hit, Message
from lore.store import turns
from lore.store.db import Connection
from lore.text import goals, parts, tokens

ANSWER_TOKENS = 100
"""A few lines: `read` gives the whole, with what came before."""

_LONGEST_TOKENS = 80
"""Who asks at greater length tells something, too, and stands for themselves."""


def with_answer(
    db: Connection, hit: Hit, terms: list[str], *, most_tokens: int, shown: Collection[str]
) -> Hit:
    """Return a hit with its answer beside it, if it asks, that fits, and is not shown itself."""
    if not _asks(hit):
        return hit
    said = next(((m, text) for m in turns.answers_to(db, hit.id) if (text := _said(m))), None)
    if said is None or said[0].id in shown:
        return hit
    text = tokens.clip_around(said[1], ANSWER_TOKENS, terms)
    size = tokens.count(text)
    if size > most_tokens:
        return hit
    return replace(hit, answer=text, tokens=hit.tokens + size)


def _asks(hit: Hit) -> bool:
    if hit.type != "message" or hit.role != "user" or hit.tokens > _LONGEST_TOKENS:
        return False
    return hit.text.rstrip().endswith("?") or goals.asks(hit.text)


def _said(message: Message) -> str:
    """Return the assistant's own words; nothing of a message in which someone else speaks too."""
    if TRUST[parts.lowest_origin(message.parts, message.origin)] < UNASKED_TRUST:
        return ""
    return parts.said(message.parts)
