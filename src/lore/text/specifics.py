"""Specifics: what makes a sentence worth keeping — numbers, dates, names, identifiers, paths."""

from __future__ import annotations

import re
from typing import NamedTuple

from lore.text.later import compile_later

_TICKED = compile_later(r"`([^`\n]+)`")
_IDENTIFIER = compile_later(
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
_CODE_SIGN = compile_later(r"[_/.\-(){}\[\]=:<>$@]|[a-z][A-Z]|^[A-Z]{3,}$")
_NUMBER = compile_later(r"(?<![\w.])[$€£]?\d[\d,.:/]*(?:\s?(?:%|[a-zA-Z]{1,6}\b))?")
_WORD_NUMBER = compile_later(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twice|weekly|monthly"
    r"|yearly|daily)\b",
    re.IGNORECASE,
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = compile_later(
    rf"\b(?:{_MONTHS})\b(?:\s+\d{{1,2}})?|\b\d{{4}}-\d\d-\d\d\b|\b(?:Mon|Tues|Wednes|Thurs|Fri"
    r"|Satur|Sun)days?\b"
)
_RELATIVE = compile_later(
    r"\b(?:yesterday|today|tonight|tomorrow|last\s+(?:night|week|weekend|month|year|summer|winter"
    r"|spring|fall|autumn|\w+day)|next\s+(?:week|weekend|month|year|summer|winter|spring|fall"
    r"|\w+day)|this\s+(?:week|weekend|month|year|summer|morning|afternoon|evening)"
    r"|this\s+(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|on\s+the\s+\d{1,2}(?:st|nd|rd|th)(?!\s+of)"
    r"|(?:days?|weeks?|months?|years?)\s+ago|the\s+other\s+day|recently|just)\b",
    re.IGNORECASE,
)
_NAME = compile_later(r"(?<![.!?:]\s)(?<!^)(?<![\w'’-])[A-Z][a-z]{1,}(?:['’]s)?\b(?!\()")
_CALENDAR = compile_later(rf"(?:{_MONTHS}|\w{{2,9}}days?)$")
_QUOTED = compile_later(r"[\"“][^\"”\n]{2,80}[\"”]")
_NO_NAMES = frozenset(
    "I I'm I'd I'll I've OK Ok Okay Yes No Sure Also But And So The A An It This That".split()
)


class Specifics(NamedTuple):
    """How much of each sort a sentence names."""

    code: int
    numbers: int
    dates: int
    names: int
    quoted: int

    @property
    def total(self) -> int:
        """Return how much it names at all."""
        return self.code + self.numbers + self.dates + self.names + self.quoted


def of(sentence: str) -> Specifics:
    """Count the specifics of a sentence."""
    bare = _TICKED.sub(" ", sentence)
    dates = len(_DATE.findall(bare))
    names = {
        name.group()
        for name in _NAME.finditer(bare)
        if name.group() not in _NO_NAMES and not _CALENDAR.match(name.group())
    }
    numbers = len(_NUMBER.findall(_DATE.sub(" ", bare))) + len(_WORD_NUMBER.findall(bare))
    return Specifics(len(identifiers(sentence)), numbers, dates, len(names),
                     len(_QUOTED.findall(bare)))  # fmt: skip


def identifiers(sentence: str) -> tuple[str, ...]:
    """Return the identifiers, paths and flags in a sentence, each once, in order."""
    found = dict.fromkeys(
        code for code in _TICKED.findall(sentence) if _CODE_SIGN.search(code) or len(code) > 2
    )
    bare = _TICKED.sub(" ", sentence)
    found |= dict.fromkeys(match.group() for match in _IDENTIFIER.finditer(bare))
    return tuple(found)


def is_relative(sentence: str) -> bool:
    """Tell whether a sentence says when by the day on which it was said."""
    return bool(_RELATIVE.search(sentence))
