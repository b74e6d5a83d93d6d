"""Values: the numbers, names and identifiers by which two near sentences differ in meaning."""

from __future__ import annotations

import re

from lore.text import specifics, words
from lore.text.later import compile_later

_NUMBER = compile_later(r"\d+(?:[.,:/]\d+)*")
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_NAME = compile_later(r"(?<![.!?:]\s)(?<!^)(?<![\w'’-])[A-Z][a-z]+")
_DENIAL = compile_later(
    r"\b(?:not|never|no|none|without|neither|nor|cannot|stop|avoid(?:s|ed)?|disable[sd]?|off|false"
    r"|forbidden|except)\b|n['’]t\b",
    re.IGNORECASE,
)
_AFFIRMED = frozenset("on true enable enables enabled".split())
_WORD_NUMBER = compile_later(rf"\b(?:{'|'.join(_NUMBERS)})\b", re.IGNORECASE)


def of(text: str) -> frozenset[str]:
    """Return the values in a text: numbers, identifiers, names, each in one spelling."""
    found = {number.replace(",", "") for number in _NUMBER.findall(in_digits(text))}
    return frozenset(found) | names(text)


def names(text: str) -> frozenset[str]:
    """Return the identifiers and names in a text, each in one spelling."""
    found = {name.strip("`()").lower() for name in specifics.identifiers(text)}
    return frozenset(found | {name.lower() for name in _NAME.findall(text)})


def in_digits(text: str) -> str:
    """Return a text with the numbers that it has as words in digits."""
    return _WORD_NUMBER.sub(lambda word: _NUMBERS[word.group().lower()], text)


def denies(text: str) -> bool:
    """Tell whether a text denies something, or says that it is off."""
    return bool(_DENIAL.search(text))


def sides(text: str) -> frozenset[str]:
    """Return the words of a text that only say whether something is so, or on, or neither."""
    told = frozenset(words.split(text))
    denied = {word for found in _DENIAL.finditer(text) for word in _whole(text, found)}
    return told & (_AFFIRMED | denied)


def _whole(text: str, found: re.Match[str]) -> list[str]:
    """Return the word that a denial stands in: of "don't" only the end is one."""
    start = found.start()
    while start and (text[start - 1].isalpha()):
        start -= 1
    return words.split(text[start : found.end()])


def agree(one: str, other: str) -> bool:
    """Tell whether no value of one text stands against another value in the other.

    One may say more than the other; where each has a value that the other lacks, they say
    different things. So they do if one of them denies.
    """
    return not crosswise(of(one), of(other)) and denies(one) == denies(other)


def crosswise(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether each of two has something that the other lacks."""
    return bool(one - other) and bool(other - one)


def keeps(one: str, other: str) -> bool:
    """Tell whether a text has every value of another one; a name may begin its sentence."""
    return of(other) <= of(one) | frozenset(words.split(one))
