"""Tasks: where in a session a person begins something new, and where one goes on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from lore.records import Message
from lore.text import goals, words
from lore.text.goals import Request
from lore.text.later import compile_later
from lore.text.parts import is_said

_READ_CHARS = 2_000
"""Of what was said, so much tells what it is about."""

_FEWEST_NEW = 2
_MOST_KNOWN = 0.34
"""Share of a request's telling words that the task before may know: chosen by eye on 30 real
sessions, so that a request about the same thing is seldom taken for a new one."""

_OPENING_CHARS = 200
_STEM_CHARS = 6
_EMPTY = goals.FILLER | words.STOP_WORDS

_GOES_ON = compile_later(
    r"^\W*(?:(?:ok(?:ay)?|yes|yeah|yep|yup|no|nope|sure|right|great|good|cool|nice|perfect|thanks"
    r"|hmm*|hm|umm*|ah|oh|erm|ugh|huh|wait|actually|sorry)\b|(?:but|and|or|so|then|also|still|again"
    r"|instead|because|though|wouldn't|shouldn't|didn't|doesn't|isn't|aren't|why|it|its|it's|that"
    r"|that's|this|these|those|they|there|you|your|option|both|same|maybe|looks?|looking|yes,"
    r"|however|ideally|in theory|the (?:same|first|second|third|last|other|issue|problem|error"
    r"|test|tests))\b|(?:can|could|should|would) (?:we|you|i) (?:also|then|still|just|instead"
    r"|maybe)\b|(?:did|do|does|are|is|was|were|have|has|had) (?:you|we|it|this|that|there|these"
    r"|they)\b|(?:i|we) (?:still|just|also|do also|meant|mean|thought"
    r"|think|don't|didn't|haven't|would have|guess)\b|\d{1,2}[.,)]\s|re(?:try|do)\b"
    r"|let's (?:go|keep|try|do|drop|just|not)\b|go (?:for|with|ahead)\b)",
    re.IGNORECASE,
)
"""How words begin that answer, doubt or add to what was said before."""

_POINTS_BACK = compile_later(
    r"\b(?:the same|as well|like (?:this|that)|(?:this|that|these|those|the|our|your|my) (?:change"
    r"|fix|test|commit|branch|approach|plan|code|issue|error|file|function|result|pr|finding"
    r"|comment|suggestion)s?|double[- ]check|again|too|above|you (?:just|wrote|said|did|made"
    r"|mentioned|added|changed)|we (?:just|did|have just))\b",
    re.IGNORECASE,
)
"""How words point at what was done before: they begin nothing."""

_PRONOUN = compile_later(
    r"\b(?:it|its|it's|that|this|them|those|these|here|also|we've|we're|\d{1,2})\b", re.IGNORECASE
)
_SHORT_WORDS = 14
"""A shorter request with a pronoun or a number of a list in it means what was said before."""

_LANDS = compile_later(
    r"^\W*(?:please\s+|can you\s+|could you\s+|now\s+|then\s+|let's\s+|ok(?:ay)?,?\s+)*(?:commit"
    r"|push|merge|rebase|amend|open (?:a|the) pr|create (?:a|the|me a) (?:pr|pull request|commit)"
    r"|make (?:a|the) (?:pr|pull request|commit)|run (?:the )?(?:tests?|lint\w*))\b",
    re.IGNORECASE,
)
"""Words that bring what was done home."""

_TROUBLE = compile_later(
    r"\b(?:bugs?|broken|conflicts?|crash\w*|errors?|fail\w*|issues?|missing|problems?|severity"
    r"|wrong|doesn't|don't|isn't|can't|cannot|lacks?|should)\b",
    re.IGNORECASE,
)
"""Words that tell of trouble ask for it to be mended."""

_TURNS = compile_later(
    r"^\W*(?:(?:ok(?:ay)?|great|good|cool|nice|perfect|thanks|thank you|right|alright|yes|so)"
    r"\W+){0,2}(?:next(?:\s+(?:up|task|thing|one))?\s*[:,]|the next"
    r" (?:problem|thing|issue|bug|task|topic)\b|(?:now )?(?:a |an |one )?(?:different"
    r"|another|new|separate|unrelated|other)\s+(?:task|thing|question|topic|issue|bug|problem"
    r"|request)\b|on (?:a|another) (?:different |unrelated )?(?:note|topic)|unrelated(?:ly)?\b"
    r"|one more (?:thing|issue|task)|new task\b|moving on\b"
    r"|switching to\b)",
    re.IGNORECASE,
)
"""Words that turn to something else, whatever they share with what was."""


def spans(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Return a session cut where a person begins something new; before the first nothing is cut."""
    starts = [0]
    subject: _Subject | None = None
    for place, message in enumerate(messages):
        said = "\n".join(part.text for part in message.parts if is_said(part))
        if message.role == "user" and message.origin == "user":
            request = goals.request_of(said)
            if request is None:
                continue
            if subject is not None and subject.is_left_by(request):
                starts.append(place)
                subject = None
            if subject is None and (request.real or request.command):
                subject = _Subject()
            if subject is not None:
                subject.ask(request)
        elif message.role == "assistant" and subject is not None:
            subject.hear(said)
    return [messages[start:end] for start, end in pairwise((*starts, len(messages)))]


class _Subject:
    """What a task is about, as far as its words tell."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._asked: set[str] = set()
        self._only_named = True

    def hear(self, text: str) -> None:
        """Take in what was said in the task."""
        self._known.update(_telling(text))

    def ask(self, request: Request) -> None:
        """Take in one of its requests."""
        self._asked.add(request.text)
        self._only_named = self._only_named and request.command and not request.real
        self.hear(request.text)

    def is_left_by(self, request: Request) -> bool:
        """Tell whether a request begins something else than this."""
        text = request.text
        if self._only_named or text in self._asked or _LANDS.match(text):
            return False
        if request.command or (request.real and _TURNS.match(text)):
            return True
        if not request.real or _goes_on(text):
            return False
        if not goals.asks(text) and not _TROUBLE.search(text):
            return False
        telling = _telling(text)
        new = telling - self._known
        return len(new) >= _FEWEST_NEW and len(new) >= (1 - _MOST_KNOWN) * len(telling)


def _goes_on(text: str) -> bool:
    if _GOES_ON.match(text) or _POINTS_BACK.search(text[:_OPENING_CHARS]):
        return True
    return len(text.split()) < _SHORT_WORDS and bool(_PRONOUN.search(text))


def _telling(text: str) -> set[str]:
    head = text[:_READ_CHARS]
    found = words.split(head) if head.isascii() else words.terms(head, most=_READ_CHARS)
    return {_stem(word) for word in found if len(word) > 2 and word not in _EMPTY}


def _stem(word: str) -> str:
    """Return a word by its beginning, so that 'tests' and 'testing' are one."""
    return word[:_STEM_CHARS] if word.isascii() else word
