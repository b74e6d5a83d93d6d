"""Values: the numbers, names and identifiers by which two near sentences differ in meaning."""

from __future__ import annotations

import re

from lore.text import specifics, words

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\w'’-])[A-Z][a-z]+")
_OPPOSED = re.compile(
    r"\b(?:not|never|no|without|n't|isn't|aren't|don't|doesn't|didn't|can't|cannot|won't|shouldn't"
    r"|stop|avoid|disable[sd]?|off|false|except)\b|n't\b",
    re.IGNORECASE,
)


def of(text: str) -> frozenset[str]:
    """Return the values in a text: numbers, identifiers, names, each in one spelling."""
    found = {number.replace(",", "") for number in _NUMBER.findall(text)}
    found |= {_NUMBERS[word] for word in words.split(text) if word in _NUMBERS}
    found |= {name.strip("`()").lower() for name in specifics.identifiers(text)}
    found |= {name.lower() for name in _NAME.findall(text)}
    return frozenset(found)


def agree(one: str, other: str) -> bool:
    """Tell whether no value of one text stands against another value in the other.

    One may say more than the other; where each has a value that the other lacks, they say
    different things. So they do if one of them denies.
    """
    a, b = of(one), of(other)
    return (a <= b or b <= a) and bool(_OPPOSED.search(one)) == bool(_OPPOSED.search(other))
