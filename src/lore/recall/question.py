"""Parse a question into its words, phrases, identifiers, time spans and intents."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise

from lore.errors import InvalidInput
from lore.lazy_dataclass import dataclass
from lore.recall.time_spans import MONTHS, Span, spans
from lore.text import words
from lore.text.regex import compile_lazy

_ALL_MONTHS = "|".join(MONTHS)

_FRAMES = tuple(
    compile_lazy(pattern, re.IGNORECASE)
    for pattern in (
        r"\bmention only\b[^.?!]*[.?!]?",
        r"\b(?:can|could|would|will) you (?:please )?(?:list|walk me through|give me"
        r"|provide(?: me)?(?: with)?|summari[sz]e|remind me(?: of)?)\b",
        r"\b(?:in )?(?:what|which|the) order (?:in which)?",
        r",? in order\b(?! to)",
        r"(?<=\bi)\s(?:have |had |first )?(?:brought up|talked about|asked about)\b",
        r"\b(?:throughout|across|over|in|during|from) (?:all )?(?:of )?(?:our|my|the|these|those"
        r"|all)(?: different)? (?:conversations?|chats?|sessions?|discussions?|messages|requests"
        r"|questions)\b",
        r"\b(?:an? )?(?:(?:clear|comprehensive|brief|detailed|short|complete|full|concise) ){0,3}"
        r"summary of (?:how |what |everything )?",
        r"\b(?:the )?(?:different|various) (?:aspects|concepts|topics|parts|things)"
        r"(?: related to| of)?\b",
    )
)
"""Phrases that frame a question without saying what it is about."""

_SPACE = compile_lazy(r"\s+")
_CODE = compile_lazy(r"[_/\\]|\w\.\w|::|[a-z][A-Z]|^[A-Z0-9]{4,}$")


def _any_of(pattern: str) -> re.Pattern[str]:
    return compile_lazy(rf"\b(?:{pattern})\b", re.IGNORECASE)


_WHEN = _any_of(
    r"when|what (?:date|day|month|year|time)|how long|how many (?:days|weeks|months|years)"
)
_NUMBER = _any_of(r"how (?:many|much|often|long)|number of|percent(?:age)?")
_ADVICE = _any_of(
    r"should|recommend|suggest|suggestion|options?|how (?:can|do|should) i|can you|could you"
    r"|help me|show me|what (?:are|is) (?:some|the best)|tips|ideas|plan"
)
_LIST = _any_of(
    r"order in which|in order|summary|summari[sz]e|list (?:the|all)|how many different"
    r"|what (?:are )?all|which(?: of)?|over time|progress(?:ed)?|developed|evolved|across"
    r"|throughout"
)
_EARLY = _any_of(
    r"first|initial|initially|original|originally|earliest|at the (?:start|beginning)|started"
    r"|begin|began"
)
_LATE = _any_of(
    r"final|finally|last|latest|current|currently|now|most recent|recently|eventually|in the end"
    r"|after|ended up|replaced|so far|updated"
)
_NOW = _any_of(r"now|nowadays|current|currently|latest|at the moment|at present|these days|still")
_DAY = compile_lazy(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?=\s(?:of )?(?:{_ALL_MONTHS})\b)"
    rf"|(?:{_ALL_MONTHS})\s(\d{{1,2}})\b",
    re.IGNORECASE,
)
_YEAR = compile_lazy(r"\b((?:19|20)\d\d)\b")
_WORD_MONTHS = {3: "march", 5: "may"}
"""Months that are also English words: they count only as part of a date."""

_AS_DATE = (
    r"\b(?:in|of|on|since|by|during|before|after|until|late|early|mid)\s{name}\b"
    r"|\b{name}\s\d|\d(?:st|nd|rd|th)?\s(?:of )?{name}\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed question: words, phrases, identifiers, time spans and what it asks for."""

    text: str
    core: str
    terms: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    phrases: tuple[str, ...]
    identifiers: tuple[str, ...]
    spans: tuple[Span, ...]
    months: frozenset[int]
    years: frozenset[int]
    days: frozenset[int]
    asks_when: bool
    asks_number: bool
    asks_advice: bool
    asks_list: bool
    asks_early: bool
    asks_late: bool
    asks_now: bool

    def match(self, terms: tuple[str, ...] | None = None) -> str:
        """Return the keyword query: any of the words or phrases, quoted."""
        query_terms = self.terms if terms is None else terms
        return words.match_any(list(query_terms), [*self.phrases, *self.identifiers])


MAX_LIMIT = 1_000


def check_limit(limit: int, noun: str = "hits") -> None:
    """Raise `InvalidInput` if a question asks for too few or too many results."""
    if not 1 <= limit <= MAX_LIMIT:
        msg = f"The limit must be between 1 and {MAX_LIMIT} {noun}, not {limit}."
        raise InvalidInput(msg)


def exact_names(question: Question) -> tuple[str, ...]:
    """Return the code identifiers and quoted phrases, which must match letter by letter."""
    code = [name for name in question.identifiers if _CODE.search(name)]
    return tuple(dict.fromkeys([*code, *question.phrases]))


def parse(text: str, now: datetime) -> Question:
    """Parse a question; raise `InvalidInput` if it is empty."""
    cleaned = words.clean(text).strip()[: words.MAX_QUERY_CHARS]
    if not cleaned:
        msg = "The question is empty."
        raise InvalidInput(msg)
    core = _strip_frame(cleaned)
    return Question(
        text=cleaned,
        core=core,
        terms=tuple(words.search_terms(core)),
        pairs=_pairs(core),
        phrases=tuple(words.quoted_phrases(cleaned)),
        identifiers=tuple(words.identifiers(cleaned)),
        spans=tuple(spans(cleaned, now)),
        months=_months(core),
        years=frozenset(int(year) for year in _YEAR.findall(core)),
        days=frozenset(int(a or b) for a, b in _DAY.findall(core)),
        asks_when=bool(_WHEN.search(core)),
        asks_number=bool(_NUMBER.search(core)),
        asks_advice=bool(_ADVICE.search(core)),
        asks_list=bool(_LIST.search(cleaned)),
        asks_early=bool(_EARLY.search(core)),
        asks_late=bool(_LATE.search(core)),
        asks_now=bool(_NOW.search(cleaned)),
    )


def in_first_person(core: str, speakers: list[str]) -> str:
    """Replace the names of speakers by 'I' and 'my', as they appear in their own messages."""
    for name in speakers:
        core = re.sub(rf"\b{re.escape(name)}['’]s\b", "my", core)
        core = re.sub(rf"\b{re.escape(name)}\b", "I", core)
    return core


def _strip_frame(text: str) -> str:
    core = text
    for frame in _FRAMES:
        core = frame.sub(" ", core)
    core = _SPACE.sub(" ", core).strip(" ,.")
    return core if len(core.split()) >= 2 else text


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    tokens = words.split(text)[:64]
    return tuple(
        (a, b)
        for a, b in pairwise(tokens)
        if a not in words.STOP_WORDS and b not in words.STOP_WORDS
    )[:16]


def _months(text: str) -> frozenset[int]:
    lowered = text.lower()
    months = {number for number, name in enumerate(MONTHS, 1) if re.search(rf"\b{name}\b", lowered)}
    for number, name in _WORD_MONTHS.items():
        if number in months and not re.search(_AS_DATE.format(name=name), lowered):
            months.discard(number)
    return frozenset(months)
