"""Grounding: which messages a statement really rests on, whatever a chat names as its sources.

A chat that was talked into it can put words of a web page into the mouth of a person. What it
writes therefore also rests on every less trusted message that has what the named ones lack: the
statement then has no more trust than that message. Sources are only ever added here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lore.records import TRUST, Said
from lore.text import words

LEAST_SHARE = 1 / 3
"""So much of a statement's words its sources must have; one in words of its own has some of them
too, for names and numbers stay as they are."""

MOST_STRANGE, STRANGE_SHARE = 2, 0.3
"""So many words, and such a share, may be missing from the sources and stand in one less trusted
message: any long output has some word of everything."""

MOST_ADDED = 3
"""The least trusted of them comes first, and decides; the others say where else to look."""

_SHORTEST_HARD = 3
_DATE = re.compile(r"\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b")


@dataclass(frozen=True)
class Grounds:
    """The messages of a segment, with their words."""

    said: Sequence[Said]

    @cached_property
    def _words(self) -> dict[int, frozenset[str]]:
        return {one.ordinal: _telling(one.text) for one in self.said}

    @cached_property
    def _known(self) -> dict[int, Said]:
        return {one.ordinal: one for one in self.said}

    def known(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers that are messages, each once and in order; others are invented."""
        return tuple(sorted({number for number in numbers if number in self._known}))

    def id_of(self, number: int) -> str:
        """Return the id of a message."""
        return self._known[number].id

    def sources_of(self, text: str, named: Collection[int], *, beside: str = "") -> tuple[int, ...]:
        """Return the messages that a statement rests on, the named ones among them.

        What is told beside it counts by its names and numbers only.
        """
        if not named:
            return ()
        trust = min(TRUST[self._known[number].origin] for number in named)
        lower = [one for one in self.said if TRUST[one.origin] < trust]
        if not lower:
            return self.known(named)
        told = _telling(text)
        had = frozenset().union(*(self._words[number] for number in named))
        hard = frozenset(word for word in told | _telling(beside) if _is_hard(word)) - had
        most = max(MOST_STRANGE, STRANGE_SHARE * len(told))
        added = [
            one
            for one in lower
            if hard & self._words[one.ordinal]
            or len((told - had) & self._words[one.ordinal]) > most
        ]
        if not added and len(told & had) < LEAST_SHARE * len(told):
            # It comes from none of those it names; from where, nobody knows.
            added = lower
        shared = {one.ordinal: len(told & self._words[one.ordinal]) for one in added}
        added.sort(key=lambda one: (TRUST[one.origin], -shared[one.ordinal]))
        return self.known([*named, *(one.ordinal for one in added[:MOST_ADDED])])


def _telling(text: str) -> frozenset[str]:
    """Return the words of a text that say something, without their commonest endings.

    A date says nothing here: it is written out where someone said 'yesterday'.
    """
    text = _DATE.sub(" ", text)
    listed = words.split(words.searchable_form(text))
    found = {words.stem(word) for word in listed if word not in words.STOP_WORDS}
    found |= {identifier.lower() for identifier in words.identifiers(text)}
    return frozenset(found)


def _is_hard(word: str) -> bool:
    """Tell whether a word is a name or a number that nobody chooses by chance."""
    return len(word) >= _SHORTEST_HARD and any(s.isdigit() or s in "./_:-@" for s in word)
