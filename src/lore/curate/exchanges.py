"""Exchanges: a session as digesters read it, from one request of the person to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lore.records import Said, Segment

MOST_TOKENS = 16_384
"""A longer exchange is read in pieces; the limit of a segment in the specification."""


def exchanges(session_id: str, said: Sequence[Said], *, title: str = "") -> list[Segment]:
    """Cut what was said where the person speaks again; talk between people into short runs."""
    return [
        Segment(session_id, tuple(piece), title)
        for whole in _turns(said)
        for piece in _pieces(whole)
    ]


def is_person(one: Said) -> bool:
    """Tell whether a person said it: the one at the keyboard, or someone with a name."""
    return one.voice not in ("assistant", "tool", "system")


RUN_OF_TALK = 4
"""Where people talk with each other, so many messages are one exchange."""


def _turns(said: Sequence[Said]) -> Iterator[list[Said]]:
    current: list[Said] = []
    for one in said:
        among_people = bool(current) and all(map(is_person, current))
        full = len(current) >= RUN_OF_TALK if among_people else True
        if is_person(one) and current and full:
            yield current
            current = []
        current.append(one)
    if current:
        yield current


def _pieces(whole: Sequence[Said]) -> Iterator[list[Said]]:
    """Cut an exchange that is too long to be read at once; one message is never cut."""
    current: list[Said] = []
    size = 0
    for one in whole:
        if current and size + one.tokens > MOST_TOKENS:
            yield current
            current, size = [], 0
        current.append(one)
        size += one.tokens
    if current:
        yield current
