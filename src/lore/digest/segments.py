"""Split conversations: into segments for distillation, and into exchanges for extraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log2

import numpy as np
from numpy.typing import NDArray

from lore.records import MessageText, Segment
from lore.text import words

MIN_MESSAGES, MIN_TOKENS = 5, 64
"""Less than this is not worth a distillation yet."""

MAX_TOKENS = 16_384
"""A segment must fit a model's prompt with room to spare."""

_WINDOW = 3
"""The messages on each side of a boundary that are compared."""

_PAUSE_S = 1_800.0
"""A pause of half an hour counts as much as a complete change of topic; a longer one more."""

_USER_BONUS = 0.3
"""A user's message starts a new topic more often than an answer does."""

Vector = NDArray[np.float32]


def split_segments(
    session_id: str,
    texts: Sequence[MessageText],
    *,
    title: str = "",
    about_tokens: int = MAX_TOKENS,
    vectors: Mapping[str, Vector] | None = None,
) -> list[Segment]:
    """Split messages into segments of about a given number of tokens, each message in one.

    Segments are filled from the left: appended messages change only the last one. Without vectors,
    topics are compared by words.
    """
    about = min(about_tokens, MAX_TOKENS)
    topics = Topics(vectors or {})
    result: list[Segment] = []
    rest = list(texts)
    while rest:
        end = _first_segment_end(rest, about, topics)
        result.append(Segment(session_id, tuple(rest[:end]), title))
        rest = rest[end:]
    return result


def is_large_enough(texts: Sequence[MessageText]) -> bool:
    """Return whether a run of messages is worth a distillation."""
    return len(texts) >= MIN_MESSAGES and sum(one.tokens for one in texts) >= MIN_TOKENS


class Topics:
    """What messages are about: vectors, and words, which are found once for each message."""

    def __init__(self, vectors: Mapping[str, Vector]) -> None:
        self._vectors = vectors
        self._words: dict[str, frozenset[str]] = {}

    def similarity(self, before: Sequence[MessageText], after: Sequence[MessageText]) -> float:
        """Return the similarity of two runs of messages: by vectors, or else by words."""
        vectors = self._vectors
        sides = [[vectors[one.id] for one in side if one.id in vectors] for side in (before, after)]
        if all(sides):
            left, right = (np.mean(side, axis=0) for side in sides)
            length = float(np.linalg.norm(left) * np.linalg.norm(right))
            return float(left @ right) / length if length > 1e-9 else 0.0
        left_words, right_words = (
            frozenset[str]().union(*map(self._content_words, side)) for side in (before, after)
        )
        smaller = min(len(left_words), len(right_words))
        return len(left_words & right_words) / smaller if smaller else 0.0

    def _content_words(self, one: MessageText) -> frozenset[str]:
        if one.id not in self._words:
            start = words.split(one.text[:2_000])
            self._words[one.id] = frozenset(start).difference(words.STOP_WORDS)
        return self._words[one.id]


def _first_segment_end(texts: Sequence[MessageText], about: int, topics: Topics) -> int:
    """Return the end of the first segment: the strongest boundary at which it is about full."""
    total = 0
    first, last = len(texts), len(texts)
    for place, one in enumerate(texts):
        if total + one.tokens > about and place >= MIN_MESSAGES:
            last = place
            break
        if total + one.tokens > MAX_TOKENS and place:
            return place
        total += one.tokens
        if total >= about / 2 and place + 1 >= MIN_MESSAGES:
            first = min(first, place + 1)
    if last == len(texts) or not is_large_enough(texts[last:]):
        whole = sum(one.tokens for one in texts)
        if whole <= min(MAX_TOKENS, 1.5 * about) or len(texts) < 2 * MIN_MESSAGES:
            return len(texts) if whole <= MAX_TOKENS else last
    first = min(first, last)
    places = [p for p in range(first, last + 1) if is_large_enough(texts[p:])] or [last]
    return max(places, key=lambda place: (_boundary_score(texts, place, topics), place))


def _boundary_score(texts: Sequence[MessageText], place: int, topics: Topics) -> float:
    """Return the score of a cut before a message: the pause, and the change of topic."""
    if place >= len(texts):
        return 0.0
    pause_s = max(0.0, (texts[place].at - texts[place - 1].at).total_seconds())
    pause = log2(1 + pause_s / _PAUSE_S)
    before, after = texts[max(0, place - _WINDOW) : place], texts[place : place + _WINDOW]
    change = 1.0 - topics.similarity(before, after)
    return pause + change + _USER_BONUS * (texts[place].origin == "user")


MAX_EXCHANGE_TOKENS = 16_384
"""A longer exchange is read in pieces; the limit of a segment in the specification."""


def split_exchanges(
    session_id: str, texts: Sequence[MessageText], *, title: str = ""
) -> list[Segment]:
    """Split messages where the user speaks again; conversations between people into short runs."""
    return [
        Segment(session_id, tuple(piece), title)
        for whole in _split_turns(texts)
        for piece in _split_long_exchange(whole)
    ]


def is_person(one: MessageText) -> bool:
    """Return whether a person wrote the message: the user, or someone with a name."""
    return one.voice not in ("assistant", "tool", "system")


MAX_TALK_MESSAGES = 4
"""Messages of an exchange in a conversation between people."""


def _split_turns(texts: Sequence[MessageText]) -> Iterator[list[MessageText]]:
    current: list[MessageText] = []
    for one in texts:
        among_people = bool(current) and all(map(is_person, current))
        full = len(current) >= MAX_TALK_MESSAGES if among_people else True
        if is_person(one) and current and full:
            yield current
            current = []
        current.append(one)
    if current:
        yield current


def _split_long_exchange(whole: Sequence[MessageText]) -> Iterator[list[MessageText]]:
    """Split an exchange that is too long to be read at once; a message is never split."""
    current: list[MessageText] = []
    size = 0
    for one in whole:
        if current and size + one.tokens > MAX_EXCHANGE_TOKENS:
            yield current
            current, size = [], 0
        current.append(one)
        size += one.tokens
    if current:
        yield current


EVENT_WINDOW = 3
"""The turns on each side of a boundary that are compared."""

MIN_EVENT_TURNS = 6
"""On each side of a boundary."""

MAX_UNSPLIT_TURNS = 12
"""A session of at most this many turns is one event."""

MIN_WORD_OVERLAP = 0.15
"""Without an embedder, windows with a smaller word overlap are two events."""

MIN_DROP, MIN_DROP_DEVIATIONS = 0.08, 1.0
"""A drop of similarity counts from this depth on, and from this many standard deviations below the
session's mean: the topics of one project are never far apart. Chosen by hand.
"""

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def split_events(turns: Sequence[str], embed: Embed | None = None) -> list[range]:
    """Split a session into events: runs of its turns, in order and without gaps."""
    if len(turns) <= MAX_UNSPLIT_TURNS:
        return [range(len(turns))] if turns else []
    near = _similarity_by_vectors(embed(turns)) if embed else _similarity_by_words(turns)
    cuts = sorted(
        _find_cuts(near, 0, len(turns), _cut_threshold(near) if embed else MIN_WORD_OVERLAP)
    )
    return [range(a, b) for a, b in zip([0, *cuts], [*cuts, len(turns)], strict=True)]


def _similarity_by_vectors(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    near = np.ones(len(rows) + 1)
    for place in range(1, len(rows)):
        before = rows[max(0, place - EVENT_WINDOW) : place].mean(axis=0)
        after = rows[place : place + EVENT_WINDOW].mean(axis=0)
        size = float(np.linalg.norm(before) * np.linalg.norm(after))
        near[place] = float(before @ after) / size if size else 1.0
    return near


def _similarity_by_words(turns: Sequence[str]) -> NDArray[np.float64]:
    word_sets = [set(words.split(turn)) - words.STOP_WORDS for turn in turns]
    near = np.ones(len(turns) + 1)
    for place in range(1, len(turns)):
        before = set().union(*word_sets[max(0, place - EVENT_WINDOW) : place])
        after = set().union(*word_sets[place : place + EVENT_WINDOW])
        both = before | after
        near[place] = len(before & after) / len(both) if both else 1.0
    return near


def _cut_threshold(near: NDArray[np.float64]) -> float:
    inner = near[1:-1]
    return float(min(inner.mean() - MIN_DROP_DEVIATIONS * inner.std(), inner.mean() - MIN_DROP))


def _find_cuts(near: NDArray[np.float64], start: int, end: int, line: float) -> list[int]:
    """Cut at the deepest boundary, then cut both sides."""
    first, last = start + MIN_EVENT_TURNS, end - MIN_EVENT_TURNS
    if end - start <= MAX_UNSPLIT_TURNS or first > last:
        return []
    place = first + int(np.argmin(near[first : last + 1]))
    if near[place] >= line:
        return []
    return [*_find_cuts(near, start, place, line), place, *_find_cuts(near, place, end, line)]
