"""Entities: names, identifiers, paths, numbers and dates that a text mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lore.text import sentences, words
from lore.text.regex import PatternFile, compile_lazy

_re = PatternFile("entities")

MAX_MENTIONS = 40
"""Mentions stored for one text."""

_LONGEST_RAW = 400
"""A longer run of capitalised words is a heading or a table, not a name."""

_TOKEN = compile_lazy(r"\w+(?:['\-.&/:]+\w+)*")
_WORD = compile_lazy(r"\w+")
_PARENTHESES = compile_lazy(r"\s?\([^()]*\)")
_POSSESSIVE = compile_lazy(r"'s?\b")
_ORDINAL = compile_lazy(r"\d{1,2}(?:st|nd|rd|th)?")
_CODE = compile_lazy(r"[_/\d]|[a-z][A-Z]")
_LETTER = compile_lazy(r"[^\W\d_]")
_BINDS = frozenset(
    "of the de von van der den del della di da du la le el al des zu bin ibn".split()
)
_JOINS = _BINDS | frozenset("and for in on to y e at".split())
_MONTHS = "january february march april may june july august september october november december"
_CALENDAR = frozenset(f"{_MONTHS} monday tuesday wednesday thursday friday saturday sunday".split())
_LOOSE = compile_lazy(
    rf"^(?:(?:\d+|{'|'.join(_MONTHS.split())}|in|and|the|of) )+"
    r"|(?: (?:\d{3,4}|in|and|the|of))+$"
)


class Mention(NamedTuple):
    """One entity that a text names; `is_title` if it is the topic of the text."""

    name: str
    is_title: bool = False


def normalise(name: str) -> str:
    """Return the canonical form that the spellings of one entity share."""
    folded = words.fold(name.replace("’", "'"))
    parts = _WORD.findall(_POSSESSIVE.sub("", folded))
    first = next((i for i, word in enumerate(parts) if word != "the"), len(parts) - 1)
    return " ".join(parts[max(0, first) :])


def extract_mentions(text: str, *, title: str = "") -> tuple[Mention, ...]:
    """Return the entities of a text without duplicates, those of its title first."""
    is_title_by_name = dict.fromkeys(title_names(title), True) if title else {}
    for name in extract_names(text):
        is_title_by_name.setdefault(name, False)
    for name in extract_names(_PARENTHESES.sub("", title)):
        is_title_by_name.setdefault(name, False)
    return tuple(Mention(name, is_title) for name, is_title in is_title_by_name.items())[
        :MAX_MENTIONS
    ]


def fragment_mentions(content: str, summary: str) -> tuple[Mention, ...]:
    """Return the entities of a stored fragment; a derived summary is no title."""
    return extract_mentions(content, title="" if summary == sentences.summary(content) else summary)


def title_names(title: str) -> list[str]:
    """Return the names in a title: the whole title, and without its explanation."""
    bare = _PARENTHESES.sub("", title)
    first = normalise(bare.split(",")[0])
    return list(
        dict.fromkeys(
            name
            for name in (normalise(title), normalise(bare), first if len(first) > 3 else "")
            if name and len(name) <= 80
        )
    )


def extract_names(text: str) -> list[str]:
    """Return the names and identifiers in a text, normalised, without duplicates, in order."""
    unique: dict[str, None] = {}
    for raw in _raw_names(text.replace("’", "'")):
        if len(raw) > _LONGEST_RAW:
            continue
        name = _LOOSE.sub("", normalise(raw)).strip()
        if 2 < len(name) <= 80 and not _common(name):
            unique[name] = None
    return list(unique)


def phrases(text: str, longest: int = 8) -> Iterator[str]:
    """Yield the runs of two or more words of a question; any may be a known title."""
    tokens = normalise(text).split()
    for start in range(len(tokens)):
        for end in range(start + 2, min(start + longest, len(tokens)) + 1):
            yield " ".join(tokens[start:end])


def _common(name: str) -> bool:
    return name in words.STOP_WORDS or all(
        word in _CALENDAR or word in _JOINS or word.isdigit() for word in name.split()
    )


Run = list[tuple[str, bool]]
"""The words of a name, each with whether it is capitalised."""


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
    """Yield a finished run whole, split at its wide connectors, and split at all connectors."""
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


_TICKED = compile_lazy(r"`([^`\n]+)`")
_IDENTIFIER = compile_lazy(
    r"""(?<![\w/.\-])(?:
        (?:~|\.{1,2})?/?(?:[\w.@\-]+/)+[\w.@\-]+      # a path
      | [\w\-]+\.(?:py|go|ts|tsx|js|rs|rb|java|c|h|cpp|cs|sh|md|json|jsonl|ya?ml|toml|sql|html
          |css|txt|env|lock|cfg|ini|proto|swift|kt|vue|php)\b
      | --[a-z][\w\-]+                                # a flag
      | \w+_\w+                                       # snake case, a constant
      | [a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*            # camel case
      | [a-z]\w*\(\)
      | [A-Z][A-Z0-9]{2,}(?![a-z])                    # an acronym, a code
    )""",
    re.VERBOSE,
)
_CODE_SIGN = compile_lazy(r"[_/.\-(){}\[\]=:<>$@]|[a-z][A-Z]|^[A-Z]{3,}$")
_NUMBER = compile_lazy(r"(?<![\w.])[$€£]?\d[\d,.:/]*(?:\s?(?:%|[a-zA-Z]{1,6}\b))?")
_NAME = compile_lazy(r"(?<![.!?:]\s)(?<!^)(?<![\w'’-])[A-Z][a-z]{1,}(?:['’]s)?\b(?!\()")
_QUOTED = compile_lazy(r"[\"“][^\"”\n]{2,80}[\"”]")
_NO_NAMES = frozenset(
    "I I'm I'd I'll I've OK Ok Okay Yes No Sure Also But And So The A An It This That".split()
)


class Specifics(NamedTuple):
    """Counts of the specific details in a sentence."""

    code: int
    numbers: int
    dates: int
    names: int
    quoted: int

    @property
    def total(self) -> int:
        """Return the sum of all counts."""
        return self.code + self.numbers + self.dates + self.names + self.quoted


def count_specifics(sentence: str) -> Specifics:
    """Count the specific details of a sentence."""
    bare = _TICKED.sub(" ", sentence)
    dates = len(_re.date.findall(bare))
    names = {
        name.group()
        for name in _NAME.finditer(bare)
        if name.group() not in _NO_NAMES and not _re.calendar_name.match(name.group())
    }
    numbers = len(_NUMBER.findall(_re.date.sub(" ", bare))) + len(_re.word_number.findall(bare))
    return Specifics(len(identifiers(sentence)), numbers, dates, len(names),
                     len(_QUOTED.findall(bare)))  # fmt: skip


def identifiers(sentence: str) -> tuple[str, ...]:
    """Return the identifiers, paths and flags in a sentence, without duplicates, in order."""
    unique = dict.fromkeys(
        code for code in _TICKED.findall(sentence) if _CODE_SIGN.search(code) or len(code) > 2
    )
    bare = _TICKED.sub(" ", sentence)
    unique |= dict.fromkeys(match.group() for match in _IDENTIFIER.finditer(bare))
    return tuple(unique)


def has_relative_date(sentence: str) -> bool:
    """Return whether a sentence has a date relative to the day it was written."""
    return bool(_re.relative.search(sentence))


_VALUE_NUMBER = compile_lazy(r"\d+(?:[.,:/]\d+)*")
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_VALUE_NAME = compile_lazy(r"(?<![.!?:]\s)(?<!^)(?<![\w'’-])[A-Z][a-z]+")
_AFFIRMED = frozenset("on true enable enables enabled".split())
_NUMBER_WORD = compile_lazy(rf"\b(?:{'|'.join(_NUMBERS)})\b", re.IGNORECASE)


def extract_values(text: str) -> frozenset[str]:
    """Return the numbers, identifiers and names in a text, normalised."""
    numbers = {number.replace(",", "") for number in _VALUE_NUMBER.findall(numbers_to_digits(text))}
    return frozenset(numbers) | identifier_names(text)


def identifier_names(text: str) -> frozenset[str]:
    """Return the identifiers and names in a text, normalised."""
    codes = {name.strip("`()").lower() for name in identifiers(text)}
    return frozenset(codes | {name.lower() for name in _VALUE_NAME.findall(text)})


def numbers_to_digits(text: str) -> str:
    """Return a text with number words replaced by digits."""
    return _NUMBER_WORD.sub(lambda word: _NUMBERS[word.group().lower()], text)


def is_negated(text: str) -> bool:
    """Return whether a text negates something or says that it is off."""
    return bool(_re.denial.search(text))


def polarity_words(text: str) -> frozenset[str]:
    """Return the words of a text that only affirm or negate."""
    all_words = frozenset(words.split(text))
    denied = {word for match in _re.denial.finditer(text) for word in _whole(text, match)}
    return all_words & (_AFFIRMED | denied)


def _whole(text: str, match: re.Match[str]) -> list[str]:
    """Return the word that contains a negation: of "don't" only the end matches."""
    start = match.start()
    while start and (text[start - 1].isalpha()):
        start -= 1
    return words.split(text[start : match.end()])


def values_agree(one: str, other: str) -> bool:
    """Return whether the values of two texts do not contradict each other.

    One text may say more than the other. They contradict each other if each has a value that the
    other lacks, or if only one is negated.
    """
    return not sets_conflict(extract_values(one), extract_values(other)) and is_negated(
        one
    ) == is_negated(other)


def sets_conflict(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether each of two sets has an element that the other lacks."""
    return bool(one - other) and bool(other - one)


def covers_values(one: str, other: str) -> bool:
    """Return whether a text has every value of another; a name may start its sentence."""
    return extract_values(other) <= extract_values(one) | frozenset(words.split(one))
