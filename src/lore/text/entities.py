"""Entities: the names, identifiers and paths that a text mentions.

A run of capitalised words is a name, also across small words ('University of the Arts');
it is kept whole and cut at its small words, so that spellings of one entity meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lore.text import lines, words
from lore.text.later import compile_later

MOST = 40
"""Mentions kept of one text."""

_LONGEST_RAW = 400
"""A longer run of capitals is a heading or a table, not a name."""

_TOKEN = compile_later(r"\w+(?:['\-.&/:]+\w+)*")
_WORD = compile_later(r"\w+")
_PARENTHESES = compile_later(r"\s?\([^()]*\)")
_POSSESSIVE = compile_later(r"'s?\b")
_ORDINAL = compile_later(r"\d{1,2}(?:st|nd|rd|th)?")
_CODE = compile_later(r"[_/\d]|[a-z][A-Z]")
_LETTER = compile_later(r"[^\W\d_]")
_BINDS = frozenset(
    "of the de von van der den del della di da du la le el al des zu bin ibn".split()
)
_JOINS = _BINDS | frozenset("and for in on to y e at".split())
_MONTHS = "january february march april may june july august september october november december"
_CALENDAR = frozenset(f"{_MONTHS} monday tuesday wednesday thursday friday saturday sunday".split())
_LOOSE = compile_later(
    rf"^(?:(?:\d+|{'|'.join(_MONTHS.split())}|in|and|the|of) )+"
    r"|(?: (?:\d{3,4}|in|and|the|of))+$"
)


class Mention(NamedTuple):
    """One entity that a text names; in the title it is what the text is about."""

    name: str
    is_title: bool = False


def normalise(name: str) -> str:
    """Return the form in which spellings of one entity meet."""
    folded = words.fold(name.replace("’", "'"))
    found = _WORD.findall(_POSSESSIVE.sub("", folded))
    first = next((i for i, word in enumerate(found) if word != "the"), len(found) - 1)
    return " ".join(found[max(0, first) :])


def extract(text: str, *, title: str = "") -> tuple[Mention, ...]:
    """Return what a text mentions, its title first, each once."""
    found = dict.fromkeys(title_names(title), True) if title else {}
    for name in names(text):
        found.setdefault(name, False)
    for name in names(_PARENTHESES.sub("", title)):
        found.setdefault(name, False)
    return tuple(Mention(name, is_title) for name, is_title in found.items())[:MOST]


def of_fragment(content: str, summary: str) -> tuple[Mention, ...]:
    """Return what a stored fragment mentions; a summary that was only derived is no title."""
    return extract(content, title="" if summary == lines.summary(content) else summary)


def title_names(title: str) -> list[str]:
    """Return the names that a title gives to its text: whole, without what explains it."""
    bare = _PARENTHESES.sub("", title)
    first = normalise(bare.split(",")[0])
    return list(
        dict.fromkeys(
            name
            for name in (normalise(title), normalise(bare), first if len(first) > 3 else "")
            if name and len(name) <= 80
        )
    )


def names(text: str) -> list[str]:
    """Return the names and identifiers in a text, normalised, each once, in order."""
    found: dict[str, None] = {}
    for raw in _raw_names(text.replace("’", "'")):
        if len(raw) > _LONGEST_RAW:
            continue
        name = _LOOSE.sub("", normalise(raw)).strip()
        if 2 < len(name) <= 80 and not _common(name):
            found[name] = None
    return list(found)


def phrases(text: str, longest: int = 8) -> Iterator[str]:
    """Yield the runs of two and more words of a question: any may be a known title."""
    tokens = normalise(text).split()
    for start in range(len(tokens)):
        for end in range(start + 2, min(start + longest, len(tokens)) + 1):
            yield " ".join(tokens[start:end])


def _common(name: str) -> bool:
    return name in words.STOP_WORDS or all(
        word in _CALENDAR or word in _JOINS or word.isdigit() for word in name.split()
    )


Run = list[tuple[str, bool]]
"""Words of a name with whether each is capitalised."""


def _raw_names(text: str) -> Iterator[str]:
    run: Run = []
    end = 0
    for match in _TOKEN.finditer(text):
        word = match.group()
        gap = text[end : match.start()]
        end = match.end()
        if run and gap.strip() not in ("", "&"):
            yield from _closed(run)
            run = []
        if word[0].isupper() or (run and _ORDINAL.fullmatch(word)):
            owner = word.endswith("'s")
            run.append((word.removesuffix("'s"), True))
            if owner:
                yield from _closed(run)
                run = []
        elif run and word in _JOINS and (run[-1][1] or (len(run) > 1 and run[-2][1])):
            run.append((word, False))
        else:
            yield from _closed(run)
            run = []
        if _CODE.search(word) and _LETTER.search(word):
            yield word
    yield from _closed(run)


def _closed(run: Run) -> Iterator[str]:
    """Yield a finished run whole, cut at its wide connectors, and cut at all of them."""
    while run and not run[-1][1]:
        run.pop()
    first = 0
    while first < len(run) and (not run[first][1] or run[first][0].casefold() in words.STOP_WORDS):
        first += 1
    run = run[first:]
    if run:
        yield " ".join(word for word, _ in run)
        if any(not capital for _, capital in run):
            yield from _cut(run, _BINDS)
            yield from _cut(run, ())


def _cut(run: Run, keeping: Iterable[str]) -> Iterator[str]:
    current: Run = []
    for word, capital in [*run, ("", False)]:
        if capital or (current and word in keeping):
            current.append((word, capital))
            continue
        while current and not current[-1][1]:
            current.pop()
        if current:
            yield " ".join(part for part, _ in current)
        current = []
