"""Segmenting: the talk of a session cut into segments, at pauses and where the topic changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

import numpy as np
from numpy.typing import NDArray

from lore.records import Said, Segment
from lore.text import words

LEAST_MESSAGES, LEAST_TOKENS = 5, 64
"""Less than this is not worth a distillation yet."""

MOST_TOKENS = 16_384
"""No segment is longer: it must fit a model's prompt with room to spare."""

_WINDOW = 3
"""So many messages on each side of a boundary are compared."""

_PAUSE_S = 1_800.0
"""A pause of half an hour counts as much as a complete change of topic; a longer one more."""

_ASKS = 0.3
"""A person's message begins something new more often than an answer does."""

Vector = NDArray[np.float32]


def segments(
    session_id: str,
    said: Sequence[Said],
    *,
    title: str = "",
    about_tokens: int = MOST_TOKENS,
    vectors: Mapping[str, Vector] | None = None,
) -> list[Segment]:
    """Cut a run of messages into segments of about so many tokens, each message in one.

    Segments are filled from the left: what is appended later changes the last one only. Without
    vectors the topic is told by the words.
    """
    about = min(about_tokens, MOST_TOKENS)
    found: list[Segment] = []
    rest = list(said)
    while rest:
        end = _end_of_first(rest, about, vectors or {})
        found.append(Segment(session_id, tuple(rest[:end]), title))
        rest = rest[end:]
    return found


def is_enough(said: Sequence[Said]) -> bool:
    """Tell whether a run of messages is worth a distillation."""
    return len(said) >= LEAST_MESSAGES and sum(one.tokens for one in said) >= LEAST_TOKENS


def _end_of_first(said: Sequence[Said], about: int, vectors: Mapping[str, Vector]) -> int:
    """Return where the first segment ends: at the strongest boundary that leaves it about full."""
    total = 0
    first, last = len(said), len(said)
    for place, one in enumerate(said):
        if total + one.tokens > about and place >= LEAST_MESSAGES:
            last = place
            break
        if total + one.tokens > MOST_TOKENS and place:
            return place
        total += one.tokens
        if total >= about / 2 and place + 1 >= LEAST_MESSAGES:
            first = min(first, place + 1)
    if last == len(said) or not is_enough(said[last:]):
        whole = sum(one.tokens for one in said)
        if whole <= min(MOST_TOKENS, 1.5 * about) or len(said) < 2 * LEAST_MESSAGES:
            return len(said) if whole <= MOST_TOKENS else last
    first = min(first, last)
    places = [p for p in range(first, last + 1) if is_enough(said[p:])] or [last]
    return max(places, key=lambda place: (_boundary(said, place, vectors), place))


def _boundary(said: Sequence[Said], place: int, vectors: Mapping[str, Vector]) -> float:
    """Return how much speaks for a cut before a message: the pause, and how much else changes."""
    if place >= len(said):
        return 0.0
    pause_s = max(0.0, (said[place].at - said[place - 1].at).total_seconds())
    pause = log2(1 + pause_s / _PAUSE_S)
    before, after = said[max(0, place - _WINDOW) : place], said[place : place + _WINDOW]
    change = 1.0 - _similarity(before, after, vectors)
    return pause + change + _ASKS * (said[place].origin == "user")


def _similarity(
    before: Sequence[Said], after: Sequence[Said], vectors: Mapping[str, Vector]
) -> float:
    """Return how alike two stretches are: by their vectors, or else by their words."""
    sides = [[vectors[one.id] for one in side if one.id in vectors] for side in (before, after)]
    if all(sides):
        left, right = (np.mean(side, axis=0) for side in sides)
        length = float(np.linalg.norm(left) * np.linalg.norm(right))
        return float(left @ right) / length if length > 1e-9 else 0.0
    left_words, right_words = (_words(side) for side in (before, after))
    smaller = min(len(left_words), len(right_words))
    return len(left_words & right_words) / smaller if smaller else 0.0


def _words(said: Sequence[Said]) -> frozenset[str]:
    told = " ".join(one.text[:2_000] for one in said)
    return frozenset(word for word in words.split(told) if word not in words.STOP_WORDS)
