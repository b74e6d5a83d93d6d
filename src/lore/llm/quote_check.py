"""Grounding: find the messages that a statement rests on, whatever sources a model claims.

Prompt injection can make a model attribute the words of a web page to a person. A statement
therefore also rests on every less trusted message that has what its claimed sources lack, and gets
no more trust than that message. Only a fact all of which people and assistants say themselves rests
on their messages alone: an agent reports what its tools showed, and that is its own word. Beside
output of tools a fact has a person's trust only if the person's messages have every word of it,
with the same negations, order and dates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lore.records import TRUST, UNASKED_TRUST, Fragment, MessageText
from lore.text import entities, restatement, words

MIN_SHARE = 1 / 3
"""The share of a statement's words that its sources must contain;

a paraphrase has some of them too, because names and numbers stay.
"""

MAX_UNSOURCED, UNSOURCED_SHARE = 2, 0.3
"""So many words, and such a share, may be missing from the sources and occur in one less trusted
message: any long output has some word of everything.
"""

SAID_SHARE, MAX_VOICES = 0.7, 4
"""The share of a statement's words that so many messages of people and assistants must contain, and
all of its identifiers, so that it rests on them alone. (Of 149 statements of four projects that a
chat extracted, tools were named for half; nearly all of those the agent had said itself.)"""

MAX_ADDED = 3
"""The least trusted message comes first and decides; the others are further places to look."""

_MIN_IDENTIFIER_CHARS = 3
_NAME = re.compile(r"(?<=[\w,;)]\s)[A-Z]\w{2,}")
"""A word with a capital in the middle of a sentence."""


@dataclass(frozen=True)
class Grounding:
    """The messages of a segment, indexed by their words.

    `beside` are messages around it: no statement may name them as its source, but what is only in
    them has no more trust than they have. Anyone may have chosen the name of the `branch`: what
    only that says is no fact.
    """

    messages: Sequence[MessageText]
    beside: Sequence[MessageText] = ()
    branch: str = ""

    @cached_property
    def _all(self) -> tuple[MessageText, ...]:
        return (*self.messages, *self.beside)

    @cached_property
    def _words(self) -> dict[int, frozenset[str]]:
        return {one.ordinal: _content_words(one.text) for one in self._all}

    @cached_property
    def _by_ordinal(self) -> dict[int, MessageText]:
        return {one.ordinal: one for one in self._all}

    @cached_property
    def _own(self) -> frozenset[int]:
        return frozenset(one.ordinal for one in self.messages)

    def existing(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers of messages of the segment, sorted and without duplicates."""
        return tuple(sorted({number for number in numbers if number in self._own}))

    def trust_of(self, numbers: Iterable[int]) -> int:
        """Return the trust in a statement: that of its least trusted message."""
        return min(TRUST[self._by_ordinal[number].origin] for number in numbers)

    def id_of(self, number: int) -> str:
        """Return the id of a message."""
        return self._by_ordinal[number].id

    def fact_sources(
        self, text: str, named: Collection[int], *, beside: str = "", known: Fragment | None = None
    ) -> tuple[int, ...]:
        """Return the messages that a fact rests on, none if nobody said it: see `sources_of`.

        If people and assistants say all of it, these are their messages alone. What the fact
        repeats of a fragment that is `known`, with as much trust, needs no source: a correction
        says all of it again. What it adds needs one all the more.
        """
        if not named:
            return ()
        known_words = self._repeated_words(text, named, known)
        if self._is_of_branch(text, known_words):
            return ()
        sources = self.sources_of(text, named, beside=beside, known_words=known_words)
        trust = self.trust_of(sources)
        former = known.content if known and known_words else ""
        if trust < UNASKED_TRUST:
            return self._voices_of(text, named, beside, former) or sources
        if trust == TRUST["user"] and self._hostile:
            voices = self._voices_of(text, sources, beside, former)
            return voices or self._blamed(text, sources)
        return sources

    def _is_of_branch(self, text: str, known_words: frozenset[str]) -> bool:
        """Return whether a text says what only the name of the branch does, beyond naming it."""
        branch = self.branch.lower()
        if not branch:
            return False
        heard = known_words.union(*self._words.values())
        unheard = _content_words(text.lower().replace(branch, " ")) - heard
        of_branch = unheard & _content_words(re.sub(r"[^\w.]+|_", " ", branch))
        return bool(_contained(_identifiers(unheard), branch)) or len(of_branch) > MAX_UNSOURCED

    @cached_property
    def _hostile(self) -> tuple[MessageText, ...]:
        """Return the messages of others than people and assistants, the least trusted first."""
        hostile = [one for one in self._all if TRUST[one.origin] < UNASKED_TRUST]
        return tuple(sorted(hostile, key=lambda one: TRUST[one.origin]))

    @cached_property
    def _hostile_words(self) -> frozenset[str]:
        return frozenset[str]().union(*(self._words[one.ordinal] for one in self._hostile))

    def _blamed(self, text: str, named: Collection[int]) -> tuple[int, ...]:
        """Return the named messages and the least trusted ones of the segment, if it has any.

        Of those around the segment they are the ones that say the statement or a date in it.
        """
        own = [one.ordinal for one in self._hostile if one.ordinal in self._own]
        blamed = own or self._hostile_authors(text) or self._date_authors(text, named)
        return tuple(sorted({*named, *blamed[:MAX_ADDED]}))

    def _date_authors(self, text: str, named: Collection[int]) -> list[int]:
        """Return the messages of others that have a date which the named messages do not mean."""
        dates = restatement.find_dates(text)
        for one in (self._by_ordinal[number] for number in named):
            dates -= restatement.possible_dates(one.text, one.at)
        hostile = self._hostile if dates else ()
        return [one.ordinal for one in hostile if dates & restatement.find_dates(one.text)]

    def _hostile_authors(self, text: str) -> list[int]:
        """Return the messages of others than people and assistants that say a statement."""
        hostile = self._hostile
        return [one.ordinal for one in hostile if restatement.is_restated(text, [one.text])]

    def _turned_sources(
        self, text: str, people: Collection[int], readers: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the sources of a statement that turns the words of people into another sense.

        It is an assistant's reading, or the word of the untrusted message that says it.
        """
        authors = self._hostile_authors(text)
        if readers and not authors:
            return tuple(sorted([*people, readers[-1]]))
        authors = authors or [one.ordinal for one in self._hostile]
        return tuple(sorted({*people, *authors[:MAX_ADDED]}))

    def _repeated_words(
        self, text: str, named: Collection[int], known: Fragment | None
    ) -> frozenset[str]:
        """Return the words of a known fragment that a correction may repeat without a source.

        There are none if it only leaves words out, changes their order or the negation: then the
        named messages have to say all of it. Of what a person said, a person's messages about it
        must also have a new word for each one that is left out: 'ask Jan first' does not just go.
        """
        if known is None or known.trust < (trust := self.trust_of(named)):
            return frozenset()
        known_words, text_words = _content_words(known.content), _content_words(text)
        speaking = [self._words[number] for number in named]
        if trust == TRUST["user"]:
            speaking = [one for one in speaking if one & known_words]
        added = (text_words - known_words) & frozenset[str]().union(*speaking)
        left_out = known_words - text_words
        is_swap = len(left_out) <= len(added) or trust < TRUST["user"]
        in_order = _is_in_order(text, known.content)
        same_sense = entities.is_negated(text) == entities.is_negated(known.content)
        return known_words if added and is_swap and in_order and same_sense else frozenset()

    def sources_of(
        self,
        text: str,
        named: Collection[int],
        *,
        beside: str = "",
        known_words: frozenset[str] = frozenset(),
    ) -> tuple[int, ...]:
        """Return the messages that a statement rests on, the named ones included.

        Of the texts `beside` it only identifiers and numbers count. `known_words` need no source,
        and the other words are judged as if they were the whole statement.
        """
        if not named:
            return ()
        trust = self.trust_of(named)
        lower = [one for one in self._all if TRUST[one.origin] < trust]
        if not lower:
            return tuple(sorted(named))
        claimed = _content_words(text) - known_words
        sourced = frozenset[str]().union(*(self._words[number] for number in named))
        identifiers = _identifiers(claimed | _content_words(beside)) - sourced - known_words
        # a few words are all that a correction adds: none of them is free
        free = 0 if known_words else MAX_UNSOURCED
        most = max(free, UNSOURCED_SHARE * len(claimed))
        added = [
            one
            for one in lower
            if identifiers & self._words[one.ordinal]
            or len((claimed - sourced) & self._words[one.ordinal]) > most
        ]
        if not added and len(claimed & sourced) < MIN_SHARE * len(claimed):
            # It comes from none of the messages it names, and nobody knows from which.
            added = [one for one in lower if one.ordinal in self._own]
        shared = {one.ordinal: len(claimed & self._words[one.ordinal]) for one in added}
        added.sort(key=lambda one: (TRUST[one.origin], -shared[one.ordinal]))
        return tuple(sorted({*named, *(one.ordinal for one in added[:MAX_ADDED])}))

    def _voices_of(
        self, text: str, named: Collection[int], beside: str, known: str
    ) -> tuple[int, ...]:
        """Return messages of people and assistants that say all of a statement, or none.

        Those that the statement names come first, then those that add most of its words. What is
        not said word for word is somebody's reading: then an assistant's message is among them.
        What it repeats of a `known` text needs no source.
        """
        known_words = _content_words(known)
        claimed = _content_words(text) - known_words
        dates = restatement.find_dates(f"{text}\n{beside}") - restatement.find_dates(known)
        identifiers = _identifiers(claimed | _content_words(beside)) - known_words
        identifiers |= (_names(text) & self._hostile_words) - known_words
        voices = {
            one.ordinal: self._words[one.ordinal]
            | _contained(identifiers, one.text)
            | (dates & restatement.possible_dates(one.text, one.at))
            for one in self.messages
            if TRUST[one.origin] >= UNASKED_TRUST
        }
        identifiers |= dates
        chosen = [number for number in named if number in voices]
        missing = (claimed | identifiers).difference(*(voices[n] for n in chosen))
        while missing and len(chosen) < MAX_VOICES:
            best = max(voices, key=lambda number: _gain(voices[number] & missing), default=None)
            if best is None or not voices[best] & missing:
                break
            chosen.append(best)
            missing -= voices[best]
        # a few words are all that a correction adds: each of them must be said
        free = 0.0 if known else (1 - SAID_SHARE) * len(claimed)
        if not chosen or missing & identifiers or len(missing & claimed) > free:
            return ()
        if self.trust_of(chosen) <= UNASKED_TRUST:
            return tuple(sorted(chosen))
        readers = [n for n in voices if TRUST[self._by_ordinal[n].origin] == UNASKED_TRUST]
        if missing & claimed:
            return tuple(sorted([*chosen, readers[-1]])) if readers else ()
        texts = [self._by_ordinal[number].text for number in chosen]
        if not restatement.is_restated(text, texts, known=known):
            return self._turned_sources(text, chosen, readers)
        return tuple(sorted(chosen))


def _content_words(text: str) -> frozenset[str]:
    """Return the stemmed content words of a text, without dates.

    Models write dates out where someone said 'yesterday'.
    """
    text = restatement.leave_out_dates(text)
    listed = words.split(words.searchable_form(text))
    content = {words.stem(word) for word in listed if word not in words.STOP_WORDS}
    content |= {identifier.lower() for identifier in words.identifiers(text)}
    return frozenset(content)


def _is_in_order(text: str, known: str) -> bool:
    """Return whether the content words that two texts share stand in the same order in both."""
    stems, known_stems = _ordered_stems(text), _ordered_stems(known)
    return [one for one in stems if one in known_stems] == [
        one for one in known_stems if one in stems
    ]


def _ordered_stems(text: str) -> dict[str, None]:
    listed = words.split(words.searchable_form(text))
    return dict.fromkeys(words.stem(word) for word in listed if word not in words.STOP_WORDS)


def _identifiers(content: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in content if _is_identifier(word))


def _names(text: str) -> frozenset[str]:
    """Return the names in a text, as content words."""
    return frozenset(words.stem(name.lower()) for name in _NAME.findall(text))


def _contained(identifiers: Iterable[str], text: str) -> frozenset[str]:
    """Return those of the identifiers that a text contains: 'src/a.py' is part of a full path."""
    lowered = text.lower()
    return frozenset(one for one in identifiers if one in lowered)


def _gain(added: Collection[str]) -> int:
    """Return what a message adds to a statement's words; an identifier is worth several."""
    return len(added) + 3 * len(_identifiers(added))


def _is_identifier(word: str) -> bool:
    """Return whether a word is a name or number that nobody chooses by chance."""
    return len(word) >= _MIN_IDENTIFIER_CHARS and any(s.isdigit() or s in "./_:-@" for s in word)
