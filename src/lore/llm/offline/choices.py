"""What a person at work settles in passing: choices, rules, limits, owners and dates."""

from __future__ import annotations

import re
from typing import NamedTuple

from lore.llm.offline import orders
from lore.llm.offline.finding import HIGH, MEDIUM
from lore.records import FragmentKind
from lore.text import told


class Choice(NamedTuple):
    """How a sentence is kept; one that is `open` says enough only with the one behind it."""

    kind: FragmentKind
    importance: float
    score: float
    corrects: str = ""
    open: bool = False


_PREAMBLE = re.compile(
    r"^[^:`\n]{0,60}\b(?:notes?|write (?:it )?down|written down|news|context|fyi|future|one thing"
    r"|more thing|heads up|remember)\b[^:`\n]{0,40}:\s+(?=\S)|^[^:`\n]{0,40}\bplease:\s+(?=\S)"
    r"|^i (?:like|prefer) it (?:this|that) way[^:`\n]{0,20}:\s+(?=\S)"
    r"|^(?:(?:and|but|also|so|btw|fyi|you know what),? )+(?=\S)",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"^[^\w\s`\"'“(/~#.@$<\[{-]+\s*")
_LABELLED = re.compile(
    r"^(?:(?:the|our|my|final|new)\s){0,2}(?:decision|convention|policy|(?:\w+\s)?rule)\b"
    r"[^:\n]{0,80}:\s+\S",
    re.IGNORECASE,
)
_PICKED = re.compile(
    r"^(?!(?:ok|okay|yes|no|fine|good|so|this|that|it|both|all|same|next|later|option|done|what"
    r"|why|how|bye|see|thanks|never|not|until|now|and|but|back|later|sounds?|let'?s|maybe)\b)"
    r"[a-z][\w@.+/-]*(?: [\w@.+/-]+){0,2} (?:then|it is)[.!]?$"
    r"|^(?!(?:ok|okay|yes|no|fine|good|done|sorry|thanks)\b)[a-z][\w-]*(?: [\w-]+){0,2}, no"
    r" (?!need|problem|worries|idea|longer|more|rush|hurry)[\w-]+(?: [\w-]+)?[.!]?$"
    r"|^[a-z][\w-]* for (?:all|every) [\w -]{3,30}[.!]?$"
    r"|^then (?:the|an?) [\w-]+(?: [\w-]+)?[.!]?$",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"^no (?!need|problem|worries|idea|one|longer|more|it|i|we|you|they|this|that|there|please|but"
    r"|and|just|not|the|let|can|luck|rush|hurry|matter|wait)[\w-]+(?: [\w-]+){0,2}, (?:an?|the"
    r"|because|since|it's|\d\S*) \S",
    re.IGNORECASE,
)
_MOVES = re.compile(
    r"^(?!if\b|when\b|what\b|does\b|it\b)[^,;:?]{2,60} (?:moves?|goes|go|switch(?:es)?|changes?)"
    r" from (?P<former>[^,;?]{2,60}?) to \S",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:just |also )?(?:moved|switched|migrated|ported|converted)"
    r" (?:the |our |my )?(?P<former>[\w./-]{3,40}) to (?:the |an? )?[\w./-]{2,40}\b",
    re.IGNORECASE,
)
_WISHED = re.compile(
    r"\bask me (?:first|before)\b|\b(?:don'?t|do not) (?:need|have) to (?P<former>[^,;?]{4,60}?)"
    r" any ?more\b|^(?:please:? )?no [\w -]{3,40} (?:please|at all|at the end|anywhere|ever)\b"
    r"|\bonly,? please\b|\bi (?:don'?t|do not|never) want [^,;?]{3,60} (?:anywhere|at all|ever)\b"
    r"|^please:? (?:write|use|name|format|keep|put|call)\b[^?]*, (?:never|always|not)\b"
    r"|\b(?:don'?t|do not) (?:add|use|put|write|commit|run)\b[^?]* (?:only for|just for"
    r"|anywhere)\b",
    re.IGNORECASE,
)
_AMOUNT = (
    r"(?<![\d.,])\d[\d.,]{0,9} ?(?:%|[kKmMgG]i?[bB]\b|(?:requests?|tries|sms|rows|files?|seconds?"
    r"|minutes?|hours?|days?|weeks?|per|an?|ms|s|h)\b)"
)
_GROUNDED = re.compile(
    r"^(?:no, )?we (?!should\b|could\b|might\b|just\b)[^?]{3,80} (?:on purpose|by design)\b"
    r"|\bthat'?s why we \w+|^we (?:don'?t|do not|no longer) (?:have|use|support|need) `[^`]+`"
    r"(?: any ?more)?\b|\bwe (?:always|never) want\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    rf"\b(?:limits?|quota|page size|retention|max|maximum|idle timeout)\b[^?]{{0,40}}{_AMOUNT}"
    rf"|{_AMOUNT}[^?]{{0,20}}\b(?:limit|quota|max|maximum)\b|\bkept (?:for )?\d+ \w+"
    r"|^(?:the )?(?:oldest|lowest|minimum|newest) [\w ]{2,30} is (?:\w+ )?\d",
    re.IGNORECASE,
)
_OWNER = re.compile(
    r"\b(?:belongs? to (?:the )?\w+ team|belongs? to [A-Z]\w+|(?:is|are) (?:now )?(?:led|owned"
    r"|maintained|run) by (?:the )?[A-Z]\w+|is the one who \w+)"
    r"|^[A-Z][a-z]+ (?:now )?(?:(?:does|owns|leads|maintains|runs|handles) (?!not\b|n't\b|it\b|this"
    r"\b|that\b|a\b)(?:the )?[a-z]\w+|is (?:product|support|ops|our|the (?:lead|owner)|on leave"
    r"|responsible for|in charge of)\b|answers for\b|stands in for\b)"
)
_WHEN = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july"
    r"|august|september|october|november|december|\d{4}-\d\d-\d\d)\b|\b\d{1,2}:\d\d\b",
    re.IGNORECASE,
)
_SCHEDULED = re.compile(
    r"\b(?:releases?|deploy(?:s|ments?)?|deploy days|freeze|backups?|restore tests?|cutover|launch"
    r"|maintenance|code freeze)\b[^?]* (?:is|are|runs?|on|at|happens?|planned|starts?|every)\b",
    re.IGNORECASE,
)
_OPEN_ENDED = re.compile(
    r"\?|\b(?:maybe|perhaps|probably|i think|i guess|for now|not sure|wonder|seems?|might|could you"
    r"|can you|asked (?:whether|if)|yesterday i|failed|fails|error|broken|red|log attached)\b"
    r"|\b(?:today|tomorrow|tonight|this (?:week|morning|afternoon))\b|^no, (?!we\b)"
    r"|^(?:if|when|because|why|what|how|who|where)\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(
    r"^(?:she|he|they|keep it that way|it replaces)\b[^?]*$"
    r"|^the (?P<former>[\w/ -]{3,40}?)(?: rule| way)? (?:is|are) (?:history|gone|dead"
    r"|obsolete)[.!]?$"
    r"|^[\w ]{3,20} max\b[^?]{0,60}$|^(?:but )?not for [^?]{3,100}$"
    r"|^[^?]{2,30}\b(?:limit|quota|maximum) (?:for|of) it\b[^?]*$"
    r"|^(?:make|use|do|write|put|run|take) [^?]{3,100} instead[.!]?$",
    re.IGNORECASE,
)
_REPLACES = re.compile(r"^it replaces (?:the |our )?(?P<former>[\w./ -]{3,40})", re.IGNORECASE)
_BRIEF_WORDS = 3


def opened(sentence: str) -> str:
    """Return a sentence without the signs and the announcement that it opens with."""
    return _PREAMBLE.sub("", _PREAMBLE.sub("", _SIGNS.sub("", sentence)))


def stands_alone(sentence: str) -> bool:
    """Tell whether a sentence can be understood by itself; 'the one who' points at nothing."""
    return told.stands_alone(_THE_ONE.sub("", sentence))


_THE_ONE = re.compile(r"\bthe one (?=who\b|that\b|the\b)|^no (?:more )?", re.IGNORECASE)


def judge(sentence: str) -> Choice | None:
    """Say how a sentence is kept, if it settles something."""
    if _LABELLED.match(sentence):
        return Choice("decision", HIGH, 3.2)
    wished = _WISHED.search(sentence)
    if wished and not sentence.endswith("?"):
        return Choice("preference", HIGH, 3.5, wished["former"] or "")
    if _OPEN_ENDED.search(sentence):
        return None
    return _decided(sentence) or _stated(sentence)


def _decided(sentence: str) -> Choice | None:
    if (_PICKED.match(sentence) and not orders.is_order(sentence)) or _REFUSED.match(sentence):
        return Choice("decision", HIGH, 2.8, open=True)
    moved = _MOVES.match(sentence) or _MOVED.search(sentence)
    if moved:
        return Choice("decision", HIGH, 3.0, moved["former"].strip(" `\"'"))
    return Choice("decision", MEDIUM, 2.4) if _GROUNDED.search(sentence) else None


_SUBJECT = re.compile(r"^\w+(?: \w+)? (?:is|are|runs?)\b", re.IGNORECASE)
"""'Deploy days are …' begins like an order and is none."""


def _stated(sentence: str) -> Choice | None:
    if _OWNER.search(sentence):
        return Choice("fact", MEDIUM, 2.2)
    is_dated = _SCHEDULED.search(sentence) and _WHEN.search(sentence)
    is_order = orders.is_order(sentence) and not _SUBJECT.match(sentence)
    if is_order or not (_LIMIT.search(sentence) or is_dated):
        return None
    return Choice("fact", MEDIUM, 2.0)


def goes_on(before: Choice, sentence: str) -> bool:
    """Tell whether a sentence belongs to the one before it that was kept."""
    if _FOLLOWS.match(sentence):
        return True
    if sentence.endswith("?") or orders.is_order(sentence):
        return before.open and bool(_REFUSED.match(sentence))
    brief = len(sentence.split()) <= _BRIEF_WORDS and sentence[:1].islower()
    if before.open:
        return bool(_REFUSED.match(sentence) or _NAMED.match(sentence) or brief)
    return before.kind == "fact" and bool(_OWNER.search(sentence)) and not _LIMIT.search(sentence)


_NAMED = re.compile(r"^(?:name|page size|limit|bucket|timeout|port|version)\b[^?]*$", re.IGNORECASE)
"""How the choice is to look: said right behind it."""


def former_in(sentence: str) -> str:
    """Return what a sentence that goes on says is history; empty if nothing."""
    found = _REPLACES.match(sentence) or _FOLLOWS.match(sentence)
    return (found["former"] or "").strip() if found else ""
