"""Judging: what a newer statement does to an older one, by rules that rather say too little.

Only a statement that says itself that something is different now changes another one. Without
such words, the same thing with another number, version or the opposite speaks against it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lore.llm.offline import changing
from lore.records import Fragment, Verdict
from lore.text import values, words

_LEAST_SHARED = 0.5
"""Share of the shorter statement's words that the other must have to be about the same."""

_SAME_FRAME = 0.75
"""The same share, where nothing but a value may differ."""

_READ_CHARS = 2_000

_MOST_LEFT = 2
"""So many words of its own an older statement may have and be replaced whole, a verb and one
more. With more it says something else too, and a person decides what becomes of that."""

_REPLACED = re.compile(
    rf"\b(?:switch|(?:{changing.VERBS}|port)\w+|went|go(?:es|ing)?)\b"
    r"[^.;\n]{0,60}?\bfrom\s+(?P<old>[^.;,\n]{1,80}?)\s+(?:back\s+)?(?:over\s+)?to\b"
    r"|\breplac\w+\s+(?P<old2>[^.;,\n]{1,80}?)\s+(?:with|by)\b"
    r"|\b(?:instead\s+of|rather\s+than|in\s+place\s+of|in\s+favou?r\s+over)\s+(?P<old3>[^.;,\n]{1,80})"
    r"|\bno\s+longer\s+(?P<old4>[^.;,\n]{1,100})"
    r"|\b(?:stopped|quit|ceased)\s+(?:using\s+)?(?P<old5>[^.;,\n]{1,80})"
    r"|\b(?:dropped|abandoned|retired|got\s+rid\s+of)\s+(?P<old6>[^.;,\n]{1,80})"
    r"|\bnot\s+(?P<old7>[^.;,\n]{1,60}?)\s+any\s?more\b"
    r"|\b(?P<old8>[^.;,\n]{1,60}?)\s+(?:was|were|is|are|has\s+been|have\s+been)\s+"
    r"(?:replaced|superseded|dropped|removed|retired|deprecated)\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"(?<=\w\s)(?<!right\s)now\b(?!\s+(?:let|i|we|you)\b)"
    r"|\b(?:from\s+now\s+on|as\s+of|going\s+forward|henceforth|these\s+days"
    rf"|(?:{changing.VERBS})ed\s+to|(?:is|are|was|were|has\s+been)\s+(?:now|(?:{changing.VERBS})ed)"
    r"|correction|actually)\b",
    re.IGNORECASE,
)
_NARRATION = re.compile(
    r"^\W*(?:now\s+|so\s+|ok(?:ay)?\s+|first\s+|next\s+|then\s+)*,?\s*"
    r"(?:let\s+(?:me|us)|let's|let’s|i['’]ll|i\s+will|i['’]m|i\s+am|i\s+need|we\s+need|i\s+just"
    r"|i\s+should|thanks|congratulations|bash|grep|task\w*|error|warning)\b",
    re.IGNORECASE,
)
"""How someone speaks of what they are about to do, or a tool of what it did: nothing that holds."""

_VALUE = re.compile(
    r"(?<![\w.#/-])(?P<named>(?:step|issue|pr|ticket|bug|task|chapter|part|item|test|case|line"
    r"|page|day|week|session|agent|option|example|exercise|question|round|attempt|run|level|sprint|phase|stage|figure|table|section|room|#)\s*[-#]?\s*)?"
    r"[v$€£]?(?P<number>\d+(?:[.,:]\d+)*)(?P<unit>\s?%|\s?[a-zA-Z]{1,3}\b)?",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\b\d{4}-\d\d(?:-\d\d)?\b|\b(?:19|20)\d\d\b|\b\d{1,2}:\d\d\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}\b"
    r"|\b\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
_SMALL = frozenset(
    "a an the of to in on at by for from with and or but as is are was were be been being has have"
    " had do does did it its this that these those we our us i my you your they their he she his"
    " her them there here will would should can could may might must shall let lets s t so then"
    " than also just now always from not no never longer any more instead".split()
)


class Frame(NamedTuple):
    """A statement taken apart: its words, its numbers, and whether it denies."""

    words: frozenset[str]
    numbers: frozenset[str]
    denies: bool


def judge(pairs: Sequence[tuple[Fragment, Fragment]]) -> list[Verdict]:
    """Say for each pair (older, newer) what the newer one does to the older."""
    return [verdict(_said(older), _said(newer)) for older, newer in pairs]


def _said(fragment: Fragment) -> str:
    return fragment.content or fragment.summary


def verdict(older: str, newer: str) -> Verdict:
    """Say what a newer statement does to an older one."""
    older, newer = older[:_READ_CHARS], newer[:_READ_CHARS]
    was, now = frame(older), frame(newer)
    if not (was.words and now.words and _states(older) and _states(newer)):
        return "agrees"
    differs = _differs(was, now)
    if _names_what_it_replaces(older, was, newer) or (
        _NOW.search(newer) and (differs or _other_value(older, newer, was, now))
    ):
        return "changes" if len(was.words - now.words) <= _MOST_LEFT else "contradicts"
    return "contradicts" if differs else "agrees"


def _states(text: str) -> bool:
    """Tell whether a text says that something holds, and neither asks nor narrates."""
    return not text.rstrip().endswith("?") and not _NARRATION.match(text)


def frame(text: str) -> Frame:
    """Take a statement apart; dates say when, and numbers that name a thing are words."""
    bare = values.in_digits(_DATE.sub(" ", text))
    numbers: set[str] = set()
    named: set[str] = set()
    for found in _VALUE.finditer(bare):
        value = found["number"].replace(",", "") + (found["unit"] or "").strip().lower()
        (named if found["named"] else numbers).add(value)
    said = {word for word in words.split(_VALUE.sub(" ", bare)) if word not in _SMALL}
    kept = {words.stem(word) for word in said - values.sides(bare) if len(word) > 1}
    return Frame(frozenset(kept | named), frozenset(numbers), values.denies(bare))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Return which share of the shorter one's words the other has."""
    return len(one & other) / max(1, min(len(one), len(other)))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _replaced(text: str) -> list[Frame]:
    """Return what a statement says that it replaces."""
    return [
        frame(next(group for group in found.groups() if group))
        for found in _REPLACED.finditer(text)
    ]


def _names_what_it_replaces(older: str, was: Frame, newer: str) -> bool:
    """Tell whether a statement says what it replaces, and that is what the older one said.

    If the older one replaced the same, both tell of one change.
    """
    before = [old.words | old.numbers for old in _replaced(older)]
    for old in _replaced(newer):
        replaced = old.words | old.numbers
        if not replaced or was.denies or any(replaced & known for known in before):
            continue
        hit = len(replaced & (was.words | was.numbers)) / len(replaced)
        if hit < _LEAST_SHARED:
            continue
        beside = frame(newer).words - old.words
        if beside & was.words or _shared(was.words, old.words) >= _LEAST_SHARED:
            return True
    return False


def _differs(was: Frame, now: Frame) -> bool:
    """Tell whether two statements say the same but for a number, or for a denial."""
    alike = _overlap(was.words, now.words) >= _SAME_FRAME and len(was.words & now.words) >= 2
    if not alike:
        return False
    if was.denies != now.denies:
        return was.numbers == now.numbers
    return _other_number(was.numbers, now.numbers)


def _other_number(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether a number differs; where several do and none is the same, two events are told."""
    several = min(len(one), len(other)) > 1
    return values.crosswise(one, other) and (not several or bool(one & other))


def _other_value(older: str, newer: str, was: Frame, now: Frame) -> bool:
    """Tell whether a statement that speaks of now names another thing in the same place."""
    if _shared(was.words, now.words) < _LEAST_SHARED or len(was.words & now.words) < 2:
        return False
    if _other_number(was.numbers, now.numbers):
        return True
    mine, theirs = _names(older), _names(newer)
    if was.denies != now.denies or not values.crosswise(mine, theirs):
        return False
    names = {words.stem(word) for name in mine | theirs for word in words.split(name)}
    return _overlap(was.words - names, now.words - names) >= _SAME_FRAME


def _names(text: str) -> frozenset[str]:
    return values.names(_DATE.sub(" ", text))
