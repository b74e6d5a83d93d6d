"""Replies: a hit that asks is shown with what was answered."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from lore.records import TRUST, UNASKED_TRUST, Hit, Message
from lore.store import turns
from lore.store.db import Connection
from lore.store.keywords import stem
from lore.text import goals, parts, tokens, words

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
    said = [(m, text) for m in turns.answers_to(db, hit.id) if (text := _said(m))]
    if not said:
        return hit
    answer, whole = said[_fitting([text for _, text in said], {*terms, *words.terms(hit.text)})]
    if answer.id in shown:
        return hit
    text = tokens.clip_around(whole, ANSWER_TOKENS, terms)
    size = tokens.count(text)
    if size > most_tokens:
        return hit
    return replace(hit, answer=text, tokens=hit.tokens + size)


def _fitting(texts: Sequence[str], wanted: Collection[str]) -> int:
    """Return the place of the text that answers: the first, a turn's last words, or a better one.

    An agent may answer, go on to work and end with a word on that.
    """
    told = [{stem(word) for word in words.split(text)} for text in texts]
    sought = {stem(word) for word in wanted}
    shares = [len(sought & told[0])]
    shares += [
        -1 if _announces(text) else len(sought & said)
        for text, said in zip(texts[1:], told[1:], strict=True)
    ]
    best = max(range(len(texts)), key=lambda place: (shares[place], -place))
    return best if shares[best] >= shares[0] + _CLEARLY else 0


def _announces(text: str) -> bool:
    """Tell whether someone only says what they are about to do."""
    return text.rstrip().endswith(":") or (
        bool(_ANNOUNCED.match(text)) and len(text.split()) <= _ANNOUNCED_WORDS
    )


_CLEARLY = 2
"""So many more words of the question another message must have to be shown in place of the last:
one can stand in any. Chosen by hand."""

_ANNOUNCED_WORDS = 40
_ANNOUNCED = re.compile(
    r"\W*(?:(?:ok(?:ay)?|sure|right|good|now|first|next|so|great)\b[,.!]? ?)*"
    r"(?:let me|let's|i'll|i will|i'm going to|i am going to|looking|checking|reading|searching)\b",
    re.IGNORECASE,
)


def _asks(hit: Hit) -> bool:
    if hit.type != "message" or hit.role != "user" or hit.tokens > _LONGEST_TOKENS:
        return False
    return hit.text.rstrip().endswith("?") or goals.asks(hit.text)


def _said(message: Message) -> str:
    """Return the assistant's own words; nothing of a message in which someone else speaks too."""
    if TRUST[parts.lowest_origin(message.parts, message.origin)] < UNASKED_TRUST:
        return ""
    return parts.said(message.parts)
